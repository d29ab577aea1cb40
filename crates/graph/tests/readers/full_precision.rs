//! Numbers that 32 bits do not hold are standardised as they were given, however features are stored.

use crate::fixtures::{self, Content, Fixture, int64, npy};
use laconic_graph::dataset::{Dataset, Features, Split};
use laconic_graph::info::check;
use laconic_graph::limits::Limits;
use laconic_graph::prepare::{rescale, row_normalise, standardise};
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::write::write_interchange;

/// So many nodes have the numbers from 10^9 on, of which `f32` has one in 64.
const ROWS: usize = 192;

fn numbers() -> impl Iterator<Item = i64> {
    (0..ROWS as i64).map(|step| 1_000_000_000 + step)
}

/// What is left of them, by the mean and the deviation of 0, 1, … 191.
fn expected(row: usize) -> f64 {
    (row as f64 - 95.5) / ((192.0 * 192.0 - 1.0) / 12.0f64).sqrt()
}

fn float64(numbers: impl Iterator<Item = f64>) -> Vec<u8> {
    let numbers: Vec<f64> = numbers.collect();
    npy("<f8", &[numbers.len()], numbers.iter().map(|number| number.to_le_bytes()))
}

/// The first column has the numbers, the second 0.1 in one row.
fn csr(data: &str, file: &str) -> Fixture {
    let mut fixture = if file == "attr" { fixtures::gnn_benchmark() } else { fixtures::interchange_sparse() };
    let (mut indices, mut offsets, mut values) = (Vec::new(), vec![0], Vec::new());
    for (row, number) in numbers().enumerate() {
        let number = number as f64;
        // In two pieces, as matrices have them that were added up.
        let mut stored = if data == "pieces" { vec![(0, number - 5e8), (0, 5e8)] } else { vec![(0, number)] };
        if row == 7 && data != "<i8" {
            stored.insert(0, (1, 0.1));
        }
        indices.extend(stored.iter().map(|item| item.0));
        values.extend(stored.iter().map(|item| item.1));
        offsets.push(indices.len() as i64);
    }
    let stored = values.len();
    let integers = || int64(&[stored], &values.iter().map(|&value| value as i64).collect::<Vec<_>>());
    let data = if data == "<i8" { integers() } else { float64(values.iter().copied()) };
    let parts = [
        ("data", data),
        ("indices", int64(&[stored], &indices)),
        ("indptr", int64(&[ROWS + 1], &offsets)),
        ("shape", int64(&[2], &[ROWS as i64, 2])),
    ];
    let Content::Npz(members) = &mut fixture.files[0].1 else { panic!("an archive") };
    let edges: Vec<i64> = (0..ROWS as i64).collect();
    members.retain(|(name, _)| *name == "edge_index" || name.starts_with("adj_"));
    for (name, array) in members.iter_mut() {
        match *name {
            "adj_indices" => *array = int64(&[ROWS], &edges),
            "adj_indptr" => *array = int64(&[ROWS + 1], &(0..=ROWS as i64).collect::<Vec<_>>()),
            "adj_shape" => *array = int64(&[2], &[ROWS as i64; 2]),
            _ => {}
        }
    }
    let names = match file {
        "attr" => ["attr_data", "attr_indices", "attr_indptr", "attr_shape"],
        _ => ["features_data", "features_indices", "features_indptr", "features_shape"],
    };
    members.extend(names.into_iter().zip(parts).map(|(name, (_, array))| (name, array)));
    fixture
}

/// A text file of the numbers in one column and of 0.1 in another.
fn lines() -> Content {
    Content::Bytes(numbers().map(|number| format!("{number},0.1\n")).collect::<String>().into_bytes())
}

fn ogb() -> Fixture {
    let mut fixture = fixtures::ogb();
    fixture.files.retain(|(name, _)| name.contains("raw/edge"));
    fixture.files.push(("arxiv/raw/num-node-list.csv".to_owned(), Content::Bytes(format!("{ROWS}\n").into_bytes())));
    fixture.files.push(("arxiv/raw/node-feat.csv".to_owned(), lines()));
    fixture
}

/// Two authors without features, and as many papers, which train.
fn ogb_typed() -> Fixture {
    let mut fixture = fixtures::ogb_typed();
    for (name, content) in &mut fixture.files {
        match name.rsplit('/').next().unwrap_or_default() {
            "num-node-dict.csv" => *content = Content::Bytes(format!("author,paper\n2,{ROWS}\n").into_bytes()),
            "node-feat.csv" => *content = lines(),
            "node-label.csv" => *content = Content::Bytes("0\n".repeat(ROWS).into_bytes()),
            "train.csv" => {
                *content = Content::Bytes((0..ROWS).map(|row| format!("{row}\n")).collect::<String>().into_bytes())
            }
            "valid.csv" | "test.csv" => *content = Content::Bytes(Vec::new()),
            _ => {}
        }
    }
    fixture
}

fn read_again(fixture: &Fixture) -> Dataset {
    let folder = tempfile::tempdir().unwrap();
    read(&fixture.write(folder.path()), &ReadOptions::default()).unwrap()
}

