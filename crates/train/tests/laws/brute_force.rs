//! Losses and gradients of many workers against a few lines of double precision that know nothing of workers: a network
//! of two layers on the whole graph, whose messages along cut edges are masked, or missing.

use std::collections::{BTreeMap, BTreeSet};

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Labels, Split};

use crate::fixture::{FEATURES, PLAIN, config, first_gradient, graph, losses, parts, run};
use crate::same_bits::bits;
use crate::streams::{columns, positions};

const WORKERS: u32 = 3;

/// Which worker owns each node.
pub fn owners(keys: &[&str], dataset: &Dataset) -> Vec<u32> {
    let mut owners = vec![0; dataset.graph.nodes()];
    for part in parts(&config(keys), dataset, WORKERS) {
        part.nodes.iter().for_each(|&node| owners[node as usize] = part.index);
    }
    owners
}

/// What becomes of a message along a cut edge, column by column: the factor of each.
type Cut = Box<dyn Fn(u16, usize) -> Vec<f64>>;

/// What a node's message counts for at another worker, where not every row travels; 0 if it is not there.
type Weights = BTreeMap<(u32, u32), f64>;

/// SAGE by the mean of neighbours, as its paper has it; the mean is over all in-neighbours, cut off or not.
struct Sage<'a> {
    dataset: &'a Dataset,
    owners: Vec<u32>,
    hidden: usize,
    cut: Cut,
    weights: Option<Weights>,
}

impl Sage<'_> {
    fn widths(&self) -> [usize; 3] {
        [FEATURES, self.hidden, self.dataset.labels.classes()]
    }

    /// One layer from its parameters (neighbours' weight, bias, own weight) and input rows. Where rows get narrower
    /// they are multiplied before they travel, but not at the first layer.
    fn layer(&self, number: u16, p: &[f64], x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (inputs, outputs) = (self.widths()[number as usize], self.widths()[number as usize + 1]);
        let (neighbour, rest) = p.split_at(inputs * outputs);
        let (bias, own) = rest.split_at(outputs);
        let times = |weight: &[f64], x: &[f64]| -> Vec<f64> {
            weight.chunks(inputs).map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
        };
        let early = number > 0 && outputs < inputs;
        let messages: Vec<Vec<f64>> = x.iter().map(|x| if early { times(neighbour, x) } else { x.clone() }).collect();
        let mask = (self.cut)(number, messages[0].len());
        let node = |target: usize| {
            let sources = self.dataset.graph.in_neighbours(target);
            let mut mean = vec![0.0; mask.len()];
            for &source in sources {
                let crosses = self.owners[source as usize] != self.owners[target];
                let weight = match &self.weights {
                    Some(weights) if crosses => weights[&(source, self.owners[target])],
                    _ => 1.0,
                };
                for (column, sum) in mean.iter_mut().enumerate() {
                    let factor = if crosses { weight * mask[column] } else { 1.0 };
                    *sum += factor * messages[source as usize][column] / sources.len() as f64;
                }
            }
            let mut out = if early { mean } else { times(neighbour, &mean) };
            let own = times(own, &x[target]);
            out.iter_mut().zip(bias).zip(own).for_each(|((out, bias), own)| *out += bias + own);
            out
        };
        (0..x.len()).map(node).collect()
    }

    /// The mean cross-entropy over training nodes.
    fn loss(&self, p: &[f64]) -> f64 {
        let [inputs, hidden, _] = self.widths();
        let Features::Dense { values, .. } = &self.dataset.features else { panic!("dense features") };
        let Labels::Single { values: labels, .. } = &self.dataset.labels else { panic!("classes") };
        let x: Vec<Vec<f64>> = values.chunks(inputs).map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect();
        let (first, second) = p.split_at(2 * inputs * hidden + hidden);
        let mut rows = self.layer(0, first, &x);
        rows.iter_mut().flatten().for_each(|value| *value = value.max(0.0));
        let (mut sum, mut count) = (0.0, 0.0);
        for (node, logits) in self.layer(1, second, &rows).iter().enumerate() {
            if self.dataset.splits[0].roles[node] & Split::TRAIN != 0 && labels[node] >= 0 {
                let normaliser = logits.iter().map(|z| z.exp()).sum::<f64>().ln();
                sum += normaliser - logits[labels[node] as usize];
                count += 1.0;
            }
        }
        sum / count
    }

    /// Central differences: their error is the step's square, far below single precision's.
    fn gradient(&self, p: &[f64]) -> Vec<f64> {
        const STEP: f64 = 1e-5;
        let mut p = p.to_vec();
        let mut one = |i: usize| {
            let at = p[i];
            let mut loss = |value: f64| {
                p[i] = value;
                self.loss(&p)
            };
            let slope = (loss(at + STEP) - loss(at - STEP)) / (2.0 * STEP);
            p[i] = at;
            slope
        };
        (0..one_len(self)).map(&mut one).collect()
    }
}

