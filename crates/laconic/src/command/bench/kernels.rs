//! `laconic bench kernels`: each hot kernel against what the machine can do.

mod codecs;
mod dense;
mod graph;
mod rows;

use std::fmt::Write;

use anyhow::{Result, bail};
use clap::Args;
use laconic_nn::Compute;
use schemars::JsonSchema;
use serde::Serialize;

use super::graph::Size;
use super::measure::{Times, giga, milliseconds, times_after};
use super::roofline::copied;
use super::{Measuring, afford};
use crate::bytes::separated;
use crate::output::Output;

/// Arguments of `bench kernels`.
#[derive(Args)]
#[command(after_help = "Examples:
  laconic bench kernels
  laconic bench kernels fold --threads 1 --json")]
pub struct Kernels {
    /// Only kernels with this word in their names
    filter: Option<String>,
    #[command(flatten)]
    graph: Size,
    #[command(flatten)]
    measuring: Measuring,
}

/// Each hot kernel against what the machine can do.
#[derive(Serialize, JsonSchema)]
pub struct Measured {
    /// Rows of the generated graph.
    nodes: usize,
    /// Its directed edges.
    edges: usize,
    /// One entry a kernel.
    kernels: Vec<Kernel>,
}

/// A kernel against its bound.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Kernel {
    /// What it is called.
    name: &'static str,
    /// The width of rows, or inputs and outputs, or heads and columns of each.
    shape: String,
    /// Compute threads; 1 of codecs.
    threads: usize,
    /// `bytes` or `flops`.
    unit: &'static str,
    /// How many of these it cannot do without.
    amount: f64,
    #[serde(flatten)]
    times: Times,
    /// The amount in a second, of the fastest repetition.
    rate: f64,
    /// What the machine does of it in a second.
    bound_rate: f64,
    /// The first rate over the second.
    share: f64,
    /// What the machine was measured with.
    bound: &'static str,
}

/// What kernels of one group are measured with.
struct Bench<'a> {
    compute: Compute,
    seconds: f64,
    array: u64,
    filter: &'a str,
    kernels: Vec<Kernel>,
}

/// What a kernel is held against.
#[derive(Clone, Copy)]
struct Against {
    unit: &'static str,
    amount: f64,
    rate: f64,
    bound: &'static str,
}

impl Bench<'_> {
    /// Whether any kernel of these names was asked for.
    fn wants(&self, names: &[&str]) -> bool {
        names.iter().any(|name| name.contains(self.filter))
    }

    /// Measures a kernel, if it was asked for.
    fn kernel(
        &mut self,
        name: &'static str,
        shape: impl std::fmt::Display,
        against: Against,
        work: &mut dyn FnMut(&mut Compute),
    ) {
        self.kernel_after(name, shape, against, &mut || (), work);
    }

    /// The same of one that uses up what it reads, which is made anew each time.
    fn kernel_after(
        &mut self,
        name: &'static str,
        shape: impl std::fmt::Display,
        against: Against,
        prepare: &mut dyn FnMut(),
        work: &mut dyn FnMut(&mut Compute),
    ) {
        if !self.wants(&[name]) {
            return;
        }
        let compute = &mut self.compute;
        let times = times_after(self.seconds, prepare, &mut || work(compute));
        let Against { unit, amount, rate: bound_rate, bound } = against;
        let (rate, threads) = (times.rate(amount), self.compute.threads());
        let share = rate / bound_rate;
        self.kernels.push(Kernel {
            name,
            shape: shape.to_string(),
            threads,
            unit,
            amount,
            times,
            rate,
            bound_rate,
            share,
            bound,
        });
    }

    /// Bytes that are streamed, against a copy.
    fn streamed(&self, bytes: f64) -> Against {
        let moved = copied(&self.compute, self.array, self.seconds);
        Against { unit: "bytes", amount: bytes, rate: moved.bytes_per_second, bound: "copy" }
    }
}

/// Measures all kernels, or those asked for.
pub fn run(arguments: &Kernels, output: &Output) -> Result<u8> {
    let threads = arguments.measuring.threads()?;
    let filter = arguments.filter.as_deref().unwrap_or_default();
    let array = arguments.measuring.array();
    afford("the arrays of copies", 2 * array)?;
    let compute = Compute::start(threads)?;
    let seconds = arguments.measuring.seconds;
    let mut bench = Bench { compute, seconds, array, filter, kernels: Vec::new() };
    let waiting = output.begins("generating the graph");
    let graph = arguments.graph.generate(0, 1)?.graph;
    waiting.end();
    let (nodes, edges) = (graph.nodes(), graph.edges());
    // The widest rows, twice for input and output and once for gradients.
    afford("rows of the widest kernels", 3 * 4 * 602 * nodes as u64)?;
    output.say("folds");
    graph::measure(&mut bench, graph)?;
    output.say("passes over rows");
    rows::measure(&mut bench, nodes);
    output.say("dense products");
    dense::measure(&mut bench, nodes);
    output.say("codecs");
    codecs::measure(&mut bench, nodes)?;
    if bench.kernels.is_empty() {
        bail!("no kernel has {filter:?} in its name");
    }
    let measured = Measured { nodes, edges, kernels: bench.kernels };
    output.result(table(&measured), &measured)?;
    Ok(0)
}

fn table(measured: &Measured) -> String {
    let [nodes, edges] = [measured.nodes, measured.edges].map(|count| separated(count as u64));
    let mut text = format!("{nodes} rows, {edges} edges\n");
    let [best, median] = ["best ms", "median ms"];
    let _ = writeln!(
        text,
        "{:<24} {:>8} {:>7} {best:>10} {median:>10} {:>9} {:>9} {:>6}  against",
        "kernel", "shape", "threads", "G/s", "bound G/s", "share"
    );
    for kernel in &measured.kernels {
        let Kernel { name, shape, threads, unit, rate, bound_rate, share, bound, .. } = kernel;
        let [best, median] = [kernel.times.best_seconds, kernel.times.median_seconds].map(milliseconds);
        let [rate, bound_rate] = [*rate, *bound_rate].map(giga);
        let share = 100.0 * share;
        let _ = write!(text, "{name:<24} {shape:>8} {threads:>7} {best:>10} {median:>10} {rate:>9} {bound_rate:>9} ");
        let _ = writeln!(text, "{share:>4.0} %  {bound}, {unit}");
    }
    text.trim_end().to_owned()
}
