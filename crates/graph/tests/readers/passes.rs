//! What is read in passes is what is read whole, however the file stores it, and whatever is broken in it.

use std::path::Path;

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::error::Result;
use laconic_graph::limits::Limits;
use laconic_graph::read::passes::{Id, Input, NpzPasses};
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::source::EdgeSource;

use crate::fixtures::{Content, Fixture, interchange_plain, npy, npz, uint8};

/// What passes over the file come to, put together as a dataset.
fn in_passes(path: &Path) -> Result<Dataset> {
    let input = NpzPasses::open(path, &Limits::default())?;
    let (mut sources, mut targets, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 {
        sources.clear();
        targets.clear();
        input.pass(&mut |pairs| {
            sources.extend(pairs.iter().map(|pair| pair.0 as u32));
            targets.extend(pairs.iter().map(|pair| pair.1 as u32));
            Ok(())
        })?;
    }
    input.features(&mut |piece| {
        values.extend_from_slice(piece);
        Ok(())
    })?;
    let how = BuildOptions { symmetrise: !input.is_directed(), ..BuildOptions::default() };
    let (columns, classes, roles) = (input.columns(), input.classes(), input.roles()?);
    let integer = |node| match input.id(node)? {
        Id::Integer(id) => Some(id),
        Id::Text(_) => panic!("an npz is read in passes where ids are integers"),
    };
    let ids: Vec<i64> = (0..input.nodes()).filter_map(integer).collect();
    Ok(Dataset {
        name: input.name(),
        graph: build_graph(input.nodes() as usize, sources, targets, None, how)?.0,
        features: if columns == 0 { Features::None } else { Features::Dense { columns, values: values.into() } },
        labels: if classes == 0 { Labels::None } else { Labels::Single { classes, values: input.labels()? } },
        splits: if roles.is_empty() { Vec::new() } else { vec![Split { roles }] },
        ids: if ids.is_empty() { Ids::Row } else { Ids::Integers(ids) },
        about: input.about(),
        exact: Default::default(),
        negatives: None,
    })
}

fn assert_same(found: &Dataset, expected: &Dataset, what: &dyn std::fmt::Debug) {
    let roles = |of: &Dataset| of.splits.iter().map(|split| split.roles.clone()).collect::<Vec<_>>();
    assert!(found.graph == expected.graph, "{what:?}: another graph");
    assert_eq!((&found.features, &found.labels), (&expected.features, &expected.labels), "{what:?}");
    assert_eq!((roles(found), &found.ids), (roles(expected), &expected.ids), "{what:?}");
    assert_eq!((&found.name, &found.about), (&expected.name, &expected.about), "{what:?}");
}

fn members(fixture: &mut Fixture) -> &mut Vec<(&'static str, Vec<u8>)> {
    match &mut fixture.files[0].1 {
        Content::Npz(members) => members,
        Content::Bytes(_) => unreachable!("an archive"),
    }
}

/// Both ways to read it; the first of several splits counts.
fn both(fixture: &Fixture) -> [std::result::Result<Dataset, String>; 2] {
    let place = tempfile::tempdir().unwrap();
    let path = fixture.write(place.path());
    let mut whole = read(&path, &ReadOptions::default());
    whole.iter_mut().for_each(|dataset| dataset.splits.truncate(1));
    [whole, in_passes(&path).and_then(Dataset::checked)].map(|read| read.map_err(|error| error.to_string()))
}

#[test]
fn an_archive_read_in_passes_is_the_archive_read_whole() {
    let edges = 40_000usize;
    let ends = |edge: usize| [(edge * edge % 9973) as u32, (edge * 31 % 10_007) as u32];
    let in_pairs: Vec<u32> = (0..edges).flat_map(ends).collect();
    let in_rows: Vec<u32> = (0..2).flat_map(|end| (0..edges).map(move |edge| ends(edge)[end])).collect();
    let array = |ends: &[u32]| npy("<u4", &[2, edges], ends.iter().map(|end| end.to_le_bytes()));
    let fortran = |ends: &[u32]| {
        let text = "'fortran_order': False";
        let mut bytes = array(ends);
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        bytes[at..at + text.len()].copy_from_slice(b"'fortran_order': True ");
        bytes
    };
    let plain = interchange_plain();
    let mut cases = vec![("as it is", plain.clone())];
    for (what, bytes) in [("many edges", array(&in_rows)), ("sources and targets by turns", fortran(&in_pairs))] {
        let mut fixture = plain.clone();
        *members(&mut fixture) = vec![("edge_index", bytes), ("directed", uint8(&[1], &[0]))];
        cases.push((what, fixture));
    }
    for (what, fixture) in cases {
        let [whole, passed] = both(&fixture);
        let whole = whole.unwrap();
        assert!(whole.graph.edges() > 0);
        assert_same(&passed.unwrap(), &whole, &what);
    }
}

/// With any byte of any array changed it is refused, or is what it is when it is read whole.
#[test]
fn a_broken_archive_is_refused_in_passes_or_means_what_it_does_whole() {
    let (mut refused, mut taken) = (0, 0);
    let count = members(&mut interchange_plain()).len();
    for member in 0..count {
        let length = members(&mut interchange_plain())[member].1.len();
        for (place, new) in (0..length).flat_map(|place| [(place, 0xff), (place, 1)]) {
            let mut fixture = interchange_plain();
            members(&mut fixture)[member].1[place] = new;
            match both(&fixture) {
                [Ok(whole), Ok(passed)] => {
                    assert_same(&passed, &whole, &(member, place, new));
                    taken += 1;
                }
                [Err(_), Ok(_)] => panic!("{member} {place} {new}: taken in passes alone"),
                _ => refused += 1,
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} {taken}");
    let bytes = npz(members(&mut interchange_plain()));
    for end in (0..bytes.len()).step_by(7) {
        let mut fixture = interchange_plain();
        fixture.files[0].1 = Content::Bytes(bytes[..end].to_vec());
        let [_, passed] = both(&fixture);
        assert!(passed.is_err(), "{end}");
    }
}