fn one_len(network: &Sage<'_>) -> usize {
    network.widths().windows(2).map(|pair| 2 * pair[0] * pair[1] + pair[1]).sum()
}

/// The largest difference, relative to the largest entry.
pub fn difference(found: &[f64], expected: &[f64]) -> f64 {
    let largest = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    found.iter().zip(expected).fold(0.0f64, |most, (a, b)| most.max((a - b).abs())) / largest
}

/// Compares the first loss and gradient of three workers with brute force: single precision leaves 1e-7 of each, of
/// parameters that are a hundred times as large as their gradients 1e-5, and sums of some hundred terms a little more.
fn assert_brute_force(keys: &[&str], widths: (usize, usize), cut: Cut) {
    assert_brute_force_weighed(keys, widths, cut, false);
}

fn assert_brute_force_weighed(keys: &[&str], (classes, hidden): (usize, usize), cut: Cut, sampled: bool) {
    let dataset = graph(48, classes);
    let width = format!("model.hidden={hidden}");
    let base = ["model.arch=sage", "model.norm=none", "schedule.cache_inputs=false", width.as_str()];
    let keys = [&base[..], keys].concat();
    let run_keys = [&PLAIN[..], &keys, &["train.epochs=1"]].concat();
    let before = run(&config(&[&run_keys[..], &["train.epochs=0"]].concat()), &dataset, WORKERS).swap_remove(0);
    let parameters: Vec<f64> = before.trained.last.iter().map(|value| f64::from(*value)).collect();
    let owners = owners(&keys, &dataset);
    let weights = sampled.then(|| drawn(&owners, &dataset));
    let network = Sage { dataset: &dataset, owners, hidden, cut, weights };
    assert_eq!(parameters.len(), one_len(&network), "{keys:?}");
    let (loss, expected) = (losses(&run_keys, &dataset, WORKERS)[0], network.loss(&parameters));
    assert!((loss - expected).abs() < 1e-6 * expected, "{keys:?}: loss {loss} instead of {expected}");
    let apart = difference(&first_gradient(&keys, &dataset, WORKERS), &network.gradient(&parameters));
    assert!(apart < 1e-4, "{keys:?}: gradients differ by {apart:.1e}");
}

/// Widths of classes and hidden rows: rows travel as they are, and multiplied to fewer columns.
const WIDTHS: [(usize, usize); 2] = [(6, 5), (3, 7)];

/// The oracle itself: nothing is masked.
#[test]
fn gradients_of_many_workers_are_those_of_the_whole_graph() {
    for widths in WIDTHS {
        assert_brute_force(&[], widths, Box::new(|_, width| vec![1.0; width]));
    }
}

/// G3: with the same mask in both directions, many workers have the loss and gradient of one process that masks the
/// messages along cut edges.
#[test]
fn gradients_under_a_mask_are_those_of_masked_messages() {
    for widths in WIDTHS {
        for (prefix, rescale) in [(true, false), (true, true), (false, false), (false, true)] {
            let options = format!("columns=\"{}\",rescale={rescale}", if prefix { "prefix" } else { "random" });
            let mask = |way: &str| format!("messages.{way}={{codec=\"masked\",ratio=2,whole_last=false,{options}}}");
            let masks = ["forward", "backward"].map(mask);
            let cut = move |layer: u16, width: usize| {
                let kept = width / 2;
                let travels = if prefix { (0..kept).collect() } else { columns(0, 1, layer, width, kept) };
                let factor = if rescale { width as f64 / kept as f64 } else { 1.0 };
                (0..width).map(|column| if travels.contains(&column) { factor } else { 0.0 }).collect()
            };
            assert_brute_force(&masks.each_ref().map(String::as_str), widths, Box::new(cut));
        }
    }
}

