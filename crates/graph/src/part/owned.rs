//! Who owns what a part needs, in the part's file.

use crate::error::Result;
use crate::owners::Owners;
use crate::part::Part;
use crate::part::tensors::{Tensor, Tensors};

const NAMES: [&str; 3] = ["owned_ids", "owners", "owner_rows"];

/// The tensors of a part's file that hold it.
pub(super) fn tensors(part: &Part) -> impl Iterator<Item = Tensor<'_>> {
    let [ids, parts, rows] = NAMES;
    part.owners.iter().flat_map(move |owners| {
        [Tensor::vector(ids, &owners.ids), Tensor::vector(parts, &owners.parts), Tensor::vector(rows, &owners.rows)]
    })
}

/// That of a file; `None` where it holds none.
pub(super) fn read(file: &Tensors) -> Result<Option<Owners>> {
    if !NAMES.iter().any(|name| file.has(name)) {
        return Ok(None);
    }
    let [ids, parts, rows] = NAMES;
    Ok(Some(Owners { ids: file.vector(ids)?, parts: file.vector(parts)?, rows: file.vector(rows)? }))
}

/// Whether this is the name of such a tensor.
pub(super) fn is_name(name: &str) -> bool {
    NAMES.contains(&name)
}
