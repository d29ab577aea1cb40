//! `meta.json`: what a part folder holds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::edges::Relations;
use crate::error::{GraphError, Result};
use crate::limits::{Limits, PARTS_MAX, read_limited};
use crate::part::{GlobalCounts, PartCounts};

/// The name in [`Meta::format`].
pub const FORMAT: &str = "laconic-parts";
/// The version that this program writes, and the only one it reads.
pub const VERSION: u32 = 1;

/// More than the meta data of that many parts.
const BYTES_MAX: u64 = 1 << 30;

/// The content of `meta.json`. Unknown fields are errors: they would be from another version, which changes
/// [`Meta::version`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Always [`FORMAT`], which tells the file from any other.
    pub format: String,
    /// Always [`VERSION`] in a file that this program reads.
    pub version: u32,
    /// How many parts the whole graph has.
    pub parts: u32,
    /// How the parts were made.
    pub provenance: Provenance,
    /// What all owners know about the whole.
    pub global: GlobalCounts,
    /// The parts that are in this folder; a site's folder has only its own.
    pub files: BTreeMap<u32, PartEntry>,
    /// How far labels of training nodes differ between all parts ([`crate::skew::LabelSkew::skew`]), where the folder
    /// was written by somebody who saw all parts. One number about all: what a part's labels are is its owner's to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_skew: Option<f64>,
    /// The BLAKE3 checksum, in hexadecimal, of this object without this field, as JSON without spaces.
    pub blake3: String,
}

/// How parts were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The name of the partitioner.
    pub method: String,
    /// The seed that the partitioner drew from.
    pub seed: u64,
}

/// The files of one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartEntry {
    /// The number of own nodes.
    pub nodes: u64,
    /// Edges that end at own nodes.
    pub edges: u64,
    /// The files in the folder `part-<k>` by name: `graph`, `nodes` and `features`, each `.safetensors`.
    pub files: BTreeMap<String, FileEntry>,
    /// Nodes of each split, training, validation and test, where [`Meta::global`] does not count all parts'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<[u64; 3]>,
    /// What predictions need to know, where the folder was written by somebody who saw all parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<PartCounts>,
}

/// One file of a part, as it must be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its size in bytes.
    pub bytes: u64,
    /// Its BLAKE3 checksum in hexadecimal.
    pub blake3: String,
}

/// [`Meta`] without its checksum, for the checksum.
#[derive(Serialize)]
struct Checked<'a> {
    format: &'a str,
    version: u32,
    parts: u32,
    provenance: &'a Provenance,
    global: &'a GlobalCounts,
    files: &'a BTreeMap<u32, PartEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_skew: Option<f64>,
}

impl Meta {
    /// The meta data of a folder that holds no part yet.
    pub(super) fn new(parts: u32, provenance: &Provenance, global: &GlobalCounts) -> Self {
        Meta {
            format: FORMAT.to_owned(),
            version: VERSION,
            parts,
            provenance: provenance.clone(),
            global: global.clone(),
            files: BTreeMap::new(),
            label_skew: None,
            blake3: String::new(),
        }
    }

    /// Reads and verifies `path`.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = read_limited(path, "bytes of the file", BYTES_MAX)?;
        let bad = |place: &str, what: String| Err(GraphError::format(path, place, what));
        // The version first: a file of another version is allowed to look different.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head: Head = match serde_json::from_slice(&text) {
            Ok(head) => head,
            Err(error) => return bad("JSON", error.to_string()),
        };
        if head.format != FORMAT || head.version != VERSION {
            let found = format!("{:?} version {}", head.format, head.version);
            return bad("format", format!("expected {FORMAT:?} version {VERSION}, found {found}"));
        }
        let mut meta: Meta = match serde_json::from_slice(&text) {
            Ok(meta) => meta,
            Err(error) => return bad("JSON", error.to_string()),
        };
        if meta.blake3 != meta.checksum() {
            return bad("blake3 checksum", format!("expected {}, found {}", meta.checksum(), meta.blake3));
        }
        if !(1..=PARTS_MAX).contains(&meta.parts) {
            return bad("parts", format!("expected 1 to {PARTS_MAX} parts, found {}", meta.parts));
        }
        if let Some((what, found, most)) = meta.count_beyond() {
            return bad("global", format!("expected at most {most} {what} in all parts, found {found}"));
        }
        if let Some((&part, _)) = meta.files.iter().next_back().filter(|(part, _)| **part >= meta.parts) {
            return bad("files", format!("expected parts below {}, found {part}", meta.parts));
        }
        for (what, all, parts) in [
            ("nodes", meta.global.nodes, meta.files.values().map(|part| part.nodes).collect::<Vec<u64>>()),
            ("edges", meta.global.edges, meta.files.values().map(|part| part.edges).collect()),
        ] {
            let held = parts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count)).unwrap_or(u64::MAX);
            let complete = parts.len() as u64 == u64::from(meta.parts);
            if meta.global.are_counted() && (held > all || complete && held != all) {
                return bad("global", format!("expected as many {what} as the parts hold, {held}, found {all}"));
            }
        }
        meta.count();
        Ok(meta)
    }

    /// Counts what the parts hold, where nobody has and all are here: sites built them, and somebody put them together.
    fn count(&mut self) {
        let Meta { global, files, parts, .. } = self;
        let roles: Vec<[u64; 3]> = files.values().filter_map(|part| part.roles).collect();
        if global.are_counted() || roles.len() as u64 != u64::from(*parts) {
            return;
        }
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        global.nodes = sum(&mut files.values().map(|part| part.nodes));
        global.edges = sum(&mut files.values().map(|part| part.edges));
        [global.train, global.val, global.test] = [0, 1, 2].map(|role| sum(&mut roles.iter().map(|of| of[role])));
    }

    /// Writes itself, with its checksum, to the new file `path`.
    pub(super) fn write(&mut self, path: &Path) -> Result<()> {
        self.blake3 = self.checksum();
        let mut text = serde_json::to_vec_pretty(self).expect("meta data is plain data");
        text.push(b'\n');
        let written = File::create(path).and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
        written.map_err(|source| GraphError::io(path, source))
    }

    /// A count beyond what any graph has that is read, since room is made for what is counted.
    fn count_beyond(&self) -> Option<(&'static str, u64, u64)> {
        let (global, limits) = (&self.global, Limits::default());
        let counts = [
            ("columns", global.columns as u64, limits.columns_max),
            ("classes", global.classes as u64, limits.classes_max),
            ("relations", global.relations as u64, Relations::MOST as u64),
        ];
        counts.into_iter().find(|(_, found, most)| found > most)
    }

    fn checksum(&self) -> String {
        let Meta { format, version, parts, provenance, global, files, label_skew, blake3: _ } = self;
        let checked =
            Checked { format, version: *version, parts: *parts, provenance, global, files, label_skew: *label_skew };
        let text = serde_json::to_vec(&checked).expect("meta data is plain data");
        blake3::hash(&text).to_hex().to_string()
    }
}
