//! `laconic bench roofline`: what the machine can do, per core and on all of them.

use std::fmt::Write;

use anyhow::Result;
use clap::Args;
use laconic_key::{Key, Purpose};
use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::fill;
use laconic_nn::kernels::product::{add_weight_gradient, times_weight, times_weight_transposed};
use laconic_nn::kernels::roof::{copy, copy_picked, sum_picked, sums_of};
use laconic_nn::{Compute, Matrix, Precision, Rows};
use schemars::JsonSchema;
use serde::Serialize;

use super::measure::{Times, giga, milliseconds, times};
use super::{Measuring, afford, cache_bytes};
use crate::bytes::human_bytes;
use crate::output::Output;

/// Widths of rows in use.
pub const WIDTHS: [usize; 6] = [32, 64, 100, 128, 256, 602];

/// Shapes of weights in use, inputs and outputs: features to hidden rows, hidden to hidden, hidden to classes.
pub const SHAPES: [[usize; 2]; 7] = [[64, 64], [100, 256], [128, 128], [128, 256], [256, 256], [602, 256], [256, 40]];

/// Rows of a product for each thread: few enough that they stay in a core's caches.
pub const ROWS: usize = 1024;

/// Arguments of `bench roofline`.
#[derive(Args)]
#[command(after_help = "Example: laconic bench roofline --seconds 1 --json")]
pub struct Roofline {
    #[command(flatten)]
    measuring: Measuring,
}

/// What the machine can do.
#[derive(Serialize, JsonSchema)]
pub struct Machine {
    /// Compute threads that stand for all cores.
    threads: usize,
    /// The largest cache; null where the system does not say so.
    cache_bytes: Option<u64>,
    /// Bytes of each array that is copied, or gathered from.
    array_bytes: u64,
    /// Copies.
    copy: Vec<Moved>,
    /// Rows that are gathered, by their width.
    gather: Vec<Moved>,
    /// Dense products, by their shape.
    dense: Vec<Multiplied>,
}

/// Bytes that were moved.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Moved {
    /// On so many compute threads.
    pub threads: usize,
    /// Values in a row; 0 of a copy.
    pub width: usize,
    /// `copy`; rows `copied` one by one, or only `read`.
    pub what: &'static str,
    /// Bytes read and written in a repetition.
    pub bytes: u64,
    #[serde(flatten)]
    pub times: Times,
    /// Bytes in a second, of the fastest repetition.
    pub bytes_per_second: f64,
}

/// A dense product.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Multiplied {
    /// On so many compute threads.
    pub threads: usize,
    /// `forward`, `input gradient` or `weight gradient`.
    pub what: &'static str,
    /// `f32` or `bf16`: how the rows are stored.
    pub precision: &'static str,
    /// Rows that are multiplied; few enough to stay in caches.
    pub rows: usize,
    /// Columns of the weights.
    pub inputs: usize,
    /// Rows of the weights.
    pub outputs: usize,
    #[serde(flatten)]
    pub times: Times,
    /// Flops in a second, of the fastest repetition.
    pub flops_per_second: f64,
}

/// Measures the machine.
pub fn run(arguments: &Roofline, output: &Output) -> Result<u8> {
    let Measuring { seconds, .. } = arguments.measuring;
    let (threads, array) = (arguments.measuring.threads()?, arguments.measuring.array());
    afford("the arrays of copies and gathers", 3 * array)?;
    let mut machine = Machine {
        threads,
        cache_bytes: cache_bytes(),
        array_bytes: array,
        copy: Vec::new(),
        gather: Vec::new(),
        dense: Vec::new(),
    };
    let mut all = vec![1];
    all.extend((threads > 1).then_some(threads));
    for threads in all {
        let mut compute = Compute::start(threads)?;
        let who = if threads == 1 { "one core".to_owned() } else { format!("{threads} threads") };
        output.say(format!("copies and gathers on {who}"));
        machine.copy.push(copied(&compute, array, seconds));
        for width in WIDTHS {
            let rows = (array / (4 * width as u64)).max(1) as usize;
            machine.gather.extend(gathered(&compute, (rows, rows), width, seconds));
        }
        output.say(format!("dense products on {who}"));
        for shape in SHAPES {
            for precision in Precision::ALL {
                machine.dense.extend(multiplied(&mut compute, (ROWS * threads, precision), shape, seconds));
            }
        }
    }
    output.result(table(&machine), &machine)?;
    Ok(0)
}

/// A copy of an array of so many bytes.
pub fn copied(compute: &Compute, bytes: u64, seconds: f64) -> Moved {
    let values = (bytes / 4) as usize;
    // Matrices, since what a model computes on lies where theirs do.
    let (from, mut out) = (Matrix::filled(1, values, 1.0), Matrix::zeros(1, values));
    let times = times(seconds, &mut || copy(compute, out.data_mut(), from.data()));
    moved(compute, ("copy", 0), 8 * values as u64, times)
}