/// The fold divides by the degree of the whole graph, whether neighbours answer or not, where it is told to.
#[test]
fn gradients_without_messages_and_with_global_degrees_are_those_of_rows_of_zeros() {
    for widths in WIDTHS {
        let none = r#"messages.selection={kind="none",degrees="global"}"#;
        assert_brute_force(&[none], widths, Box::new(|_, width| vec![0.0; width]));
    }
}

/// The share of boundary rows that travel in the test below.
const RATE: f64 = 0.4;

/// What every node counts for at every other worker that reads it in the first round. A link's rows are the nodes that
/// its holder has edges from, in the order of their ids.
fn drawn(owners: &[u32], dataset: &Dataset) -> Weights {
    let mut weights = Weights::new();
    for (owner, holder) in (0..WORKERS).flat_map(|owner| (0..WORKERS).map(move |holder| (owner, holder))) {
        let reads = |target: usize| dataset.graph.in_neighbours(target).iter().copied();
        let held = (0..owners.len()).filter(|&target| owners[target] == holder).flat_map(reads);
        let link: BTreeSet<u32> = held.filter(|&source| owners[source as usize] == owner && owner != holder).collect();
        let count = (RATE * link.len() as f64).ceil() as usize;
        let travels = positions(0, 1, [owner, holder], link.len(), count);
        for (at, node) in link.iter().enumerate() {
            let weight = if travels.contains(&at) { link.len() as f64 / count as f64 } else { 0.0 };
            weights.insert((*node, holder), weight);
        }
    }
    weights
}

/// Rows that are drawn count for those that are not, in the forward pass and the backward pass alike.
#[test]
fn gradients_of_sampled_boundaries_are_those_of_weighed_messages() {
    for widths in WIDTHS {
        let sample = format!("messages.selection={{kind=\"boundary_sample\",rate={RATE}}}");
        assert_brute_force_weighed(&[&sample], widths, Box::new(|_, width| vec![1.0; width]), true);
    }
}

/// The control: a mask in the forward pass and none in the backward pass is no gradient.
#[test]
#[should_panic(expected = "gradients differ")]
fn another_mask_on_the_way_back_is_no_gradient() {
    let mask = r#"messages.forward={codec="masked",ratio=2,whole_last=false,columns="prefix"}"#;
    let cut = |_, width: usize| (0..width).map(|column| f64::from(u8::from(column < width / 2))).collect();
    assert_brute_force(&[mask], WIDTHS[0], Box::new(cut));
}

/// The same data without the edges between workers.
fn without_cut_edges(dataset: &Dataset, owners: &[u32]) -> Dataset {
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for target in 0..dataset.graph.nodes() {
        for &source in dataset.graph.in_neighbours(target) {
            if owners[source as usize] == owners[target] {
                sources.push(source);
                targets.push(target as u32);
            }
        }
    }
    let mut dataset = dataset.clone();
    (dataset.graph, _) =
        build_graph(owners.len(), sources, targets, None, BuildOptions::default()).expect("sound edges");
    dataset
}

/// G4. Whole runs, dropout on, are the same to the last bit, degrees included; and so are the parameters after the last
/// round, where evaluations see the whole graph.
#[test]
fn training_without_messages_is_training_on_the_graph_without_cut_edges() {
    let dataset = graph(150, 4);
    let (none, alone) = ("messages.selection=none", "messages.evaluation=none");
    for arch in crate::methods::ARCHS {
        for schedule in crate::methods::SCHEDULES {
            let keys = [arch, schedule].concat();
            let outcomes =
                |dataset: &Dataset, more: &[&str]| run(&config(&[&keys[..], more].concat()), dataset, WORKERS);
            let cut = outcomes(&without_cut_edges(&dataset, &owners(&keys, &dataset)), &[]);
            assert!(bits(&outcomes(&dataset, &[none, alone])) == bits(&cut), "{keys:?}");
            assert!(bits(&outcomes(&dataset, &[])) != bits(&cut), "{keys:?}: cut edges matter");
            // Lazy stages choose the parameters that they build on by evaluations.
            if !keys.contains(&"schedule.kind=lazy") {
                assert!(outcomes(&dataset, &[none])[0].trained.last == cut[0].trained.last, "{keys:?}");
            }
        }
    }
}
