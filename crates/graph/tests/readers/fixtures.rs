//! Small valid inputs in every format, in memory, so that tests can write them or break them first.

use crate::pickles;
use laconic_graph::npy::write_header;
use laconic_graph::read::Reader;
use laconic_graph::read::{
    array_folder::Arrays, edge_list::EdgeList, gnn_benchmark::GnnBenchmark, graphsaint::GraphSaint,
    interchange::Interchange, metis_graph::MetisGraph, ogb::Ogb, ogb_typed::OgbTyped, planetoid::Planetoid,
    typed_tables::TypedTables,
};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One file of an input.
#[derive(Clone)]
pub enum Content {
    /// As it is.
    Bytes(Vec<u8>),
    /// An `.npz` of these `.npy` members.
    Npz(Vec<(&'static str, Vec<u8>)>),
}

/// An input in some format.
#[derive(Clone)]
pub struct Fixture {
    pub reader: &'static dyn Reader,
    /// What to hand to the reader, relative to the folder of the test.
    pub path: &'static str,
    pub files: Vec<(String, Content)>,
}

impl Fixture {
    /// Writes the files into `folder` and returns the path for the reader.
    pub fn write(&self, folder: &Path) -> PathBuf {
        for (name, content) in &self.files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let bytes = match content {
                Content::Bytes(bytes) => bytes.clone(),
                Content::Npz(members) => npz(members),
            };
            std::fs::write(path, bytes).unwrap();
        }
        folder.join(self.path)
    }
}

/// A `.npy` of these items.
pub fn npy<const N: usize>(descr: &str, shape: &[usize], items: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_header(&mut bytes, descr, shape).unwrap();
    bytes.extend(items.into_iter().flatten());
    bytes
}

pub fn int32(shape: &[usize], items: &[i32]) -> Vec<u8> {
    npy("<i4", shape, items.iter().map(|v| v.to_le_bytes()))
}

pub fn int64(shape: &[usize], items: &[i64]) -> Vec<u8> {
    npy("<i8", shape, items.iter().map(|v| v.to_le_bytes()))
}

pub fn float32(shape: &[usize], items: &[f32]) -> Vec<u8> {
    npy("<f4", shape, items.iter().map(|v| v.to_le_bytes()))
}

pub fn uint8(shape: &[usize], items: &[u8]) -> Vec<u8> {
    npy("|u1", shape, items.iter().map(|&v| [v]))
}

/// The archive of these members, packed if there are many bytes.
pub fn npz(members: &[(&'static str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let method =
            if bytes.len() > 1 << 12 { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

pub fn gz(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn text(name: &str, text: &str) -> (String, Content) {
    (name.to_owned(), Content::Bytes(text.as_bytes().to_vec()))
}

fn bytes(name: &str, bytes: Vec<u8>) -> (String, Content) {
    (name.to_owned(), Content::Bytes(bytes))
}

/// Triangle 0-1-2 with tail 2-3, dense features, single labels, two splits.
pub fn interchange() -> Fixture {
    let members = vec![
        ("edge_index", int32(&[2, 4], &[0, 0, 1, 2, 1, 2, 2, 3])),
        ("directed", uint8(&[1], &[0])),
        ("num_nodes", int64(&[1], &[5])),
        ("features", float32(&[5, 2], &[1.0, 0.0, 0.0, 1.0, 0.5, 0.5, 0.0, 0.0, 2.0, 2.0])),
        ("labels", int32(&[5], &[0, 1, 1, 0, -1])),
        ("train_mask", uint8(&[5, 2], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0])),
        ("val_mask", uint8(&[5, 2], &[0, 1, 1, 0, 0, 0, 0, 0, 0, 0])),
        ("test_mask", uint8(&[5], &[0, 0, 1, 1, 0])),
        ("ids_data", uint8(&[6], b"abcdef")),
        ("ids_offsets", int64(&[6], &[0, 1, 2, 3, 4, 6])),
    ];
    Fixture { reader: &Interchange, path: "tiny.npz", files: vec![("tiny.npz".to_owned(), Content::Npz(members))] }
}

/// Arcs 0 → 1 → 2 → 0 with weights, sparse features, multi-labels.
pub fn interchange_sparse() -> Fixture {
    let members = vec![
        ("edge_index", int64(&[2, 3], &[0, 1, 2, 1, 2, 0])),
        ("edge_weight", float32(&[3], &[0.5, 2.0, 4.0])),
        ("features_data", float32(&[3], &[1.0, 2.0, 3.0])),
        ("features_indices", int32(&[3], &[3, 0, 1])),
        ("features_indptr", int64(&[4], &[0, 1, 1, 3])),
        ("features_shape", int64(&[2], &[3, 4])),
        ("labels", uint8(&[3, 2], &[1, 1, 0, 0, 0, 1])),
    ];
    Fixture { reader: &Interchange, path: "sparse.npz", files: vec![("sparse.npz".to_owned(), Content::Npz(members))] }
}

/// A path of four nodes, each edge once; one is held out for validation in its other direction, and one for testing
/// that is not among the edges.
pub fn interchange_held() -> Fixture {
    let members = vec![
        ("edge_index", int64(&[2, 3], &[0, 1, 2, 1, 2, 3])),
        ("directed", uint8(&[1], &[0])),
        ("edge_weight", float32(&[3], &[0.5, 2.0, 4.0])),
        ("valid_edge_index", int64(&[2, 1], &[2, 1])),
        ("test_edge_index", int32(&[2, 1], &[4, 0])),
    ];
    Fixture { reader: &Interchange, path: "held.npz", files: vec![("held.npz".to_owned(), Content::Npz(members))] }
}

/// A path of five nodes, each edge once, of which two are held out, each against pairs that are none: a pool for
/// validation, two targets of its own for one of two edges of testing.
pub fn interchange_given() -> Fixture {
    let members = vec![
        ("edge_index", int64(&[2, 4], &[0, 1, 2, 3, 1, 2, 3, 4])),
        ("directed", uint8(&[1], &[0])),
        ("val_edge_index", int64(&[2, 1], &[2, 1])),
        ("val_neg_edge_index", int64(&[2, 3], &[4, 0, 4, 0, 3, 0])),
        ("test_edge_index", int32(&[2, 3], &[4, 1, 2, 3, 1, 3])),
        ("test_neg_targets", int64(&[3, 2], &[0, 1, 2, 2, -1, -1])),
    ];
    Fixture { reader: &Interchange, path: "given.npz", files: vec![("given.npz".to_owned(), Content::Npz(members))] }
}

/// An edge and two classes a node, of which some are not known.
pub fn interchange_unknown() -> Fixture {
    let members = vec![
        ("edge_index", int64(&[2, 1], &[0, 1])),
        ("labels", float32(&[3, 2], &[1.0, f32::NAN, f32::NAN, f32::NAN, 0.0, 1.0])),
        ("test_mask", uint8(&[3], &[1, 1, 0])),
    ];
    Fixture { reader: &Interchange, path: "some.npz", files: vec![("some.npz".to_owned(), Content::Npz(members))] }
}

/// What can be read in passes: one label, one split and an integer a node.
pub fn interchange_plain() -> Fixture {
    let members = vec![
        ("edge_index", int64(&[2, 5], &[0, 0, 1, 2, 4, 1, 2, 2, 3, 4])),
        ("x", float32(&[5, 2], &[1.0, 0.0, 0.0, 1.0, 0.5, 0.5, 0.0, 0.0, 2.0, 2.0])),
        ("y", int32(&[5], &[0, 1, 1, 0, -1])),
        ("train_mask", uint8(&[5], &[1, 0, 0, 1, 0])),
        ("val_mask", uint8(&[5], &[0, 1, 1, 0, 0])),
        ("ids", int64(&[5], &[10, 8, 6, 4, 2])),
    ];
    Fixture { reader: &Interchange, path: "tiny.npz", files: vec![("tiny.npz".to_owned(), Content::Npz(members))] }
}

pub fn gnn_benchmark() -> Fixture {
    let mut names = Vec::new();
    write_header(&mut names, "|O", &[3]).unwrap();
    names.extend(b"\x80\x03cos\nsystem\nX\x04\x00\x00\x00true\x85R.");
    let members = vec![
        // The edge 1-0 once, 1-2 both ways, a self-loop at 2.
        ("adj_data", float32(&[4], &[1.0, 1.0, 3.0, 1.0])),
        ("adj_indices", int32(&[4], &[0, 2, 1, 2])),
        ("adj_indptr", int32(&[4], &[0, 0, 2, 4])),
        ("adj_shape", int64(&[2], &[3, 3])),
        ("attr_data", float32(&[3], &[1.0, 2.0, 3.0])),
        ("attr_indices", int32(&[3], &[1, 0, 1])),
        ("attr_indptr", int32(&[4], &[0, 1, 1, 3])),
        ("attr_shape", int64(&[2], &[3, 2])),
        ("labels", int64(&[3], &[2, 0, 1])),
        ("node_names", names),
    ];
    Fixture { reader: &GnnBenchmark, path: "amazon.npz", files: vec![("amazon.npz".to_owned(), Content::Npz(members))] }
}

pub fn planetoid(of: &pickles::Files) -> Fixture {
    let mut files: Vec<_> =
        of.iter().map(|(name, content)| bytes(&format!("tiny/ind.tiny.{name}"), content.to_vec())).collect();
    files.push(text("tiny/ind.tiny.test.index", "6\n4\n"));
    Fixture { reader: &Planetoid, path: "tiny", files }
}

pub fn ogb() -> Fixture {
    let files = vec![
        text("arxiv/raw/edge.csv", "0,1\n1,2\n3,0\n"),
        text("arxiv/raw/num-node-list.csv", "4\n"),
        text("arxiv/raw/node-feat.csv", "0.5,1\n-1e-2,0\n0,0\n3,4\n"),
        text("arxiv/raw/node-label.csv", "0\n2\nnan\n1\n"),
        text("arxiv/split/time/train.csv", "0\n"),
        text("arxiv/split/time/valid.csv", "1\n"),
        text("arxiv/split/time/test.csv", "3\n"),
    ];
    Fixture { reader: &Ogb, path: "arxiv", files }
}

/// Papers with features and labels, authors with neither.
pub fn ogb_typed() -> Fixture {
    let files = vec![
        text("mag/raw/num-node-dict.csv", "author,paper\n2,3\n"),
        text("mag/raw/triplet-type-list.csv", "author,writes,paper\npaper,cites,paper\n"),
        text("mag/raw/relations/author___writes___paper/edge.csv", "0,0\n1,2\n"),
        text("mag/raw/relations/paper___cites___paper/edge.csv", "0,1\n2,1\n"),
        text("mag/raw/node-feat/paper/node-feat.csv", "0.5,1\n0,0\n3,4\n"),
        text("mag/raw/node-label/paper/node-label.csv", "0\n2\n1\n"),
        text("mag/split/time/paper/train.csv", "0\n"),
        text("mag/split/time/paper/valid.csv", "1\n"),
        text("mag/split/time/paper/test.csv", "2\n"),
    ];
    Fixture { reader: &OgbTyped, path: "mag", files }
}

/// A table for each of two types and two relations, with weights.
pub fn typed_tables() -> Fixture {
    let files = vec![
        text("shop/nodes/person.csv", "id,age,label,split\nann,20,ok,train\nbob,40,banned,val\n"),
        text("shop/nodes/item.csv", "id,price,size\n7,1.5,2\n9,0,3\n"),
        text("shop/edges/person__buys__item.csv", "source,target,weight\nann,9,2\nbob,7,1\n"),
        text("shop/edges/person__knows__person.csv", "source,target,weight\nann,bob,0.5\n"),
    ];
    Fixture { reader: &TypedTables, path: "shop", files }
}

pub fn graphsaint() -> Fixture {
    let adjacency = vec![
        ("indptr", int32(&[4], &[0, 1, 3, 4])),
        ("indices", int32(&[4], &[1, 0, 2, 1])),
        ("data", uint8(&[4], &[1, 1, 1, 1])),
        ("shape", int64(&[2], &[3, 3])),
        ("format", npy("|S3", &[], [*b"csr"])),
    ];
    let features = npy("<f8", &[3, 2], [0.0f64, 1.0, 2.0, 3.0, 4.0, 5.0].map(f64::to_le_bytes));
    let files = vec![
        ("flickr/adj_full.npz".to_owned(), Content::Npz(adjacency)),
        bytes("flickr/feats.npy", features),
        text("flickr/class_map.json", r#"{"2": [0, 1], "0": [1, 1], "1": [0, 0]}"#),
        text("flickr/role.json", r#"{"tr": [0], "va": [2], "te": [1]}"#),
    ];
    Fixture { reader: &GraphSaint, path: "flickr", files }
}

pub fn array_folder() -> Fixture {
    let about =
        r#"{"format": "laconic-arrays", "version": 1, "name": "path", "nodes": 4, "directed": false, "classes": 2}"#;
    let files = vec![
        text("path/graph.json", about),
        bytes("path/edges-0.npy", int64(&[2, 2], &[0, 1, 2, 1])),
        bytes("path/edges-1.npy", npy("<u4", &[2, 2], [3u32, 2, 2, 3].map(u32::to_le_bytes))),
        bytes("path/features.npy", float32(&[4, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])),
        bytes("path/labels-0.npy", int32(&[3], &[0, 1, -1])),
        bytes("path/labels-1.npy", uint8(&[1], &[1])),
        bytes("path/split.npy", uint8(&[4], &[1, 2, 0, 4])),
    ];
    Fixture { reader: &Arrays, path: "path", files }
}

pub fn metis() -> Fixture {
    let graph = "% a path, a weight a vertex, weighted edges\n4 2 011\n7 2 5\n7 1 5 3 1.5\n% in between\n7 2 1.5\n9\n";
    Fixture { reader: &MetisGraph, path: "path.graph", files: vec![text("path.graph", graph)] }
}

pub fn edge_list() -> Fixture {
    let files = vec![
        text("bank/edges.csv", "weight,src,dst\n1,\"b, c\",a\n2.5,a,007\n"),
        text(
            "bank/nodes.csv",
            "id,age,kind,label,split,score\na,30,x,yes,train,0.5\n007,40,y,,,2\n\"b, c\",50,x,no,test,1\n",
        ),
    ];
    Fixture { reader: &EdgeList, path: "bank", files }
}

/// A node table with dates, categories and several labels a node.
pub fn columns_of_all_kinds() -> Fixture {
    let nodes = "id,label_a,label_b,born,city,size,happy\n\
                 1,0,1,2026-01-01,Rome,1.5,true\n2,1,1,2025-02-28,Oslo,2,false\n\
                 3,0,0,1969-12-31,Rome,-3e2,true\n4,1,0,2026-01-01T12:30:00Z,Oslo,4,true\n";
    let files = vec![text("kinds/edges.csv", "src,dst,amount\n1,2,3\n2,3,4\n3,4,5\n"), text("kinds/nodes.csv", nodes)];
    Fixture { reader: &EdgeList, path: "kinds", files }
}

/// Edges with weights below a comment, whose ids begin like one.
pub fn edges_alone() -> Fixture {
    let files = vec![text("alone.txt", "# three edges\n#from to w\n#1 #2 0.5\n#2 3 1\n3 #1 2\n")];
    Fixture { reader: &EdgeList, path: "alone.txt", files }
}

/// Edges between numbers, with gaps, and nothing else.
pub fn numbered_edges() -> Fixture {
    let files = vec![text("numbered.txt", "# four edges\n0 3\n3 7\n7 0\n12 3\n")];
    Fixture { reader: &EdgeList, path: "numbered.txt", files }
}

/// The same as [`edge_list`], in Parquet.
pub fn parquet() -> Fixture {
    let files = vec![bytes("bank/edges.parquet", parquet_edges()), bytes("bank/nodes.parquet", parquet_nodes())];
    Fixture { reader: &EdgeList, path: "bank", files }
}

fn parquet_edges() -> Vec<u8> {
    let schema = "message edges { required double weight; required binary src (UTF8); required binary dst (UTF8); }";
    write_parquet(schema, |group| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&[1.0, 2.5], None, None).unwrap();
        column.close().unwrap();
        for ids in [["b, c", "a"], ["a", "007"]] {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&ids.map(ByteArray::from), None, None).unwrap();
            column.close().unwrap();
        }
    })
}

fn parquet_nodes() -> Vec<u8> {
    let schema = "message nodes { required binary id (UTF8); required int32 age; optional binary kind (UTF8); \
                  optional binary label (UTF8); optional binary split (UTF8); optional double score; \
                  optional int64 none; }";
    write_parquet(schema, |group| {
        let texts = |values: &[&str]| values.iter().map(|&v| ByteArray::from(v)).collect::<Vec<_>>();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts(&["a", "007", "b, c"]), None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[30, 40, 50], None, None).unwrap();
        column.close().unwrap();
        for (values, levels) in
            [(&["x", "y", "x"][..], [1, 1, 1]), (&["yes", "no"], [1, 0, 1]), (&["train", "test"], [1, 0, 1])]
        {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&texts(values), Some(&levels), None).unwrap();
            column.close().unwrap();
        }
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&[0.5, 2.0, 1.0], Some(&[1, 1, 1]), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[], Some(&[0, 0, 0]), None).unwrap();
        column.close().unwrap();
    })
}

/// A node a list, with a day of its own.
pub fn parquet_of_lists(lists: &[&[f32]]) -> Fixture {
    let nodes = parquet_lists_from(0, lists);
    let files = vec![text("lists/edges.csv", "src,dst\n0,1\n1,2\n"), bytes("lists/nodes.parquet", nodes)];
    Fixture { reader: &EdgeList, path: "lists", files }
}

/// A node table of lists, whose ids and days count from `first`.
pub fn parquet_lists_from(first: i64, lists: &[&[f32]]) -> Vec<u8> {
    let schema = "message nodes { required int64 id; optional group embedding (LIST) { repeated group list { \
                  optional float element; } } required int32 day (DATE); }";
    let rows = first..first + lists.len() as i64;
    write_parquet(schema, |group| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&rows.clone().collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for list in lists {
            // Level 1: a list without elements; level 3: an element with a value.
            definitions.extend(if list.is_empty() { vec![1] } else { vec![3; list.len()] });
            repetitions.extend((0..list.len().max(1)).map(|place| i16::from(place > 0)));
            values.extend_from_slice(list);
        }
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<parquet::data_type::FloatType>();
        typed.write_batch(&values, Some(&definitions), Some(&repetitions)).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&rows.map(|row| row as i32).collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
    })
}

