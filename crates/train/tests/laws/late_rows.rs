//! Pipelined training against a plain program in double precision that runs all workers at once: SAGE by the mean, rows
//! and gradients of other workers a round late, parameters that move in every round.

use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_train::config::ramp::{Controller, Ramp, Reading};
use laconic_wire::codec::{MessageKey, columns, travelling};
use laconic_wire::{Content, FramePurpose, Rank, Tag};

use crate::brute_force::{difference, owners};
use crate::fixture::{FEATURES, PLAIN, config, graph, run};

const WORKERS: u32 = 3;
const HIDDEN: usize = 10;
const CLASSES: usize = 4;
const LAYERS: usize = 3;
const WIDTHS: [usize; LAYERS + 1] = [FEATURES, HIDDEN, HIDDEN, CLASSES];

type Rows = Vec<Vec<f64>>;

/// What crosses in layers whose rows get narrower.
#[derive(Clone, Copy, PartialEq)]
enum Crosses {
    Rows,
    Products,
}

/// Which columns of a message of this layer and width, sent in this round, cross.
type Mask<'a> = &'a dyn Fn(usize, u32, usize) -> Vec<bool>;

/// A run of plain gradient steps, with what is under way between its rounds.
struct Plain<'a> {
    dataset: &'a Dataset,
    owners: Vec<u32>,
    crosses: Crosses,
    mask: Mask<'a>,
    /// Per layer what every node sent in the round before, and the gradients that its copies were given there.
    late: Vec<Option<(Rows, Rows)>>,
}

/// A layer in a round, as its forward pass left it: rows in and out, and what they were folded from.
struct Moment<'a> {
    p: &'a [f64],
    number: usize,
    round: u32,
    x: &'a Rows,
    z: &'a Rows,
    fold: &'a Rows,
}

/// A layer's parameters: neighbours' weight, bias, own weight.
struct Layer<'a> {
    neighbour: &'a [f64],
    bias: &'a [f64],
    own: &'a [f64],
    inputs: usize,
    outputs: usize,
}

fn layer(p: &[f64], number: usize) -> (Layer<'_>, usize) {
    let start: usize = (0..number).map(|n| 2 * WIDTHS[n] * WIDTHS[n + 1] + WIDTHS[n + 1]).sum();
    let (inputs, outputs) = (WIDTHS[number], WIDTHS[number + 1]);
    let (neighbour, rest) = p[start..].split_at(inputs * outputs);
    let (bias, rest) = rest.split_at(outputs);
    (Layer { neighbour, bias, own: &rest[..inputs * outputs], inputs, outputs }, start)
}