#[test]
fn numbers_of_sparse_rows_and_of_ogb_are_standardised_before_they_are_rounded() {
    let sparse = [("<f8", "attr"), ("<i8", "attr"), ("<f8", "features"), ("<i8", "features"), ("pieces", "features")];
    let named = sparse.map(|(data, file)| (format!("{file} of {data}"), csr(data, file), (0, ROWS)));
    let others = [("ogb", ogb(), (0, ROWS)), ("ogb of types", ogb_typed(), (2, ROWS + 1))];
    let others = others.map(|(name, fixture, given)| (name.to_owned(), fixture, given));
    for (name, fixture, (first, different)) in named.into_iter().chain(others) {
        let mut dataset = read_again(&fixture);
        let said: Vec<String> = check(&dataset).into_iter().map(|finding| finding.what).collect();
        // Rounded to multiples of 64 they are four; a type's column has 0 for the others as well.
        let lost = format!("{different} different numbers of column");
        let kept = format!("fall together to {} in the precision of 32 bits", different - ROWS + 4);
        assert!(said.iter().any(|what| what.contains(&lost) && what.contains(&kept)), "{name}: {said:?}");
        let roles = dataset.splits.first().map(|split| split.roles.clone());
        assert!(roles.iter().flatten().filter(|&&role| role == Split::TRAIN).count() % ROWS == 0, "{name}");
        let prepared = (&mut dataset.features, &dataset.exact);
        let column = dataset.exact.columns[0].column;
        let scale =
            standardise(prepared, roles.as_deref(), (&[], &dataset.about.node_types), &Limits::default()).unwrap();
        let found: Vec<f32> = match &dataset.features {
            Features::Dense { columns, values } => values.chunks(*columns).skip(first).map(|row| row[column]).collect(),
            // Nodes of a type store its columns alone.
            Features::Sparse { indices, values, .. } => {
                let stored = indices.iter().zip(values);
                stored.filter(|(of, _)| **of as usize == column).map(|(_, &value)| value).collect()
            }
            Features::None => panic!("{name}: no features"),
        };
        assert_eq!(found.len(), ROWS, "{name}");
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{name}: {ROWS} different numbers");
        for (row, &found) in found.iter().enumerate() {
            assert!((f64::from(found) - expected(row)).abs() < 1e-6, "{name}, row {row}: {found}");
        }
        // What is predicted is read once more, and scaled by what was found here.
        let mut new = read_again(&fixture);
        rescale((&mut new.features, &new.exact), (&scale, &new.about.node_types), &Limits::default()).unwrap();
        assert_eq!(new.features, dataset.features, "{name}");
    }
}

/// A number is kept where it stands close to the others of its column, and no column of rare ones is.
#[test]
fn sparse_columns_are_kept_apart_only_where_32_bits_lose_them() {
    let dataset = read_again(&csr("<f8", "features"));
    assert_eq!(dataset.exact.columns.iter().map(|of| of.column).collect::<Vec<_>>(), [0]);
    let given: Vec<f64> = dataset.exact.columns[0].values.iter().map(|wide| wide.value).collect();
    assert_eq!(given, numbers().map(|number| number as f64).collect::<Vec<_>>());
    let mut features = dataset.features;
    row_normalise(&mut features, &dataset.exact);
    let Features::Sparse { offsets, values, .. } = features else { panic!("sparse stays sparse") };
    let seven = &values[offsets[7] as usize..offsets[8] as usize];
    assert_eq!(seven, [(1_000_000_007.0 / 1_000_000_007.1) as f32, (0.1 / 1_000_000_007.1) as f32]);
}

/// What a type's numbers are is asked of its own nodes: beside the zeros of all others no column is far from 0.
#[test]
fn columns_of_types_keep_their_precision_through_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("typed.npz");
    let typed = ReadOptions { typed: true, ..ReadOptions::default() };
    let given = read_again(&ogb_typed());
    assert_eq!(given.exact.columns.len(), 1);
    write_interchange(&path, &given).unwrap();
    let found = read(&path, &typed).unwrap();
    assert_eq!((found.exact, found.features), (given.exact, given.features));

    // Two types that share columns: those of the first are close to 0, and each type gets all columns to itself.
    let types: Vec<i64> = (0..2 + ROWS as i64).map(|row| i64::from(row >= 2)).collect();
    let rows = [0.25, 0.5].into_iter().chain(numbers().map(|number| number as f64));
    let features: Vec<f64> = rows.flat_map(|number| [0.1, number]).collect();
    let members = [
        ("edge_index", int64(&[2, 1], &[0, 1])),
        ("node_type", int64(&[types.len()], &types)),
        ("features", npy("<f8", &[types.len(), 2], features.iter().map(|number| number.to_le_bytes()))),
    ];
    std::fs::write(&path, fixtures::npz(&members)).unwrap();
    let shared = read(&path, &typed).unwrap();
    let kept: Vec<usize> = shared.exact.columns.iter().map(|of| of.column).collect();
    assert_eq!(kept, [4], "columns 0 to 2 are those of the first type");
    let numbers: Vec<f64> = numbers().map(|number| number as f64).collect();
    let found: Vec<f64> = shared.exact.columns[0].values.iter().map(|wide| wide.value).collect();
    assert_eq!((&found[..2], &found[2..]), (&[0.0, 0.0][..], &numbers[..]));
    let as_features = |row: usize| match &shared.features {
        Features::Sparse { offsets, values, .. } => values[offsets[row] as usize..offsets[row + 1] as usize].to_vec(),
        _ => panic!("types have sparse features"),
    };
    assert_eq!(as_features(3), [0.1, numbers[1] as f32, 1.0]);
}
