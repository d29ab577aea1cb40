//! Delta Lake tables: which files are the current version, by the log of the table.
//!
//! The log is JSON, a file a version; what is older than some weeks may be there as a checkpoint alone, which is
//! Parquet. Tables whose files are not read as they lie there are refused: rows that are deleted by a vector beside a
//! file, columns whose names are in the log alone, and whatever the log calls necessary that is not known here.

use super::delta_checkpoint::read_checkpoint;
use super::delta_state::{Add, MetaData, Protocol, State};
use super::part_files::{PartFile, Parts, decoded, natural};
use crate::error::{GraphError, Result};
use crate::limits::{Limits, read_limited};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One line of the log.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Action {
    add: Option<Add>,
    remove: Option<Remove>,
    meta_data: Option<MetaData>,
    protocol: Option<Protocol>,
}

#[derive(Debug, Deserialize)]
struct Remove {
    path: String,
}

#[derive(Deserialize)]
struct Schema {
    fields: Vec<Field>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
}

/// Folders of a table lie no deeper than this.
const DEPTH_MAX: usize = 16;

/// Where the log is.
const LOG: &str = "_delta_log";

/// What may be in the list of features of a table that is read here, as long as no file makes use of it.
const KNOWN: [&str; 9] = [
    "deletionVectors",
    "columnMapping",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
];

/// A line of the log may be so long.
const LOG_BYTES_MAX: u64 = 1 << 32;

/// Whether a folder is a Delta Lake table.
pub fn is_delta(path: &Path) -> bool {
    path.join(LOG).is_dir()
}

/// Refuses a file or folder inside a table, in which rows of earlier versions may lie.
///
/// # Errors
///
/// If it lies in one.
pub fn refuse_piece(path: &Path) -> Result<()> {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_parquet = whole.extension().is_some_and(|ending| ending == "parquet");
    // Files of the table, and folders of them, lie in its partitions, which are called `column=value`, or in itself.
    let is_partition = |folder: &&Path| folder.file_name().is_some_and(|name| name.to_string_lossy().contains('='));
    let innermost = if is_parquet && whole.is_file() { whole.parent() } else { Some(&*whole).filter(is_partition) };
    let mut folders = innermost.into_iter().flat_map(Path::ancestors).take(DEPTH_MAX);
    let Some(table) = folders.find(|folder| !is_partition(folder)).filter(|folder| is_delta(folder)) else {
        return Ok(());
    };
    let what = format!(
        "a piece of the Delta Lake table {0}, in which rows of earlier versions may lie: read the table itself, {0}; \
         or write what is wanted of it as Parquet, with DeltaTable(\"{0}\").to_pyarrow_table() of deltalake",
        table.display()
    );
    Err(GraphError::format(path, "table", what))
}

/// The files of the current version.
///
/// # Errors
///
/// If the log is broken or not whole, or the files alone are not the table; the message says how to write what is.
pub fn parts(path: &Path, limits: &Limits) -> Result<Parts> {
    let state = replay(path, limits)?;
    let refuse = |what: &str| Err(refused(path, what));
    let Some(meta) = state.meta else { return refuse("whose log does not say what its columns are") };
    let protocol = state.protocol.unwrap_or_default();
    let known = |feature: &&String| !KNOWN.contains(&feature.as_str());
    if let Some(feature) = protocol.reader_features.iter().flatten().find(known) {
        return refuse(&format!("which needs '{feature}', which is not known here"));
    }
    if protocol.min_reader_version > 3 {
        return refuse(&format!("of version {}, which is not known here", protocol.min_reader_version));
    }
    let mapping = meta.configuration.get("delta.columnMapping.mode").and_then(Option::as_deref).unwrap_or_default();
    if ["name", "id"].contains(&mapping) {
        return refuse("with column mapping, whose files have other names for their columns");
    }
    let schema: Schema = serde_json::from_str(&meta.schema_string)
        .map_err(|error| GraphError::format(path, LOG, format!("schemaString: {error}")))?;
    let mut files = Vec::with_capacity(state.files.len());
    for (name, add) in state.files {
        if add.deletion_vector.is_some_and(|vector| !vector.is_null()) {
            return refuse("with deletion vectors, which take rows out of its files");
        }
        let relative = decoded(&name);
        if relative.contains("://") || Path::new(&relative).is_absolute() || relative.starts_with("file:") {
            return refuse(&format!("of which a file lies elsewhere, at {relative}"));
        }
        files.push(PartFile { path: path.join(relative), given: add.partition_values.into_iter().collect() });
    }
    files.sort_by(|one, other| natural(&one.path.to_string_lossy(), &other.path.to_string_lossy()));
    let columns = schema.fields.into_iter().map(|field| field.name).collect();
    Ok(Parts { files, parquet: true, columns: Some(columns) })
}