/// x · Wᵀ of one row.
fn times(weight: &[f64], x: &[f64]) -> Vec<f64> {
    weight.chunks(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
}

/// y · W of one row.
fn times_back(weight: &[f64], y: &[f64], inputs: usize) -> Vec<f64> {
    (0..inputs).map(|i| y.iter().enumerate().map(|(o, y)| y * weight[o * inputs + i]).sum()).collect()
}

fn add(into: &mut [f64], values: &[f64]) {
    into.iter_mut().zip(values).for_each(|(into, value)| *into += value);
}

/// `weight += yᵀ · x` of one row.
fn add_outer(weight: &mut [f64], y: &[f64], x: &[f64]) {
    for (row, y) in weight.chunks_mut(x.len()).zip(y) {
        row.iter_mut().zip(x).for_each(|(w, x)| *w += y * x);
    }
}

fn masked(rows: &Rows, keep: &[bool]) -> Rows {
    rows.iter().map(|row| row.iter().zip(keep).map(|(v, keep)| if *keep { *v } else { 0.0 }).collect()).collect()
}

fn zeros(rows: usize, columns: usize) -> Rows {
    vec![vec![0.0; columns]; rows]
}

impl Plain<'_> {
    fn features(&self) -> Rows {
        let Features::Dense { values, .. } = &self.dataset.features else { unreachable!("generated rows are dense") };
        values.chunks(FEATURES).map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect()
    }

    /// Whether what crosses, and what is folded, is multiplied before.
    fn narrows(&self, number: usize) -> bool {
        number > 0 && WIDTHS[number + 1] < WIDTHS[number]
    }

    /// The gradient of the loss in `round`, at these parameters.
    fn gradient(&mut self, p: &[f64], round: u32) -> Vec<f64> {
        let nodes = self.owners.len();
        let mut rows = vec![self.features()];
        let mut folds = Vec::new();
        let mut sent: Vec<Rows> = Vec::new();
        for number in 0..LAYERS {
            let Layer { neighbour, bias, own, .. } = layer(p, number).0;
            let x = &rows[number];
            let products: Rows = x.iter().map(|x| times(neighbour, x)).collect();
            // What neighbours here are folded by, and what crosses.
            let here = if self.narrows(number) { &products } else { x };
            let crossing = if self.crosses == Crosses::Products { here } else { x };
            let there = match &self.late[number] {
                // The inputs of the first layer never change, and cross once, whole.
                _ if number == 0 => Some(here.clone()),
                Some((late, _)) if self.narrows(number) && self.crosses == Crosses::Rows => {
                    Some(late.iter().map(|x| times(neighbour, x)).collect())
                }
                late => late.as_ref().map(|(late, _)| late.clone()),
            };
            let mut fold = zeros(nodes, here[0].len());
            for (v, fold) in fold.iter_mut().enumerate() {
                let sources = self.dataset.graph.in_neighbours(v);
                for &u in sources {
                    match (self.owners[u as usize] == self.owners[v], &there) {
                        (true, _) => add(fold, &here[u as usize]),
                        (false, Some(there)) => add(fold, &there[u as usize]),
                        (false, None) => {}
                    }
                }
                fold.iter_mut().for_each(|sum| *sum /= sources.len().max(1) as f64);
            }
            let z: Rows = (0..nodes)
                .map(|v| {
                    let mut z = if self.narrows(number) { fold[v].clone() } else { times(neighbour, &fold[v]) };
                    add(&mut z, bias);
                    add(&mut z, &times(own, &x[v]));
                    if number + 1 < LAYERS { z.into_iter().map(|z| z.max(0.0)).collect() } else { z }
                })
                .collect();
            sent.push(masked(crossing, &(self.mask)(number, round, crossing[0].len())));
            folds.push(fold);
            rows.push(z);
        }
        let mut g = vec![0.0; p.len()];
        let mut dz = self.loss_gradient(&rows[LAYERS]);
        for number in (0..LAYERS).rev() {
            let held = self.late[number].take();
            let at = Moment { p, number, round, x: &rows[number], z: &rows[number + 1], fold: &folds[number] };
            let (dx, dlate) = self.layer_back(&at, &mut g, held, dz);
            self.late[number] = Some((std::mem::take(&mut sent[number]), dlate));
            dz = dx;
        }
        g
    }

    /// One layer backward: the gradient of its input rows with what comes back late, and what goes back to the owners
    /// of late rows.
    fn layer_back(&self, at: &Moment<'_>, g: &mut [f64], held: Option<(Rows, Rows)>, dz: Rows) -> (Rows, Rows) {
        let Moment { p, number, round, x, .. } = *at;
        let (Layer { neighbour, inputs, outputs, .. }, start) = layer(p, number);
        let (narrows, nodes) = (self.narrows(number), self.owners.len());
        let [mut dx, mut here, there] = self.fold_back(at, g, dz);
        if number == 0 {
            return (dx, Rows::new());
        }
        let rows_cross = narrows && self.crosses == Crosses::Rows;
        let weights = &mut g[start..start + inputs * outputs];
        // Nothing was there in the first round, and nothing is known of it.
        let dlate = match &held {
            None => zeros(nodes, if narrows && !rows_cross { outputs } else { inputs }),
            Some((late, _)) if rows_cross => {
                late.iter().zip(&there).for_each(|(late, there)| add_outer(weights, there, late));
                there.iter().map(|there| times_back(neighbour, there, inputs)).collect()
            }
            Some(_) => there,
        };
        let dlate = masked(&dlate, &(self.mask)(number, round - 1, dlate[0].len()));
        if let Some((_, back)) = held {
            let into = if rows_cross { &mut dx } else { &mut here };
            into.iter_mut().zip(&back).for_each(|(into, back)| add(into, back));
        }
        for u in 0..nodes {
            match narrows {
                true => {
                    add_outer(weights, &here[u], &x[u]);
                    add(&mut dx[u], &times_back(neighbour, &here[u], inputs));
                }
                false => add(&mut dx[u], &here[u]),
            }
        }
        (dx, dlate)
    }

    /// From the gradient of a layer's output those of its input rows where they are read as own rows, of what is folded
    /// of rows here, and of what is folded of other workers' rows.
    fn fold_back(&self, at: &Moment<'_>, g: &mut [f64], mut dz: Rows) -> [Rows; 3] {
        let Moment { p, number, x, z, fold, .. } = *at;
        let (Layer { neighbour, own, inputs, outputs, .. }, start) = layer(p, number);
        let (nodes, narrows) = (self.owners.len(), self.narrows(number));
        if number + 1 < LAYERS {
            for (dz, z) in dz.iter_mut().zip(z) {
                dz.iter_mut().zip(z).filter(|(_, z)| **z == 0.0).for_each(|(dz, _)| *dz = 0.0);
            }
        }
        let (bias_start, own_start) = (start + inputs * outputs, start + inputs * outputs + outputs);
        let width = if narrows { outputs } else { inputs };
        let (mut here, mut there, mut dx) = (zeros(nodes, width), zeros(nodes, width), zeros(nodes, inputs));
        for v in 0..nodes {
            add(&mut g[bias_start..own_start], &dz[v]);
            add_outer(&mut g[own_start..own_start + inputs * outputs], &dz[v], &x[v]);
            dx[v] = times_back(own, &dz[v], inputs);
            let dfold = match narrows {
                true => dz[v].clone(),
                false => {
                    add_outer(&mut g[start..bias_start], &dz[v], &fold[v]);
                    times_back(neighbour, &dz[v], inputs)
                }
            };
            let sources = self.dataset.graph.in_neighbours(v);
            let share: Vec<f64> = dfold.iter().map(|d| d / sources.len().max(1) as f64).collect();
            for &u in sources {
                let near = self.owners[u as usize] == self.owners[v];
                add(if near { &mut here[u as usize] } else { &mut there[u as usize] }, &share);
            }
        }
        [dx, here, there]
    }

    /// The gradient of the mean cross-entropy of training rows by their scores.
    fn loss_gradient(&self, scores: &Rows) -> Rows {
        let Labels::Single { values, .. } = &self.dataset.labels else { unreachable!("generated graphs have classes") };
        let learns = |v: usize| self.dataset.splits[0].roles[v] & Split::TRAIN != 0 && values[v] >= 0;
        let count = (0..scores.len()).filter(|&v| learns(v)).count() as f64;
        let row = |v: usize| {
            if !learns(v) {
                return vec![0.0; CLASSES];
            }
            let total: f64 = scores[v].iter().map(|score| score.exp()).sum();
            let share = |(class, score): (usize, &f64)| {
                (score.exp() / total - f64::from(u8::from(class as i32 == values[v]))) / count
            };
            scores[v].iter().enumerate().map(share).collect()
        };
        (0..scores.len()).map(row).collect()
    }
}

