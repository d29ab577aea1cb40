//! What is cut without being read whole, in passes: an interchange npz, a folder of arrays and an edge list.
#![no_main]

use laconic_fuzz::{choice, fixtures, pass};
use laconic_graph::limits::Limits;
use laconic_graph::read::ReadOptions;
use laconic_graph::read::passes::{ArrayFolder, EdgeTable, NpzPasses};

/// For the ids of an edge list.
const MEMORY: u64 = 64 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let limits = Limits::default();
    let (which, rest) = choice(input);
    match which % 3 {
        0 => pass(fixtures::interchange_plain(), rest, |path| Ok(Box::new(NpzPasses::open(path, &limits)?))),
        1 => pass(fixtures::array_folder(), rest, |path| Ok(Box::new(ArrayFolder::open(path, &limits)?))),
        _ => pass(fixtures::numbered_edges(), rest, |path| {
            Ok(Box::new(EdgeTable::open(path, &ReadOptions::default(), MEMORY)?))
        }),
    }
});
