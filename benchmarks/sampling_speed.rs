//! How many edges a second are drawn and made into blocks: `sampling_speed GRAPH.npz FANOUTS THREADS [BATCHES]`, with
//! fanouts such as `15,10,5`, that of the first layer first. Batches of 1,024 training nodes, or of any nodes where the
//! file has no split. benchmarks/peers/sampling.py runs it in turn with other libraries.
//!
//! Prints a line for each way to use the threads: all of them at one batch, or each at a batch of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use laconic_graph::dataset::Split;
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::sample::{CsrLists, Neighbourhoods, Sampled, Sampler};
use rayon::{ThreadPool, ThreadPoolBuilder};

const SIZE: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, fanouts, threads, rest @ ..] = &arguments[..] else {
        return Err("usage: sampling_speed GRAPH.npz FANOUTS THREADS [BATCHES]".into());
    };
    let fanouts = fanouts.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let fanouts: Vec<Option<usize>> = fanouts.into_iter().map(Some).collect();
    let (threads, most) = (threads.parse()?, rest.first().map_or(Ok(100), |text| text.parse())?);

    let dataset = read(path.as_ref(), &ReadOptions { symmetrise: true, ..ReadOptions::default() })?;
    let train = |node: &u32| dataset.splits.first().is_none_or(|split| split.roles[*node as usize] & Split::TRAIN != 0);
    let mut seeds: Vec<u32> = (0..dataset.graph.nodes() as u32).filter(train).collect();
    CsrLists::key(1, 0).shuffle(&mut seeds);
    let batches: Vec<&[u32]> = seeds.chunks_exact(SIZE).take(most).collect();
    let neighbourhoods = Neighbourhoods::of(dataset.graph);
    println!("{} nodes, {} batches of {SIZE}", neighbourhoods.rows(), batches.len());

    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
    let sample = |sampler: &mut Sampler, batch: usize, into: &mut Sampled| {
        let lists = CsrLists::new(&neighbourhoods, &fanouts, CsrLists::key(1, batch as u64));
        sampler.sample(&lists, batches[batch], fanouts.len(), into);
        into.hops.iter().map(|hop| hop.edges()).sum::<usize>()
    };
    let together = pool(threads)?;
    let mut state = (Sampler::new(neighbourhoods.rows()), Sampled::default());
    let mut alone: Vec<(ThreadPool, Sampler, Sampled)> = Vec::new();
    for _ in 0..threads {
        alone.push((pool(1)?, Sampler::new(neighbourhoods.rows()), Sampled::default()));
    }
    for _ in 0..5 {
        timed("all threads at a batch", || {
            together.install(|| (0..batches.len()).map(|batch| sample(&mut state.0, batch, &mut state.1)).sum())
        });
        let (next, edges) = (AtomicUsize::new(0), AtomicUsize::new(0));
        timed("a batch for each thread", || {
            std::thread::scope(|scope| {
                for (pool, sampler, into) in &mut alone {
                    scope.spawn(|| {
                        pool.install(|| {
                            loop {
                                let batch = next.fetch_add(1, Ordering::Relaxed);
                                if batch >= batches.len() {
                                    break;
                                }
                                edges.fetch_add(sample(sampler, batch, into), Ordering::Relaxed);
                            }
                        });
                    });
                }
            });
            edges.load(Ordering::Relaxed)
        });
    }
    Ok(())
}

fn timed(what: &str, work: impl FnOnce() -> usize) {
    let start = Instant::now();
    let edges = work();
    let seconds = start.elapsed().as_secs_f64();
    println!("{{\"how\": \"{what}\", \"edges\": {edges}, \"seconds\": {seconds:.4}}}");
}