/// How far our parameters have moved away from the plain program's after some rounds, over how far they have moved.
fn apart(keys: &[&str], crosses: Crosses, mask: Mask<'_>, rounds: u32) -> f64 {
    let hidden = format!("model.hidden={HIDDEN}");
    let small = ["schedule.kind=pipelined", "model.norm=none", "model.layers=3", hidden.as_str()];
    let keys = [&PLAIN[..], &small, keys].concat();
    let dataset = graph(150, CLASSES);
    let after = |rounds: u32| -> Vec<f64> {
        let epochs = format!("train.epochs={rounds}");
        let keys = [&keys[..], &[epochs.as_str()]].concat();
        run(&config(&keys), &dataset, WORKERS).swap_remove(0).trained.last.into_iter().map(f64::from).collect()
    };
    let start = after(0);
    let late = (0..LAYERS).map(|_| None).collect();
    let mut plain = Plain { dataset: &dataset, owners: owners(&keys, &dataset), crosses, mask, late };
    let mut p = start.clone();
    for round in 1..=rounds {
        let gradient = plain.gradient(&p, round);
        // The rate of `PLAIN` is 1.
        p.iter_mut().zip(&gradient).for_each(|(p, g)| *p -= g);
    }
    let found = after(rounds);
    let moved = |to: &[f64]| to.iter().zip(&start).map(|(to, from)| to - from).collect::<Vec<f64>>();
    difference(&moved(&found), &moved(&p))
}

