//! Folders of parts with one file changed and every checksum made right again, so that what lies behind them is
//! reached: opening, and what a run does first with the parts that open (its plan, who needs whose rows, a worker's
//! own rows).
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use laconic_fuzz::{apply, choice};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::edges::EdgeData;
use laconic_graph::given::GivenPairs;
use laconic_graph::graph::Graph;
use laconic_graph::part::{Meta, Provenance, cut, open_meta, open_part, write_parts};
use laconic_graph::plan::plan_all;
use laconic_train::worker::local::Local;
use laconic_train::{Config, Members, Plan};

const META: &str = "meta.json";

/// The files of valid folders by their paths in them: one class a node, and several of which some are not known.
static FOLDERS: LazyLock<[Vec<(String, Vec<u8>)>; 2]> = LazyLock::new(|| {
    let one = Labels::Single { classes: 3, values: vec![0, 1, 2, -1, 0] };
    let unknown = Labels::UNKNOWN;
    let several = Labels::Multi { classes: 2, values: vec![0, 1, unknown, 1, unknown, unknown, 0, 0, 1, unknown] };
    [one, several].map(files)
});

fn files(labels: Labels) -> Vec<(String, Vec<u8>)> {
    let dataset = Dataset {
        name: "star".to_owned(),
        graph: Graph {
            offsets: vec![0, 4, 5, 5, 6, 6],
            sources: vec![1, 2, 3, 4, 1, 0],
            data: EdgeData { held: Some(vec![0, 1, 0, 2, 0, 0]), ..Some(vec![0.5, 1.0, 2.0, -3.0, 0.25, 4.0]).into() },
        },
        features: Features::Sparse {
            columns: 9,
            offsets: vec![0, 2, 2, 3, 3, 5],
            indices: vec![0, 8, 4, 1, 2],
            values: vec![1.0, 2.0, 3.0, 4.0, 5.0],
        },
        exact: Default::default(),
        labels,
        splits: vec![Split { roles: vec![1, 2, 4, 0, 1] }],
        ids: Ids::Strings(["ä", "", "b c", "d\n", "日本"].map(str::to_owned).to_vec()),
        about: laconic_graph::about::About::default(),
        negatives: Some([
            GivenPairs { sources: vec![3, 4], targets: vec![1, 2], ..GivenPairs::default() },
            GivenPairs { sources: vec![4], targets: vec![0], others: vec![2, 1], each: 2, relations: vec![] },
        ]),
    };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let dir = folder.path().join("parts");
    let parts = cut(&dataset, Some(0), &[0, 1, 0, 1, 1], 2).expect("a valid assignment");
    let provenance = Provenance { method: "given".to_owned(), seed: 0 };
    write_parts(&dir, &parts, &provenance, false).expect("room for small files");
    let meta = open_meta(&dir).expect("what was just written");
    let parts = meta.files.iter().flat_map(|(part, entry)| entry.files.keys().map(move |f| format!("part-{part}/{f}")));
    let names = parts.chain([META.to_owned()]);
    names.map(|name| (name.clone(), std::fs::read(dir.join(name)).expect("what was just written"))).collect()
}

/// Writes the files with one changed, and the checksums that belong to them.
fn write(dir: &Path, mut files: Vec<(String, Vec<u8>)>, changed: usize, input: &[u8]) {
    apply(input, &mut files[changed].1);
    let (_, meta) = files.pop().expect("the meta data comes last");
    let mut meta_text = meta.clone();
    if let Ok(mut meta) = serde_json::from_slice::<Meta>(&meta) {
        for (name, bytes) in &files {
            let (part, file) = name.split_once('/').expect("a file lies in its part's folder");
            let part = part.strip_prefix("part-").and_then(|part| part.parse().ok()).expect("part-NUMBER");
            if let Some(entry) = meta.files.get_mut(&part).and_then(|entry| entry.files.get_mut(file)) {
                entry.bytes = bytes.len() as u64;
                entry.blake3 = blake3::hash(bytes).to_hex().to_string();
            }
        }
        // The checksum is that of the object without its last field.
        meta.blake3 = String::new();
        let text = serde_json::to_string(&meta).expect("meta data is plain data");
        let checked = text.replace(",\"blake3\":\"\"}", "}");
        meta.blake3 = blake3::hash(checked.as_bytes()).to_hex().to_string();
        meta_text = serde_json::to_vec(&meta).expect("meta data is plain data");
    }
    for (name, bytes) in files.iter().chain([&(META.to_owned(), meta_text)]) {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("room for small files");
        std::fs::write(path, bytes).expect("room for small files");
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let unchanged = input.is_empty();
    let (which, input) = choice(input);
    let (files, changed) = (&FOLDERS[which % 2], which / 2);
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    write(folder.path(), files.clone(), changed % files.len(), input);
    if let Err(error) = open_meta(folder.path()) {
        assert!(!unchanged, "the valid folder is refused: {error}");
        return;
    }
    let mut parts = Vec::new();
    for part in 0..2 {
        match open_part(folder.path(), part) {
            Ok(part) => {
                part.check().expect("a part that opens is sound");
                parts.push(part);
            }
            Err(error) => assert!(!unchanged, "the valid part is refused: {error}"),
        }
    }
    let Some(first) = parts.first() else { return };
    let planned = Plan::with(&Members::default(), &Config::default(), &first.global);
    assert!(planned.is_ok() || !unchanged, "nothing can be trained on the valid folder");
    match plan_all(&parts, true) {
        Ok(planned) => {
            for (part, (_, topology)) in parts.into_iter().zip(planned) {
                let (local, _) = Local::new(part, topology, false);
                assert_eq!(local.masks[0].len(), local.ids.len());
            }
        }
        Err(error) => assert!(!unchanged, "the valid parts do not go together: {error}"),
    }
});
