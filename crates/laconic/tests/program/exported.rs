//! What the program has written, read by nothing of its own.

use std::collections::BTreeMap;
use std::path::Path;

/// The JSON objects of a file, one a line.
pub fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("a table");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Tensors by name: shape, and values in double precision.
pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f64>)>;

/// The tensors of an exported file.
pub fn tensors(path: &Path) -> Tensors {
    let bytes = std::fs::read(path).expect("weights");
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..start]).expect("JSON");
    let each = header.as_object().expect("tensors").iter();
    each.map(|(name, entry)| {
        let place = |at: usize| start + entry["data_offsets"][at].as_u64().expect("a place") as usize;
        let data = &bytes[place(0)..place(1)];
        let values = match entry["dtype"].as_str() {
            Some("F32") => data.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect(),
            Some("F64") => data.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect(),
            other => panic!("{name}: {other:?}"),
        };
        let shape =
            entry["shape"].as_array().expect("a shape").iter().map(|side| side.as_u64().expect("a side") as usize);
        (name.clone(), (shape.collect(), values))
    })
    .collect()
}

/// Row times transposed weight, plus bias where there is one.
pub fn linear(x: &[f64], weight: &[f64], bias: Option<&Vec<f64>>) -> Vec<f64> {
    let product = weight.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>());
    product.enumerate().map(|(at, value)| value + bias.map_or(0.0, |bias| bias[at])).collect()
}
