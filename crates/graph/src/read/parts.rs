//! Folders that hold one table in many files, as engines write them.
//!
//! Names that begin with `_` or `.` are no data. Folders called `key=value` hold rows of that value, whose column is
//! in their names alone. Of a Delta Lake table the log says which files are the table; a folder of Iceberg or Hudi is
//! refused, since files of earlier versions lie beside those of the present one.

use super::part_files::{PartFile, Parts, decoded, natural};
use super::{delta, extension};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use std::io::Read;
use std::path::{Path, PathBuf};

/// More files than any table has that is read here.
const FILES_MAX: usize = 1 << 16;

/// Folders in folders.
const DEPTH_MAX: usize = 16;

/// What Hive's folders are called where a value is missing.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Whether this is such a folder.
pub fn is_table_folder(path: &Path) -> bool {
    path.is_dir() && (foreign(path).is_some() || delta::is_delta(path) || holds(path, 0))
}

fn holds(folder: &Path, depth: usize) -> bool {
    let entries = entries(folder).unwrap_or_default();
    if entries.iter().any(|path| is_of_two(path)) {
        return false;
    }
    let is_tables = entries.iter().any(|path| is_parquet(path)) || are_texts(&entries);
    let inner = || entries.iter().filter(|path| key_value(path).is_some() && path.is_dir());
    is_tables || depth < DEPTH_MAX && inner().any(|path| holds(path, depth + 1))
}

/// All files of the table in a folder.
///
/// # Errors
///
/// If it is of another layout, holds files of several kinds, more than there may be, or none.
pub fn parts(path: &Path, limits: &Limits) -> Result<Parts> {
    let bad = |what: String| Err(GraphError::format(path, "folder", what));
    if let Some(what) = foreign(path) {
        return bad(what);
    }
    if delta::is_delta(path) {
        return delta::parts(path, limits);
    }
    delta::refuse_piece(path)?;
    let mut found = Vec::new();
    walk(path, &[], &mut found)?;
    found.sort_by(|one, other| natural(&one.path.to_string_lossy(), &other.path.to_string_lossy()));
    let parquet = found.iter().filter(|file| is_parquet(&file.path)).count();
    match found.len() {
        0 => bad("expected files of Parquet or part-*.csv".to_owned()),
        count if parquet > 0 && parquet < count => bad("expected files of one kind, found Parquet and text".to_owned()),
        _ => Ok(Parts { files: found, parquet: parquet > 0, columns: None }),
    }
}

/// The files of a table: those in a folder, or the one that it is.
pub fn files(path: &Path, limits: &Limits) -> Result<Vec<PathBuf>> {
    match path.is_dir() {
        true => Ok(parts(path, limits)?.files.into_iter().map(|file| file.path).collect()),
        false => delta::refuse_piece(path).map(|()| vec![path.to_owned()]),
    }
}

/// What is wrong with folders of a table whose names are values alone, as pyarrow's DirectoryPartitioning has them.
const NOT_NAMED: &str = "more files of a table in a folder that is not called column=value: call it so, and the value \
    is in that column of all its rows (pyarrow.dataset.write_dataset(…, partitioning_flavor=\"hive\") does), or read \
    it by itself";

/// A folder with files of a table in one that does not say of which value they are, and why it is not read.
pub fn unnamed_folder(path: &Path) -> Option<GraphError> {
    let inner = entries(path).unwrap_or_default();
    let unnamed = inner.iter().filter(|path| path.is_dir() && key_value(path).is_none());
    unnamed.min().filter(|path| holds(path, 0)).map(|path| GraphError::format(path, "folder", NOT_NAMED))
}

fn walk(folder: &Path, given: &[(String, Option<String>)], found: &mut Vec<PartFile>) -> Result<()> {
    let entries = entries(folder).map_err(|error| GraphError::io(folder, error))?;
    if given.len() > DEPTH_MAX {
        return Err(GraphError::too_large(folder, "folders in folders", DEPTH_MAX as u64));
    }
    let texts = are_texts(&entries);
    for path in &entries {
        if path.is_dir() {
            if let Some(pair) = key_value(path) {
                let given: Vec<_> = given.iter().cloned().chain([pair]).collect();
                walk(path, &given, found)?;
            } else if holds(path, 0) {
                return Err(GraphError::format(path, "folder", NOT_NAMED));
            }
        } else if is_parquet(path) || texts && is_text(path) {
            found.push(PartFile { path: path.clone(), given: given.to_vec() });
        }
        if found.len() > FILES_MAX {
            return Err(GraphError::too_large(folder, "files of one table", FILES_MAX as u64));
        }
    }
    Ok(())
}