/// So many picks of random rows among so many of this width: copied one by one, then read alone.
pub fn gathered(compute: &Compute, (rows, picks): (usize, usize), width: usize, seconds: f64) -> [Moved; 2] {
    let key = Key::new(0, Purpose::Test);
    let picks: Vec<u32> = (0..picks as u64).map(|pick| key.with(pick).below(rows as u64) as u32).collect();
    let (from, mut out) = (Matrix::filled(rows, width, 1.0), Matrix::zeros(picks.len(), width));
    let copied = times(seconds, &mut || copy_picked(compute, out.data_mut(), width, from.data(), &picks));
    let bytes = (4 * width * picks.len()) as u64;
    out.reshape(sums_of(picks.len()), width);
    let read = times(seconds, &mut || sum_picked(compute, out.data_mut(), width, from.data(), &picks));
    [moved(compute, ("copied", width), 2 * bytes, copied), moved(compute, ("read", width), bytes, read)]
}

fn moved(compute: &Compute, (what, width): (&'static str, usize), bytes: u64, times: Times) -> Moved {
    Moved { threads: compute.threads(), width, what, bytes, times, bytes_per_second: times.rate(bytes as f64) }
}

/// The three products of a linear map with so many rows that are stored so, by the entry points that layers use.
pub fn multiplied(
    compute: &mut Compute,
    (rows, precision): (usize, Precision),
    [inputs, outputs]: [usize; 2],
    seconds: f64,
) -> [Multiplied; 3] {
    let filled = |rows: usize, columns: usize| Matrix::filled(rows, columns, 0.5).converted(precision);
    let (mut x, mut z) = (filled(rows, inputs), filled(rows, outputs));
    let (weight, mut gradient) = (vec![0.25f32; inputs * outputs], vec![0.0f32; inputs * outputs]);
    let threads = compute.threads();
    let product = |what, times: Times| {
        let flops_per_second = times.rate(2.0 * rows as f64 * inputs as f64 * outputs as f64);
        Multiplied { threads, what, precision: precision.name(), rows, inputs, outputs, times, flops_per_second }
    };
    let forward = times(seconds, &mut || {
        times_weight_transposed(compute, &mut z, Store::Set, Rows::Dense(&x), &weight);
    });
    let of_inputs = times(seconds, &mut || times_weight(compute, &mut x, Store::Set, &z, &weight));
    // Rows of moderate size again: what was multiplied over and over may have left the numbers.
    fill(compute, &mut x, 0.5);
    fill(compute, &mut z, 0.5);
    let of_weights = times(seconds, &mut || {
        gradient.fill(0.0);
        add_weight_gradient(compute, &mut gradient, &z, Rows::Dense(&x));
    });
    [product("forward", forward), product("input gradient", of_inputs), product("weight gradient", of_weights)]
}

fn table(machine: &Machine) -> String {
    let mut text = format!(
        "{} threads, arrays of {}, bytes read and written\n{:<24} {:>7} {:>8} {:>10} {:>10} {:>9}\n",
        machine.threads,
        human_bytes(machine.array_bytes),
        "memory",
        "width",
        "threads",
        "best ms",
        "median ms",
        "GB/s"
    );
    for line in machine.copy.iter().chain(&machine.gather) {
        let what = if line.width == 0 { "copy".to_owned() } else { format!("random rows {}", line.what) };
        let [best, median] = [line.times.best_seconds, line.times.median_seconds].map(milliseconds);
        let (width, rate) = (line.width.to_string(), giga(line.bytes_per_second));
        let width = if line.width == 0 { "" } else { &width };
        let _ = writeln!(text, "{what:<24} {width:>7} {:>8} {best:>10} {median:>10} {rate:>9}", line.threads);
    }
    let head = ["dense product", "shape", "threads", "best ms", "median ms", "Gflop/s"];
    let [what, shape, threads, best, median, rate] = head;
    let _ = writeln!(text, "{what:<24} {shape:>7} {threads:>8} {best:>10} {median:>10} {rate:>9}");
    for line in &machine.dense {
        let [best, median] = [line.times.best_seconds, line.times.median_seconds].map(milliseconds);
        let (shape, rate) = (format!("{}x{}", line.inputs, line.outputs), giga(line.flops_per_second));
        let what = if line.precision == Precision::F32.name() {
            line.what.to_owned()
        } else {
            format!("{} {}", line.what, line.precision)
        };
        let _ = writeln!(text, "{what:<24} {shape:>7} {:>8} {best:>10} {median:>10} {rate:>9}", line.threads);
    }
    text.trim_end().to_owned()
}
