//! Codecs that are objects of Python: slow, and enough to try an idea.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};

use laconic_train::Members;
use laconic_wire::codec::{Codec, CodecId, CodecKind, CodecRegistry, Level, Message, Options, RowsMut, RowsRef, Store};
use laconic_wire::{Result, WireError};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// What a configuration calls all of them; the option says which: the number that [`Registered`] has given.
pub static PYTHON: CodecKind =
    CodecKind { name: "python", number: 47, options: &["object"], build, ..CodecKind::PLAIN };

/// An object with `bytes(rows, columns)`, `encode(rows)` and `decode(payload, rows, columns)`.
struct Object {
    codec: Py<PyAny>,
    raised: Option<PyErr>,
    /// How many [`Registered`] have this number.
    holders: usize,
}

/// The objects of all runs that are going on, since what makes a codec can be handed numbers alone.
static OBJECTS: Mutex<BTreeMap<u32, Object>> = Mutex::new(BTreeMap::new());

/// What the next object is called. A number is never given twice, nor by another process: a folder of a run that is
/// opened later names a codec that is not there, and no other one.
static NEXT: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(RandomState::new().hash_one(0) as u32 >> 1));

/// An object that configurations can name, by a number, until this is dropped.
#[pyclass(frozen, module = "laconic_gnn._laconic")]
pub struct Registered(u32);

#[pymethods]
impl Registered {
    /// The number is that of a run that goes on, where it is given; the object stands for the run's own from here on.
    #[new]
    #[pyo3(signature = (codec, number = None))]
    fn new(codec: Py<PyAny>, number: Option<u32>) -> Registered {
        let number = number.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        let earlier = OBJECTS.lock().ok().and_then(|mut objects| {
            let holders = objects.get(&number).map_or(1, |object| object.holders + 1);
            objects.insert(number, Object { codec, raised: None, holders })
        });
        // As in `drop`.
        drop(earlier);
        Registered(number)
    }

    /// The number that stands for it.
    #[getter]
    fn number(&self) -> u32 {
        self.0
    }

    /// What the object has raised first, if it has.
    fn raised(&self) -> Option<PyErr> {
        OBJECTS.lock().ok()?.get_mut(&self.0)?.raised.take()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Dropped when nobody holds the lock: an object may run code of its own as it goes.
        let gone = OBJECTS.lock().ok().and_then(|mut objects| {
            let holders = &mut objects.get_mut(&self.0)?.holders;
            *holders -= 1;
            if *holders == 0 { objects.remove(&self.0) } else { None }
        });
        drop(gone);
    }
}

/// The program's members, and codecs of Python.
///
/// # Errors
/// None: no codec of the program's own has this name and number.
pub fn members() -> laconic_train::Result<Members> {
    Members::default().with_codec(&PYTHON)
}

/// A codec that asks the object of this number.
struct Asks(u32);

fn build(options: &Options, _: &CodecRegistry) -> Result<Box<dyn Codec>> {
    let number = options.number("object")?.unwrap_or_default() as u32;
    let is_there = OBJECTS.lock().is_ok_and(|objects| objects.contains_key(&number));
    let refuse = || options.refuse("object", "a codec of the Python program that trains");
    if is_there { Ok(Box::new(Asks(number))) } else { Err(refuse()) }
}

impl Asks {
    /// What a method answers. What it raises ends the run as a message that makes no sense, and is kept.
    fn ask<T>(&self, method: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        let answer = Python::try_attach(|py| {
            let codec = OBJECTS.lock().ok().and_then(|objects| Some(objects.get(&self.0)?.codec.clone_ref(py)));
            let Some(codec) = codec else { return Err(WireError::malformed("a message of a codec that is gone")) };
            method(py, codec.bind(py)).map_err(|error| {
                let text = error.to_string();
                self.keep(error);
                WireError::malformed(format!("an error of a codec in Python: {text}"))
            })
        });
        answer.unwrap_or_else(|| Err(WireError::malformed("the end of the interpreter")))
    }

    /// Keeps what was raised first. What comes later is dropped when nobody holds the lock, as objects are.
    fn keep(&self, error: PyErr) {
        let later = match OBJECTS.lock().as_mut().ok().and_then(|objects| objects.get_mut(&self.0)) {
            Some(object) if object.raised.is_none() => {
                object.raised = Some(error);
                None
            }
            _ => Some(error),
        };
        drop(later);
    }

    fn size(&self, rows: usize, columns: usize) -> Result<usize> {
        self.ask(|_, codec| codec.call_method1("bytes", (rows, columns))?.extract())
    }
}

impl Codec for Asks {
    fn id(&self) -> CodecId {
        PYTHON.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        // Who cannot say it is asked again by the first message, which fails.
        self.size(rows, columns).unwrap_or_default()
    }

    fn encode(&mut self, _: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let (count, columns) = (rows.rows.len(), rows.columns);
        let values: Vec<f32> = (0..count).flat_map(|position| rows.row(position)).copied().collect();
        let payload: Vec<u8> = self.ask(|py, codec| {
            let values = Array2::from_shape_vec((count, columns), values);
            let values = values.map_err(|error| PyValueError::new_err(error.to_string()))?;
            let payload = codec.call_method1("encode", (values.into_pyarray(py),))?;
            if let Ok(payload) = payload.cast::<PyBytes>() {
                return Ok(payload.as_bytes().to_vec());
            }
            // What has bytes in it, such as a bytearray.
            let payload = py.import("builtins")?.call_method1("memoryview", (payload,))?.call_method0("tobytes")?;
            Ok(payload.cast::<PyBytes>()?.as_bytes().to_vec())
        })?;
        self.check(&payload, (count, columns))?;
        into.extend_from_slice(&payload);
        Ok(())
    }

    fn decode(&mut self, _: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let (count, columns) = (into.rows.len(), into.columns);
        self.check(payload, (count, columns))?;
        let values: Vec<f32> = self.ask(|py, codec| {
            let answer = codec.call_method1("decode", (PyBytes::new(py, payload), count, columns))?;
            let rows = py.import("numpy")?.call_method1("ascontiguousarray", (answer, "float32"))?;
            let found = rows.cast::<PyUntypedArray>()?.shape().to_vec();
            if found != [count, columns] {
                let what = format!("decode: expected the shape [{count}, {columns}], found {found:?}");
                return Err(PyValueError::new_err(what));
            }
            let rows = rows.cast::<PyArray2<f32>>()?;
            rows.to_vec().map_err(|error| PyValueError::new_err(error.to_string()))
        })?;
        for (position, values) in values.chunks_exact(columns.max(1)).enumerate().take(count) {
            let row = into.row(position);
            match store {
                Store::Set => row.copy_from_slice(values),
                Store::Add => row.iter_mut().zip(values).for_each(|(into, value)| *into += value),
            }
        }
        Ok(())
    }
}

impl Asks {
    fn check(&self, payload: &[u8], (rows, columns): (usize, usize)) -> Result<()> {
        let (expected, found) = (self.size(rows, columns)? as u64, payload.len() as u64);
        if found == expected { Ok(()) } else { Err(WireError::PayloadSize { what: PYTHON.name, expected, found }) }
    }
}
