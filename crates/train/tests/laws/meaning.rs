//! A model is more than weights: what its inputs and classes mean is kept with it.

use laconic_graph::about::{About, Scale};
use laconic_graph::dataset::{Dataset, Features, Split};
use laconic_graph::read::{ReadOptions, read};
use laconic_train::Members;
use laconic_train::config::Config;
use laconic_train::record::weights;
use laconic_train::run::other::open_other;
use laconic_train::run::source::prepared;

use crate::fixture::{FEATURES, config, folder, graph, into_folder, multi_label, try_run, weighted};

fn named(dataset: Dataset) -> Dataset {
    let classes = (0..dataset.labels.classes()).map(|class| format!("class {class}, \"ß\"")).collect();
    let features = (0..FEATURES).map(|column| format!("f{column}")).collect();
    Dataset { about: About { classes, features, ..About::default() }, ..dataset }
}

#[test]
fn a_model_says_what_its_classes_and_features_mean_of_which_data_it_is_and_by_which_program() {
    for (dataset, multi, weights_given) in
        [(graph(60, 3), false, false), (weighted(60, 3), false, true), (multi_label(60, 3), true, false)]
    {
        let (dataset, place) = (named(dataset), folder());
        let out = place.path().join("run");
        let outcomes = try_run(&config(&["train.epochs=1"]), &dataset, 2, into_folder(&out)).expect("a run");
        let card = weights::read_of_run(&out).expect("a model").card;
        assert_eq!(card.about, dataset.about);
        assert_eq!(card.data_digest, laconic_graph::digest::digest(&dataset));
        assert_eq!((card.version.as_str(), card.inputs, card.classes), (env!("CARGO_PKG_VERSION"), FEATURES, 3));
        assert_eq!((card.multi_label, card.weighted), (multi, weights_given));
        let summary = outcomes[0].summary.as_ref().expect("worker 0 sums up");
        assert_eq!(summary.class_names, dataset.about.classes);
    }
}

/// Means and deviations as a plain loop over the training nodes finds them.
#[test]
fn the_scale_that_features_are_prepared_with_is_kept_with_the_data() {
    let (dataset, place) = (graph(60, 3), folder());
    let path = place.path().join("graph.npz");
    laconic_graph::write::write_interchange(&path, &dataset).expect("written");
    let about = |how: &str| {
        let keys = [format!("data.path={}", path.display()), format!("data.features={how}")];
        prepared(&Config::parse("", &keys).expect("keys").data).expect("a dataset").dataset.about
    };
    assert!(about("given").scale.is_given());
    assert_eq!(about("row-normalised").scale, Scale::RowNormalised);
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    let training = |row: &usize| dataset.splits[0].roles[*row] & Split::TRAIN != 0;
    let rows: Vec<usize> = (0..dataset.graph.nodes()).filter(training).collect();
    let Scale::Standardised { means, deviations, .. } = about("standardised").scale else { panic!("means") };
    for column in 0..*columns {
        let of_column: Vec<f64> = rows.iter().map(|row| f64::from(values[row * columns + column])).collect();
        let mean = of_column.iter().sum::<f64>() / of_column.len() as f64;
        let variance = of_column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / of_column.len() as f64;
        assert!((means[column] - mean).abs() < 1e-12 && (deviations[column] - variance.sqrt()).abs() < 1e-12);
    }
}