/// Nothing is masked.
const WHOLE: Mask<'static> = &|_, _, width| vec![true; width];

#[test]
fn late_rows_are_multiplied_with_the_weights_of_now() {
    for rounds in [1, 2, 3, 8] {
        let apart = apart(&[], Crosses::Rows, WHOLE, rounds);
        assert!(apart < 1e-4, "{rounds} rounds: {apart:.1e}");
    }
}

#[test]
fn late_products_were_made_with_the_weights_of_before() {
    for rounds in [1, 2, 3, 8] {
        let apart = apart(&["schedule.late=products"], Crosses::Products, WHOLE, rounds);
        assert!(apart < 1e-4, "{rounds} rounds: {apart:.1e}");
    }
}

/// The controls: after three rounds it shows which of the two crossed.
#[test]
fn late_rows_and_late_products_are_two_methods() {
    assert!(apart(&[], Crosses::Products, WHOLE, 3) > 1e-3);
    assert!(apart(&["schedule.late=products"], Crosses::Rows, WHOLE, 3) > 1e-3);
}

/// The columns that a random mask of this ratio keeps, by the wire's keys: which of them is a matter of chance, which
/// round's they are is not.
fn random_columns(ratio: &Controller, rounds: u32) -> impl Fn(usize, u32, usize) -> Vec<bool> {
    move |layer, round, width| {
        let tag = Tag { layer: layer as u16, round, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
        let key = MessageKey { seed: 0, tag, from: Rank(0), to: Rank(1), drawn: round };
        let reading = Reading { done: round.max(1) - 1, rounds, ..Reading::default() };
        let mut kept = Vec::new();
        columns(&key, false, width, travelling(width, ratio.at(&reading)), &mut kept);
        (0..width as u32).map(|column| kept.contains(&column)).collect()
    }
}

/// Rows of round t − 1 are used in round t, so their gradients go back in the columns of t − 1 and at its ratio.
#[test]
fn gradients_of_late_rows_come_back_in_the_columns_that_went_out() {
    let rounds = 6;
    let fixed = (Controller::Fixed(3.0), "3".to_owned());
    let ramp = (Controller::Ramp(Ramp { from: 6.0, ..Ramp::default() }), "{from=6}".to_owned());
    for (ratio, written) in [fixed, ramp] {
        let mask = |way: &str| format!("messages.{way}={{codec=\"masked\",ratio={written},whole_last=false}}");
        let exact_inputs = r#"messages.layers={0={forward="exact"}}"#;
        let masks = ["forward", "backward"].map(mask);
        for (late, crosses) in [("rows", Crosses::Rows), ("products", Crosses::Products)] {
            let late = format!("schedule.late={late}");
            let keys = [masks[0].as_str(), &masks[1], exact_inputs, &late];
            let found = apart(&keys, crosses, &random_columns(&ratio, rounds), rounds);
            assert!(found < 1e-4, "{keys:?}: {found:.1e}");
        }
    }
}
