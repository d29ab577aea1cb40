//! Small Parquet files of any columns.

use crate::fixtures::{Group, write_parquet};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
    Int96, Int96Type,
};

/// The values of one leaf, all of them there.
pub enum Leaf {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<[u32; 3]>),
    Double(Vec<f64>),
    Bytes(Vec<Vec<u8>>),
    Fixed(Vec<Vec<u8>>),
    /// Lists with an element or more, of whole numbers, numbers, or bytes of fixed length.
    Lists32(Vec<Vec<i32>>),
    Lists64(Vec<Vec<i64>>),
    ListsDouble(Vec<Vec<f64>>),
    ListsFixed(Vec<Vec<Vec<u8>>>),
}

/// Texts as bytes.
pub fn texts(texts: &[&str]) -> Leaf {
    Leaf::Bytes(texts.iter().map(|text| text.as_bytes().to_vec()).collect())
}

/// A file of this schema, `required int64 id; …`, whose lists are `required` with `required` elements.
pub fn file(columns: &str, leaves: Vec<Leaf>) -> Vec<u8> {
    write_parquet(&format!("message table {{ {columns} }}"), |group| {
        leaves.into_iter().for_each(|leaf| write(group, leaf));
    })
}

fn write(group: Group, leaf: Leaf) {
    let bytes = |values: Vec<Vec<u8>>| values.into_iter().map(ByteArray::from);
    match leaf {
        Leaf::Int32(values) => flat::<Int32Type>(group, values),
        Leaf::Int64(values) => flat::<Int64Type>(group, values),
        Leaf::Int96(values) => {
            let number = |words: [u32; 3]| {
                let mut number = Int96::new();
                number.set_data(words[0], words[1], words[2]);
                number
            };
            flat::<Int96Type>(group, values.into_iter().map(number).collect());
        }
        Leaf::Double(values) => flat::<DoubleType>(group, values),
        Leaf::Bytes(values) => flat::<ByteArrayType>(group, bytes(values).collect()),
        Leaf::Fixed(values) => {
            flat::<FixedLenByteArrayType>(group, bytes(values).map(FixedLenByteArray::from).collect());
        }
        Leaf::Lists32(lists) => repeated::<Int32Type>(group, lists),
        Leaf::Lists64(lists) => repeated::<Int64Type>(group, lists),
        Leaf::ListsDouble(lists) => repeated::<DoubleType>(group, lists),
        Leaf::ListsFixed(lists) => {
            let fixed = |list: Vec<Vec<u8>>| bytes(list).map(FixedLenByteArray::from).collect();
            repeated::<FixedLenByteArrayType>(group, lists.into_iter().map(fixed).collect());
        }
    }
}

fn flat<T: DataType>(group: Group, values: Vec<T::T>) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
}

fn repeated<T: DataType>(group: Group, lists: Vec<Vec<T::T>>) {
    let definitions: Vec<i16> =
        lists.iter().flat_map(|list| vec![i16::from(!list.is_empty()); list.len().max(1)]).collect();
    let starts = lists.iter().flat_map(|list| (0..list.len().max(1)).map(|place| i16::from(place > 0)));
    let repetitions: Vec<i16> = starts.collect();
    let values: Vec<T::T> = lists.into_iter().flatten().collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(&values, Some(&definitions), Some(&repetitions)).unwrap();
    column.close().unwrap();
}