/// Seconds since 1970, of which `f32` has one in 128; a category and a flag beside them. The same from the tables, from
/// the npz that they are converted to, and from tables that a model is asked about.
#[test]
fn numbers_of_tables_are_standardised_before_they_are_rounded_and_new_ones_by_the_means_of_training() {
    let place = folder();
    let (edges, nodes) = (place.path().join("e.csv"), place.path().join("n.csv"));
    let seconds = |row: i64| 1_764_230_400 + row * 77 % 600;
    let line = |row: i64| {
        let (colour, split) = (["red", "blue"][row as usize % 2], ["train", "val", "test"][row as usize % 3]);
        format!("{row},{},{colour},{},{},{split}\n", seconds(row), i32::from(row % 5 == 0), row % 2)
    };
    let lines: String = (0..60).map(line).collect();
    std::fs::write(&nodes, format!("id,when,colour,vip,label,split\n{lines}")).expect("written");
    let lines: String = (0..60).map(|row| format!("{row},{}\n", (row + 1) % 60)).collect();
    std::fs::write(&edges, format!("src,dst\n{lines}")).expect("written");
    let options = ReadOptions { nodes: Some(nodes.clone()), symmetrise: true, ..ReadOptions::default() };
    let npz = place.path().join("converted.npz");
    laconic_graph::write::write_interchange(&npz, &read(&edges, &options).expect("tables")).expect("written");
    let made = |path: &std::path::Path, more: &[String]| {
        let keys: Vec<String> = [format!("data.path={}", path.display())].into_iter().chain(more.to_vec()).collect();
        prepared(&Config::parse("", &keys).expect("keys").data).expect("a dataset")
    };
    let of_tables = [format!("data.nodes_path={}", nodes.display()), "data.symmetrise=true".to_owned()];
    let tables = made(&edges, &of_tables);
    let mean = (0..60).step_by(3).map(|row| (seconds(row) - seconds(0)) as f64).sum::<f64>() / 20.0;
    let apart = |row: i64| (seconds(row) - seconds(0)) as f64 - mean;
    let deviation = ((0..60).step_by(3).map(|row| apart(row).powi(2)).sum::<f64>() / 20.0).sqrt();
    let Features::Dense { columns: 4, values } = &tables.dataset.features else { panic!("four columns") };
    for (row, found) in (0i64..).zip(values.chunks_exact(4)) {
        assert!((f64::from(found[0]) - apart(row) / deviation).abs() < 1e-6, "row {row}: {found:?}");
        let flags = [row % 2 == 1, row % 2 == 0, row % 5 == 0].map(|is| f32::from(u8::from(is)));
        assert_eq!(found[1..], flags, "blue, red, vip of row {row}");
    }
    assert!(tables.notes[0].contains("1 of 4 feature columns are standardised over training nodes"));
    let converted = made(&npz, &[]).dataset;
    assert_eq!((&converted.features, &converted.about), (&tables.dataset.features, &tables.dataset.about));
    // One word turns it off, and what is lost is said.
    let given = made(&npz, &["data.features=given".to_owned()]);
    let Features::Dense { values, .. } = &given.dataset.features else { panic!("dense features") };
    assert!(values[0] == 1_764_230_400.0 && given.dataset.about.scale.is_given());
    assert!(given.notes.iter().any(|note| note.contains("60 different numbers of column 'when' fall together to 6")));
    assert!(given.notes.iter().any(|note| note.contains("feature columns differ in scale")));
    let out = place.path().join("run");
    try_run(&config(&["train.epochs=1"]), &tables.dataset, 1, into_folder(&out)).expect("a run");
    let card = weights::read_of_run(&out).expect("a model").card;
    let (members, plain) = (Members::default(), config(&[]));
    let mut new = open_other(&members, &plain, &edges, &options, &card, None, None).expect("new data");
    assert_eq!(new.take(0).expect("one part").features, tables.dataset.features);
}

/// A folder with a table a type is of tables as well, and so is the npz that it is converted to.
#[test]
fn numbers_of_tables_of_several_types_are_standardised_over_their_own_training_nodes() {
    let place = folder();
    let (tables, npz) = (place.path().join("shop"), place.path().join("shop.npz"));
    let write = |name: &str, header: &str, line: &dyn Fn(u32) -> String| {
        let path = tables.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, format!("{header}\n{}", (0..12).map(line).collect::<String>())).expect("written");
    };
    let income = |row: u32| 1e6 + 1000.0 * f64::from(row * 7 % 12);
    let split = |row: u32| ["train", "val", "test"][row as usize % 3];
    write("nodes/item.csv", "id,price", &|row| format!("{row},{}\n", row * row));
    write("nodes/user.csv", "id,income,vip,label,split", &|row| {
        format!("{row},{},{},{},{}\n", income(row), row % 2, row % 2, split(row))
    });
    write("edges/user__buys__item.csv", "source,target", &|row| format!("{row},{}\n", row * 5 % 12));
    laconic_graph::write::write_interchange(&npz, &read(&tables, &ReadOptions::default()).expect("tables"))
        .expect("written");
    let made = |path: &std::path::Path, more: &[&str]| {
        let path = format!("data.path={}", path.display());
        let keys: Vec<String> = [&path[..]].iter().chain(more).map(|key| key.to_string()).collect();
        prepared(&Config::parse("", &keys).expect("keys").data).expect("a dataset")
    };
    let found = made(&tables, &[]);
    assert!(
        found.notes[0].contains("2 of 5 feature columns are standardised over training nodes"),
        "{:?}",
        found.notes
    );
    // Users train in every third row; no item does, so that all of them count.
    let scaled = |of: &dyn Fn(u32) -> f64, over: &[u32]| {
        let count = over.len() as f64;
        let mean = over.iter().map(|&row| of(row)).sum::<f64>() / count;
        let deviation = (over.iter().map(|&row| (of(row) - mean).powi(2)).sum::<f64>() / count).sqrt();
        (0..12).map(|row| (of(row) - mean) / deviation).collect::<Vec<f64>>()
    };
    let prices = scaled(&|row| f64::from(row * row), &(0..12).collect::<Vec<u32>>());
    let incomes = scaled(&income, &[0, 3, 6, 9]);
    let Features::Sparse { columns: 5, offsets, indices, values } = &found.dataset.features else {
        panic!("{:?}", found.dataset.features)
    };
    for (row, ends) in offsets.windows(2).enumerate() {
        let vip = f64::from(u8::from(row % 2 == 1));
        let (columns, expected) = match row.checked_sub(12) {
            None => (0..2, vec![prices[row], 1.0]),
            Some(row) => (2..5, vec![incomes[row], vip, 1.0]),
        };
        let stored = ends[0] as usize..ends[1] as usize;
        assert_eq!(indices[stored.clone()], columns.collect::<Vec<u32>>(), "row {row}");
        let differs = values[stored].iter().zip(expected).any(|(found, of)| (f64::from(*found) - of).abs() > 1e-6);
        assert!(!differs, "row {row}");
    }
    let converted = made(&npz, &["data.typed=true"]).dataset;
    assert_eq!((&converted.features, &converted.about), (&found.dataset.features, &found.dataset.about));
    // Without types nobody could tell a column's own nodes.
    assert!(made(&npz, &[]).dataset.about.scale.is_given());
    let given = made(&tables, &["data.features=given"]).dataset;
    assert!(given.about.scale.is_given() && given.features != found.dataset.features);
}

