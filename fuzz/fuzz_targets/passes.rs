//! What is cut without being read whole, in passes: an interchange npz and a folder of arrays.
#![no_main]

use laconic_fuzz::{choice, fixtures, pass};
use laconic_graph::limits::Limits;
use laconic_graph::read::passes::{ArrayFolder, NpzPasses};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let limits = Limits::default();
    let (which, rest) = choice(input);
    match which % 2 {
        0 => pass(fixtures::interchange_plain(), rest, |path| Ok(Box::new(NpzPasses::open(path, &limits)?))),
        _ => pass(fixtures::array_folder(), rest, |path| Ok(Box::new(ArrayFolder::open(path, &limits)?))),
    }
});
