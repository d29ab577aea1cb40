//! Arrays of NumPy, lent to readers without a copy.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::Arc;

use laconic_array::Lend;
use laconic_graph::npy::{Header, Kind};
use laconic_graph::read::arrays::{LentArray, Steps};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The bytes of an array that Python keeps alive as long as this is.
struct Held {
    /// Whose the bytes are.
    _array: Py<PyUntypedArray>,
    bytes: *const u8,
    len: usize,
}

// SAFETY: the bytes are only read, and stay where they are as long as the array lives, which `_array` sees to. Whoever
// writes into the array in Python while a graph reads it changes that graph; the documentation of `Graph` says so.
// Memory that a tensor moves is looked for by `Graph._graph` in Python before each use.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Lend<u8> for Held {
    fn values(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: from the first byte of the array's items in memory to the last there are so many, which live as
        // long as this does.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len) }
    }
}

/// An array where it lies, also one whose items do not stand one behind the other.
///
/// # Errors
/// If NumPy does not say what its items are.
pub fn lent(array: &Bound<'_, PyUntypedArray>) -> PyResult<LentArray> {
    let kind = match array.dtype().kind() {
        b'b' => Kind::Bool,
        b'i' => Kind::Int,
        b'u' => Kind::Uint,
        b'f' => Kind::Float,
        b'S' => Kind::Bytes,
        b'U' => Kind::Unicode,
        // What NumPy has no type for comes as records of its bits; see `sources/numpy.py`.
        b'V' if array.dtype().names().is_some_and(|names| names == ["bfloat16"]) => Kind::Bfloat,
        _ => Kind::Other,
    };
    let (item_bytes, shape) = (array.dtype().itemsize(), array.shape());
    let header = Header {
        kind,
        item_bytes,
        big_endian: array.dtype().byteorder() == b'>',
        fortran: array.is_fortran_contiguous() && !array.is_c_contiguous(),
        shape: shape.iter().map(|&size| size as u64).collect(),
        descr: array.dtype().str()?.to_string(),
    };
    // SAFETY: the pointer is that of a live array of NumPy.
    let first = unsafe { (*numpy::npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).data.cast::<u8>() };
    let (mut before, mut len, mut steps) = (0, array.len() * item_bytes, None);
    if !array.is_contiguous() {
        // How far items go from the first, before it and behind it.
        let ends = shape.iter().zip(array.strides()).map(|(&size, &step)| step * size.saturating_sub(1) as isize);
        let [least, most] = ends.fold([0, 0], |[least, most], end| [least + end.min(0), most + end.max(0)]);
        (before, len) = (least.unsigned_abs(), most.abs_diff(least) + item_bytes);
        steps = Some(Steps { start: before, sizes: array.strides().to_vec() });
    }
    let bytes = first.cast_const().wrapping_sub(before);
    let held = Held { _array: array.clone().unbind(), bytes, len };
    Ok(LentArray { header, bytes: Arc::new(held), steps })
}

/// How a tensor of DLPack begins.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    dimensions: i32,
    /// What its numbers are: of which kind, of how many bits, and how many in one item.
    kind: u8,
    bits: u8,
    lanes: u16,
}

/// What DLPack calls whole numbers without a sign.
const UNSIGNED: u8 = 1;
/// What it calls bfloat16.
const BFLOAT: u8 = 4;

/// Makes bfloat16 that DLPack lends whole numbers of as many bits, which NumPy has; whether it was bfloat16.
///
/// # Errors
/// If it is no tensor of DLPack that nobody has taken yet.
#[pyfunction]
pub fn mark_bfloat16(capsule: &Bound<'_, PyCapsule>) -> PyResult<bool> {
    let tensor = capsule.pointer_checked(Some(c"dltensor"))?.cast::<Tensor>().as_ptr();
    // SAFETY: what is called so begins with a tensor, and is whose the capsule is: who takes it takes it as it is then.
    let Tensor { kind, bits, lanes, .. } = unsafe { &mut *tensor };
    let is_bfloat = (*kind, *bits, *lanes) == (BFLOAT, 16, 1);
    if is_bfloat {
        *kind = UNSIGNED;
    }
    Ok(is_bfloat)
}