/// As NumPy does it in `float64` over the training nodes, of OGB's text and of sparse rows; `f32` has one number in 64
/// there. A model that is asked about new data does the same.
#[test]
fn numbers_of_ogb_and_of_sparse_rows_are_standardised_before_they_are_rounded_and_new_ones_too() {
    let (place, rows) = (folder(), 192u32);
    let (ogb, npz) = (place.path().join("numbers"), place.path().join("sparse.npz"));
    let write = |name: &str, line: &dyn Fn(u32) -> Option<String>| {
        let path = ogb.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, (0..rows).filter_map(line).collect::<String>()).expect("written");
    };
    write("raw/edge.csv", &|row| Some(format!("{row},{}\n", (row + 1) % rows)));
    write("raw/num-node-list.csv", &|row| (row == 0).then(|| format!("{rows}\n")));
    write("raw/node-feat.csv", &|row| Some(format!("{}\n", 1_000_000_000 + row)));
    write("raw/node-label.csv", &|row| Some(format!("{}\n", row % 2)));
    for (remainder, role) in ["train", "valid", "test"].iter().enumerate() {
        write(&format!("split/x/{role}.csv"), &|row| (row as usize % 3 == remainder).then(|| format!("{row}\n")));
    }
    let given = read(&ogb, &ReadOptions::default()).expect("a folder of OGB");
    let Features::Dense { columns: 1, values } = given.features.clone() else { panic!("one column") };
    let offsets = (0..=u64::from(rows)).collect();
    let sparse = Features::Sparse { columns: 1, offsets, indices: vec![0; rows as usize], values: values.into_vec() };
    laconic_graph::write::write_interchange(&npz, &Dataset { features: sparse, ..given }).expect("written");
    // 0, 3, 6, … 189 train.
    let (mean, deviation) = (94.5, 3.0 * ((64.0 * 64.0 - 1.0) / 12.0f64).sqrt());
    for path in [&ogb, &npz] {
        let keys = [format!("data.path={}", path.display()), "data.features=standardised".to_owned()];
        let prepared = prepared(&Config::parse("", &keys).expect("keys").data).expect("a dataset").dataset;
        let Features::Dense { columns: 1, values } = &prepared.features else { panic!("one column") };
        assert!(values.len() == rows as usize && values.windows(2).all(|pair| pair[0] < pair[1]), "all different");
        for (row, &found) in values.iter().enumerate() {
            assert!((f64::from(found) - (row as f64 - mean) / deviation).abs() < 1e-6, "row {row}: {found}");
        }
        let out = place.path().join(format!("run of {}", prepared.name));
        try_run(&config(&["train.epochs=1"]), &prepared, 1, into_folder(&out)).expect("a run");
        let card = weights::read_of_run(&out).expect("a model").card;
        let (members, plain, options) = (Members::default(), config(&[]), ReadOptions::default());
        let mut new = open_other(&members, &plain, path, &options, &card, None, None).expect("new data");
        assert_eq!(new.take(0).expect("one part").features, prepared.features);
    }
}
