//! NumPy arrays and SciPy sparse matrices inside pickles.

use super::arrays::Array;
use super::pickle::{Id, Node, Pickle};
use crate::npy::{Kind, parse_descr};

/// The globals that pickled arrays, matrices and dictionaries of lists may name, in the spellings of old and new
/// Python, NumPy and SciPy.
pub const GLOBALS: &[(&str, &str)] = &[
    ("copy_reg", "_reconstructor"),
    ("copyreg", "_reconstructor"),
    ("__builtin__", "object"),
    ("builtins", "object"),
    ("__builtin__", "list"),
    ("builtins", "list"),
    ("collections", "defaultdict"),
    ("_codecs", "encode"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("scipy.sparse.csr", "csr_matrix"),
    ("scipy.sparse._csr", "csr_matrix"),
];

/// A matrix in compressed sparse rows, not checked yet.
pub struct SparseMatrix {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: i64,
    /// Row boundaries, as stored.
    pub offsets: Vec<i64>,
    /// The column of each value.
    pub indices: Vec<u32>,
    /// The stored values.
    pub values: Vec<f32>,
}

/// The sparse matrix at `id`.
pub fn sparse_matrix(pickle: &Pickle, id: Id) -> Result<SparseMatrix, String> {
    let expected = || "expected a scipy csr_matrix".to_owned();
    let (_, name, object) = pickle.object(id).ok_or_else(expected)?;
    let class = match name {
        "_reconstructor" => {
            let class = pickle.items(object.args).and_then(|args| args.first()).ok_or_else(expected)?;
            pickle.global(*class).ok_or_else(expected)?.1
        }
        name => name,
    };
    if class != "csr_matrix" {
        return Err(expected());
    }
    let state = object.state.and_then(|state| pickle.entries(state)).ok_or_else(expected)?;
    let member = |name: &str| {
        let found = state.iter().find(|entry| pickle.text(entry.0) == Some(name));
        found.map(|entry| entry.1).ok_or_else(|| format!("the csr_matrix has no '{name}'"))
    };
    let shape: Vec<i64> =
        pickle.items(member("_shape")?).ok_or_else(expected)?.iter().map_while(|&d| pickle.int(d)).collect();
    let &[rows, columns] = &shape[..] else { return Err(expected()) };
    let whole = |name: &str| -> Result<Vec<i64>, String> {
        let values = array(pickle, member(name)?)?.values;
        Ok(values.into_iter().map(|v| v as i64).collect())
    };
    let indices = whole("indices")?.into_iter().map(u32::try_from).collect::<Result<Vec<u32>, _>>();
    Ok(SparseMatrix {
        rows: usize::try_from(rows).map_err(|_| expected())?,
        columns,
        offsets: whole("indptr")?,
        indices: indices.map_err(|_| "a column index of the csr_matrix is negative".to_owned())?,
        values: array(pickle, member("data")?)?.values.into_iter().map(|v| v as f32).collect(),
    })
}

/// The numeric array at `id`, in C order.
pub fn array(pickle: &Pickle, id: Id) -> Result<Array<f64>, String> {
    let expected = || "expected a numpy array".to_owned();
    let (_, name, object) = pickle.object(id).ok_or_else(expected)?;
    let state = object.state.and_then(|state| pickle.items(state)).filter(|_| name == "_reconstruct");
    // NumPy's own state: version, shape, type, whether in Fortran order, data.
    let &[_, shape, dtype, fortran, data] = state.ok_or_else(expected)? else { return Err(expected()) };
    let shape =
        pickle.items(shape).ok_or_else(expected)?.iter().map(|&d| pickle.int(d).and_then(|d| usize::try_from(d).ok()));
    let shape: Vec<usize> = shape.collect::<Option<_>>().ok_or_else(expected)?;
    let (kind, item_bytes, big_endian) = dtype_of(pickle, dtype)?;
    let encoded;
    let data = match pickle.node(data) {
        Node::Bytes(bytes) => bytes,
        _ => {
            encoded = encoded_bytes(pickle, data).ok_or_else(|| "expected the array's data as bytes".to_owned())?;
            &encoded
        }
    };
    let count = shape.iter().try_fold(1usize, |product, &d| product.checked_mul(d));
    let bytes = count.and_then(|count| count.checked_mul(item_bytes));
    if item_bytes == 0 || bytes != Some(data.len()) {
        return Err(format!("an array of shape {shape:?} does not fit its {} bytes of data", data.len()));
    }
    if pickle.int(fortran) == Some(1) && shape.len() > 1 {
        return Err("arrays in Fortran order are not known here".to_owned());
    }
    let values = data.chunks_exact(item_bytes).map(|item| number(item, kind, big_endian));
    let values = values
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{kind:?} of {item_bytes} bytes cannot be read as numbers"))?;
    Ok(Array { shape, values })
}

/// Kind, size and endianness of the `numpy.dtype` at `id`.
fn dtype_of(pickle: &Pickle, id: Id) -> Result<(Kind, usize, bool), String> {
    let expected = || "expected a numpy type of numbers".to_owned();
    let (_, _, object) = pickle.object(id).filter(|object| object.1 == "dtype").ok_or_else(expected)?;
    let spelled = pickle.items(object.args).and_then(|args| pickle.text(*args.first()?)).ok_or_else(expected)?;
    let (kind, item_bytes, _) = parse_descr(spelled).map_err(|e| e.to_string())?;
    // The state is (version, byte order, …); the spelling in the arguments says nothing of the order.
    let order = object.state.and_then(|state| pickle.text(*pickle.items(state)?.get(1)?));
    Ok((kind, item_bytes, order == Some(">")))
}

/// Python 3 writes bytes in old protocols as `_codecs.encode(text, 'latin1')`: one byte a character.
fn encoded_bytes(pickle: &Pickle, id: Id) -> Option<Vec<u8>> {
    let (_, _, object) = pickle.object(id).filter(|object| object.1 == "encode")?;
    let text = pickle.text(*pickle.items(object.args)?.first()?)?;
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

/// One item as a floating-point number, which holds every value that these files use exactly.
fn number(item: &[u8], kind: Kind, big_endian: bool) -> Option<f64> {
    let mut bytes = [0u8; 8];
    let size = item.len();
    bytes.get_mut(..size)?.copy_from_slice(item);
    if big_endian {
        bytes[..size].reverse();
    }
    let unsigned = u64::from_le_bytes(bytes);
    let shift = 64 - 8 * size as u32;
    match (kind, size) {
        (Kind::Bool, 1) => Some(unsigned as f64),
        (Kind::Uint, 1 | 2 | 4 | 8) => Some(unsigned as f64),
        (Kind::Int, 1 | 2 | 4 | 8) => Some(((unsigned << shift) as i64 >> shift) as f64),
        (Kind::Float, 4) => Some(f64::from(f32::from_bits(unsigned as u32))),
        (Kind::Float, 8) => Some(f64::from_bits(unsigned)),
        _ => None,
    }
}