/// Edges that all have one long text for both ends, which the file holds once.
pub fn parquet_of_one_long_text(rows: usize, letters: usize) -> Fixture {
    let id = ByteArray::from("x".repeat(letters).into_bytes());
    let schema = "message edges { required binary src (UTF8); required binary dst (UTF8); }";
    let file = write_parquet(schema, |group| {
        for _ in 0..2 {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&vec![id.clone(); rows], None, None).unwrap();
            column.close().unwrap();
        }
    });
    Fixture { reader: &EdgeList, path: "long", files: vec![bytes("long/edges.parquet", file)] }
}

/// Features of so many zeros, a byte each, packed.
pub fn interchange_of_zeros(zeros: usize) -> Fixture {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_level(Some(1));
    archive.start_file("edge_index.npy", options).unwrap();
    archive.write_all(&int32(&[2, 1], &[0, 1])).unwrap();
    archive.start_file("features.npy", options).unwrap();
    write_header(&mut archive, "|u1", &[2, zeros / 8]).unwrap();
    let chunk = vec![0; 1 << 20];
    (0..(zeros / 4).div_ceil(chunk.len())).for_each(|_| archive.write_all(&chunk).unwrap());
    let file = archive.finish().unwrap().into_inner();
    Fixture { reader: &Interchange, path: "zeros.npz", files: vec![bytes("zeros.npz", file)] }
}

pub type Group<'a, 'b> = &'a mut SerializedRowGroupWriter<'b, Vec<u8>>;

/// A file of one row group.
pub fn write_parquet(schema: &str, columns: impl FnOnce(Group)) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    columns(&mut group);
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// All of the above.
pub fn all() -> Vec<Fixture> {
    let usual = vec![
        interchange(),
        interchange_sparse(),
        interchange_unknown(),
        interchange_held(),
        interchange_given(),
        gnn_benchmark(),
        planetoid(&pickles::PROTOCOL_0),
        planetoid(&pickles::PROTOCOL_2),
        ogb(),
        ogb_typed(),
        typed_tables(),
        graphsaint(),
        array_folder(),
        metis(),
        edge_list(),
        columns_of_all_kinds(),
        edges_alone(),
        numbered_edges(),
        parquet(),
        parquet_of_lists(&[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]]),
    ];
    usual.into_iter().chain(crate::graph_formats::all()).collect()
}
