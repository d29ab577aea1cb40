//! `none`: no row travels while training; each worker trains on its own part, with the edges to others deleted.

use laconic_wire::WireError;
use laconic_wire::codec::Options;

use super::{Made, Selection, SelectionKind};

pub(super) const KIND: SelectionKind =
    SelectionKind { name: "none", options: &["degrees"], redraws: false, cuts: true, covers: false, build };

/// Options: `degrees`, "local" (the default): those of the graph without the edges between workers, so that a mean is
/// over the neighbours that are here; or "global": those of the whole graph, so that a mean counts the others as rows
/// of zeros.
fn build(options: &Options) -> Result<Made, WireError> {
    let local_degrees = match options.text("degrees")? {
        None | Some("local") => true,
        Some("global") => false,
        Some(_) => return Err(options.refuse("degrees", "\"local\" or \"global\"")),
    };
    Ok(Some(Box::new(Nothing { local_degrees })))
}

struct Nothing {
    local_degrees: bool,
}

impl Selection for Nothing {
    fn count(&self, _rows: usize) -> usize {
        0
    }

    fn deletes_edges(&self) -> bool {
        self.local_degrees
    }
}