/// The error about a table that is not read.
pub fn refused(path: &Path, what: &str) -> GraphError {
    let folder = path.display();
    GraphError::format(
        path,
        LOG,
        format!(
            "a Delta Lake table {what}: write the current version as Parquet and read that:\n  from deltalake import \
             DeltaTable; import pyarrow.parquet as pq\n  pq.write_table(DeltaTable(\"{folder}\").to_pyarrow_table(), \
             \"now.parquet\")\nor in Spark: spark.read.format(\"delta\").load(\"{folder}\").write.parquet(\"now\")"
        ),
    )
}

/// What the log says in the end.
fn replay(path: &Path, limits: &Limits) -> Result<State> {
    let log = path.join(LOG);
    let entries = std::fs::read_dir(&log).map_err(|error| GraphError::io(&log, error))?;
    let (mut versions, mut checkpoints) = (BTreeSet::new(), BTreeMap::<u64, Vec<(String, PathBuf)>>::new());
    for entry in entries {
        let entry = entry.map_err(|error| GraphError::io(&log, error))?.path();
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((version, rest)) = name.split_once('.') else { continue };
        let Ok(version) = version.parse::<u64>() else { continue };
        if rest == "json" {
            versions.insert(version);
        } else if let Some(rest) = rest.strip_prefix("checkpoint.") {
            checkpoints.entry(version).or_default().push((rest.to_owned(), entry));
        }
    }
    let last = versions.last().copied().or(checkpoints.keys().last().copied());
    let Some(last) = last else { return Err(refused(path, "without a version in its log")) };
    let from_checkpoint = |(&version, files): (&u64, &Vec<(String, PathBuf)>)| {
        let whole = whole_checkpoint(files)?;
        (version + 1..=last).all(|next| versions.contains(&next)).then_some((version + 1, whole))
    };
    let mut state = State::default();
    let first = if (0..=last).all(|version| versions.contains(&version)) {
        0
    } else if let Some((next, files)) = checkpoints.iter().rev().find_map(from_checkpoint) {
        files.iter().try_for_each(|file| read_checkpoint(file, limits, &mut state))?;
        next
    } else {
        return Err(refused(path, "whose log has gaps, and no checkpoint of one kind that is read here"));
    };
    (first..=last).try_for_each(|version| read_version(&log.join(format!("{version:020}.json")), &mut state))?;
    Ok(state)
}

/// All files of a checkpoint of one version, if they are there: `parquet`, or number and count before it.
fn whole_checkpoint(files: &[(String, PathBuf)]) -> Option<Vec<PathBuf>> {
    if let Some((_, one)) = files.iter().find(|(rest, _)| rest == "parquet") {
        return Some(vec![one.clone()]);
    }
    let numbers = |rest: &str| -> Option<(u64, u64)> {
        let (number, count) = rest.strip_suffix(".parquet")?.split_once('.')?;
        Some((number.parse().ok()?, count.parse().ok()?))
    };
    let several: BTreeMap<(u64, u64), &PathBuf> =
        files.iter().filter_map(|(rest, path)| Some((numbers(rest)?, path))).collect();
    let count = several.keys().next()?.1;
    (several.len() as u64 == count).then(|| several.into_values().cloned().collect())
}

/// One version of the log: files that go, and then those that come.
fn read_version(file: &Path, state: &mut State) -> Result<()> {
    let bytes = read_limited(file, "bytes of the file", LOG_BYTES_MAX)?;
    let mut added = Vec::new();
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let action: Action = serde_json::from_slice(line)
            .map_err(|error| GraphError::format(file, format!("line {}", number + 1), error.to_string()))?;
        action.remove.into_iter().for_each(|remove| drop(state.files.remove(&remove.path)));
        added.extend(action.add);
        state.meta = action.meta_data.or(state.meta.take());
        state.protocol = action.protocol.or(state.protocol.take());
    }
    state.files.extend(added.into_iter().map(|add| (add.path.clone(), add)));
    Ok(())
}