/// What is in a folder, but for names that are no data.
fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let all = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let is_data = |path: &PathBuf| !name(path).starts_with(['_', '.']);
    all.filter(|path| path.as_ref().map_or(true, is_data)).collect()
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn is_parquet(path: &Path) -> bool {
    let is_file = || path.metadata().is_ok_and(|data| data.is_file());
    match name(path).rsplit_once('.') {
        Some((_, end)) => ["parquet", "parq", "pq"].contains(&end.to_lowercase().as_str()) && is_file(),
        // Hive and Athena give no extension.
        None => is_file() && starts_with_magic(path).unwrap_or(false),
    }
}

fn starts_with_magic(path: &Path) -> std::io::Result<bool> {
    let mut start = [0; 4];
    std::fs::File::open(path)?.read_exact(&mut start)?;
    Ok(&start == b"PAR1")
}

/// Whether it is a table of edges or nodes that may have the other beside it.
fn is_of_two(path: &Path) -> bool {
    let name = name(path).to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let is = |stem: &str| ["csv", "tsv", "txt", "parquet"].iter().any(|end| name == format!("{stem}.{end}"));
    is("edges") || is("nodes")
}

/// A text file: by its ending, Dask's `0.part`, or Hadoop's `part-00000`.
fn is_text(path: &Path) -> bool {
    let name = name(path);
    let of_dask = name.strip_suffix(".part");
    let of_hadoop = name.strip_prefix("part-").map(|rest| rest.trim_start_matches(['m', 'r', '-']));
    // `edges.csv.part` is a download that has not ended.
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = ["csv", "tsv", "txt"].contains(&extension(path).as_str());
    (is_known || of_dask.or(of_hadoop).is_some_and(is_number)) && path.is_file()
}

/// Whether the files in a folder are parts of one text table: nothing but text, all of whose names have numbers and
/// are the same without them (and without the letters of a number to the base of 16, as in `part-00000-5f3a….csv`).
fn are_texts(entries: &[PathBuf]) -> bool {
    let files: Vec<&PathBuf> = entries.iter().filter(|path| path.is_file()).collect();
    let is_hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c) || c == '-';
    let shape = |path: &Path| name(path).trim_end_matches(".gz").replace(is_hexadecimal, "");
    let is_part = |path: &&PathBuf| is_text(path) && name(path).contains(|c: char| c.is_ascii_digit());
    files.first().is_some_and(|first| files.iter().all(|path| is_part(path) && shape(path) == shape(first)))
}

/// The column and the value that a folder is called after.
fn key_value(path: &Path) -> Option<(String, Option<String>)> {
    let name = name(path);
    let (key, value) = name.split_once('=')?;
    let value = (value != NO_VALUE).then(|| decoded(value));
    (!key.is_empty()).then(|| (decoded(key), value))
}

/// Why a folder of another layout is not read, and what is.
fn foreign(path: &Path) -> Option<String> {
    let has_metadata = |folder: &Path| {
        let found = std::fs::read_dir(folder.join("metadata")).ok();
        found.into_iter().flatten().flatten().any(|entry| name(&entry.path()).ends_with(".metadata.json"))
    };
    let (what, script) = if has_metadata(path) || path.ends_with("data") && path.parent().is_some_and(has_metadata) {
        ("Iceberg", "spark.table(\"NAME\").write.parquet(\"now\")")
    } else if path.join(".hoodie").is_dir() {
        ("Hudi", "spark.read.format(\"hudi\").load(\"FOLDER\").write.parquet(\"now\")")
    } else {
        return None;
    };
    Some(format!(
        "a table of {what}, beside whose files those of earlier versions may lie: write the current version as \
         Parquet, in Spark {script}, and read that folder"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_say_a_column_and_its_value() {
        let pair = |name: &str| key_value(Path::new(name));
        assert_eq!(pair("x/day=2026-11-01%2010%3A00"), Some(("day".into(), Some("2026-11-01 10:00".into()))));
        assert_eq!(pair("kind=__HIVE_DEFAULT_PARTITION__"), Some(("kind".into(), None)));
        assert_eq!(
            (pair("=x"), pair("plain"), decoded("100%"), decoded("%zz")),
            (None, None, "100%".into(), "%zz".into())
        );
    }
}
