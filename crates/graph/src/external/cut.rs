//! A folder of parts from a graph that is never in memory.

use super::deal::Dealt;
use super::finish::Nodes;
use super::job::Job;
use super::need::{Need, PER_EDGE};
use super::passes::Passes;
use super::rows::{Degrees, RowFiles};
use super::work::Work;
use crate::build::BuildOptions;
use crate::dataset::{Labels, Split};
use crate::digest::digest_of_assignment;
use crate::error::{GraphError, Result};
use crate::part::{GlobalCounts, Provenance};
use crate::partition::{Partitioner, Quality, Reads, RowsInput};
use crate::skew::{LabelCounts, LabelSkew};
use crate::source::RowSource;

/// Bytes on the disk for each edge, before parts are written: in a bucket, sorted there, and distributed.
const SPILLED: u64 = 16;

/// What a cut comes to.
pub struct Cut {
    /// What it costs.
    pub quality: Quality,
    /// How labels of training nodes are spread.
    pub labels: Option<LabelSkew>,
    /// The bytes of memory that were said to be needed.
    pub memory: u64,
}

/// Cuts. Whatever is finished when the process ends is not done again by the next call with the same job.
///
/// # Errors
///
/// If the partitioner needs the graph in memory, there is too little memory, the folder may not be replaced, somebody
/// else writes to it, the graph is not sound, or the system refuses to read or write.
pub fn cut(job: &Job) -> Result<Cut> {
    let (kind, options) = job.partitioner;
    if (kind.reads)(options) == Reads::Graph {
        let what = format!("{:?} needs the graph in memory, so it cannot cut one on the disk", kind.name);
        return Err(GraphError::invalid(what));
    }
    let partitioner = kind.build(options)?;
    let nodes = job.data.nodes();
    partitioner.check(nodes as usize, job.parts)?;
    let need = Need {
        nodes,
        partitioner: partitioner.memory(nodes, job.parts),
        columns: job.data.columns() as u64,
        input: job.data.memory(),
        allowed: job.memory,
    };
    let mut work = Work::begin(job)?;
    let rows = rows(job, (&work, "rows"), job.how(), &need).inspect_err(|_| work.leave_nothing())?;
    let labels = job.data.labels()?;
    let roles = job.data.roles()?;
    let assignment = assign(job, &mut work, (&rows, &roles), (&*partitioner, &need))?;
    let digest = work.digest(job, &rows, (&labels, &roles))?;
    let dealt = Dealt::deal(&work.path("dealt"), (&rows, job.data), (&assignment, job.parts), job.tell)?;
    let mut nodes_of = vec![0u32; job.parts as usize];
    let mut next = |&part: &u32| {
        let row = nodes_of[part as usize];
        nodes_of[part as usize] += 1;
        row
    };
    let rows_of: Vec<u32> = assignment.iter().map(&mut next).collect();
    let largest = need.part(dealt.edges_most(), nodes_of.into_iter().max().unwrap_or(0).into());
    need.check(largest, "the largest part")?;
    (job.tell)(&format!("parts have up to {} edges: at most {} MB of memory", dealt.edges_most(), megabytes(largest)));
    let global = global(job, rows.edges(), (&roles, &assignment), digest);
    let memory = need.most(rows.edges(), 0).max(largest);
    rows.remove();
    let id = |node| job.data.id(node);
    let all = Nodes { assignment: &assignment, rows: &rows_of, labels: &labels, roles: &roles, id: &id };
    let provenance = Provenance { method: kind.name.to_owned(), seed: job.seed };
    let skew = label_skew(job.parts, &all, global.classes);
    let quality = work.parts(job, &dealt, &all, (&global, &provenance))?;
    work.finish(job, (&global, &provenance), skew.as_ref().map(|skew| skew.skew))?;
    Ok(Cut { quality, labels: skew, memory })
}

/// The rows in a folder of the work; what memory it takes is said before anything is written.
fn rows(job: &Job, (work, name): (&Work, &str), how: BuildOptions, need: &Need) -> Result<RowFiles> {
    let counted = || {
        (job.tell)("counting edges");
        let degrees = Degrees::count(job.data, how)?;
        let bytes = need.most(degrees.edges(), degrees.largest());
        need.check(bytes, "cutting this graph")?;
        let on_disk = crate::disk::afford(SPILLED * degrees.edges(), work.folder());
        on_disk.map_err(|what| GraphError::invalid(format!("cutting this graph {what}")))?;
        let (edges, nodes, bytes) = (degrees.edges(), need.nodes, megabytes(bytes));
        let parts = format!("then {PER_EDGE} bytes an edge of the largest part");
        (job.tell)(&format!("{nodes} nodes and at most {edges} edges: at most {bytes} MB of memory, {parts}"));
        Ok(degrees)
    };
    RowFiles::build((job.data, how), &work.path(name), counted, need.bucket(), job.tell)
}

/// The part of each node. Who reads edges gets both directions of those that lead one way.
fn assign(
    job: &Job,
    work: &mut Work,
    (rows_in, roles): (&RowFiles, &[u8]),
    (partitioner, need): (&dyn Partitioner, &Need),
) -> Result<Vec<u32>> {
    if let Some(assignment) = work.assignment()? {
        return Ok(assignment);
    }
    let (kind, options) = job.partitioner;
    let one_way = (kind.reads)(options) == Reads::Rows && !job.how().symmetrise;
    let both = match one_way {
        true => Some(rows(job, (work, "neighbours"), BuildOptions { symmetrise: true, ..job.how() }, need)?),
        false => None,
    };
    let input = RowsInput {
        rows: both.as_ref().unwrap_or(rows_in),
        in_edges: rows_in,
        roles: Some(roles).filter(|roles| !roles.is_empty()),
        parts: job.parts,
        seed: job.seed,
        tell: job.tell,
        kept: &Passes(work.path("passes")),
    };
    (job.tell)(&format!("assigning {} nodes to {} parts", need.nodes, job.parts));
    let assignment = partitioner.assign_rows(&input)?;
    work.keep_assignment(&assignment)?;
    if let Some(rows) = both {
        rows.remove();
    }
    Ok(assignment)
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}

fn global(job: &Job, edges: u64, (roles, assignment): (&[u8], &[u32]), data_digest: String) -> GlobalCounts {
    let count = |role| roles.iter().filter(|&&r| r & role != 0).count() as u64;
    GlobalCounts {
        dataset: job.data.name(),
        data_digest,
        partition_digest: digest_of_assignment(assignment, job.parts),
        nodes: job.data.nodes(),
        edges,
        train: count(Split::TRAIN),
        val: count(Split::VAL),
        test: count(Split::TEST),
        columns: job.data.columns(),
        classes: job.data.classes(),
        about: job.data.about(),
        part_names: Vec::new(),
        ..GlobalCounts::default()
    }
}

fn label_skew(parts: u32, nodes: &Nodes, classes: usize) -> Option<LabelSkew> {
    if nodes.labels.is_empty() || nodes.roles.is_empty() {
        return None;
    }
    let labels = Labels::Single { classes, values: nodes.labels.to_vec() };
    let mut counts = LabelCounts::default();
    counts.reserve(parts as usize);
    counts.see(&labels, nodes.roles, |node| nodes.assignment[node]);
    counts.finish()
}
