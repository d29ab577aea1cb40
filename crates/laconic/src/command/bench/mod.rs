//! `laconic bench`: how fast this machine is, and how far from that the program stays.
//!
//! A bound is made of what the machine was measured to do in the same process, so a share of it means the same on every
//! machine.

pub mod epoch;
mod graph;
pub mod kernels;
mod measure;
pub mod roofline;
pub mod scale;
mod trained;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use laconic_graph::memory;
use laconic_train::config::parse_bytes;

use crate::bytes::human_bytes;
use crate::output::Output;

/// What can be measured.
#[derive(Subcommand)]
pub enum Bench {
    /// Measure the machine: copies, gathers of random rows by width, dense products by shape
    Roofline(roofline::Roofline),
    /// Train on a generated graph and set the time of a round beside what it has to take at least
    Epoch(Box<epoch::Epoch>),
    /// Measure each hot kernel against what the machine can do
    Kernels(kernels::Kernels),
    /// Generate, read, cut and train at sizes that double, and print time and memory of each
    Scale(Box<scale::Scale>),
}

/// Measures what was asked for.
pub fn run(bench: Bench, output: &Output) -> Result<u8> {
    match bench {
        Bench::Roofline(arguments) => roofline::run(&arguments, output),
        Bench::Epoch(arguments) => epoch::run(&arguments, output),
        Bench::Kernels(arguments) => kernels::run(&arguments, output),
        Bench::Scale(arguments) => scale::run(&arguments, output),
    }
}

/// How to measure.
#[derive(Args)]
pub struct Measuring {
    /// Compute threads (0: all cores)
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    threads: usize,
    /// Seconds for each measure, at least three repetitions
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = seconds)]
    seconds: f64,
    /// Size of the arrays that are copied and gathered from, such as 512MB (otherwise eight times the cache, and at
    /// least 256 MB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    array: Option<u64>,
}

/// More threads than any machine has.
const THREADS_MAX: usize = 1024;

/// The smallest array that is measured with: some thousand rows of the widest.
const ARRAY_MIN: u64 = 1 << 20;

/// The array where nothing else is said.
const ARRAY_DEFAULT: u64 = 256_000_000;

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected 0 to 3600 seconds".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).ok_or_else(|| "expected a size such as 512MB".to_owned())?;
    if bytes < ARRAY_MIN {
        return Err(format!("expected at least {}", human_bytes(ARRAY_MIN)));
    }
    Ok(bytes)
}

impl Measuring {
    /// The number of threads that stands for all.
    ///
    /// # Errors
    /// If there are more than any machine has.
    fn threads(&self) -> Result<usize> {
        if self.threads > THREADS_MAX {
            bail!("--threads {}: expected at most {THREADS_MAX}", self.threads);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(if self.threads == 0 { cores } else { self.threads })
    }

    /// The bytes of an array that no cache holds, as far as is known.
    fn array(&self) -> u64 {
        self.array.unwrap_or_else(|| ARRAY_DEFAULT.max(8 * cache_bytes().unwrap_or(0)))
    }
}

/// The size of the largest cache of a core, where the system says so.
fn cache_bytes() -> Option<u64> {
    let of = |index: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        let kib = text.trim().strip_suffix('K')?.parse::<u64>().ok()?;
        kib.checked_mul(1024)
    };
    (0..8).filter_map(of).max()
}

/// Refuses to take memory that is not there: a tenth of what there is stays free.
///
/// # Errors
/// If there is less; the text says what for, how much it takes and how much there is.
fn afford(what: &str, bytes: u64) -> Result<()> {
    match memory::available() {
        Some(there) if bytes > there / 10 * 9 => {
            bail!("{what} would take {} of memory, and there are {}", human_bytes(bytes), human_bytes(there))
        }
        _ => Ok(()),
    }
}
