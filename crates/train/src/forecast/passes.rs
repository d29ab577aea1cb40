//! What passes over all own rows hold at their peak: the matrices of [`crate::pass::network`], as they come and go.

use laconic_nn::{Layer, Nodes, Precision};

use crate::pass::spare::widest;
use crate::pass::walk::reads_weighted_rows;
use crate::schedule::Stage;

/// Whether messages are rows and nothing else, whatever the nodes.
pub(super) fn messages_are_rows(layer: &dyn Layer) -> bool {
    layer.messages_are_rows(&Nodes { ids: &[], inverse_degree: &[], inverse_root_degree: &[] })
}

/// The memory that goes from one matrix to another, as [`crate::pass::spare::Spare`] deals with it: what is given back
/// is lent to what needs half of it at least and is stored alike, and is never freed.
#[derive(Default)]
struct Held {
    /// How a pass stores its rows. Those of [`Held::take_exact`] are `f32` whatever it says.
    precision: Precision,
    free: Vec<usize>,
    exact: Vec<usize>,
    /// In bytes.
    most: usize,
}

impl Held {
    fn take(&mut self, values: usize) {
        self.most += self.precision.bytes() * lack(&mut self.free, values);
    }

    fn give(&mut self, values: usize) {
        self.free.extend((values > 0).then_some(values));
    }

    fn take_exact(&mut self, values: usize) {
        match self.precision {
            Precision::F32 => self.take(values),
            Precision::Bf16 => self.most += Precision::F32.bytes() * lack(&mut self.exact, values),
        }
    }

    /// The gradient that the way back starts from: made in `f32`, and stored as the others are.
    fn start_back(&mut self, values: usize) {
        self.take_exact(values);
        if self.precision != Precision::F32 {
            self.take(values);
            self.exact.extend((values > 0).then_some(values));
        }
    }
}

/// How many values have to be new, where so many are wanted.
fn lack(free: &mut Vec<usize>, values: usize) -> usize {
    let fits = |(_, free): &(usize, &usize)| (values..=2 * values).contains(*free);
    let best = free.iter().enumerate().filter(fits).min_by_key(|(_, free)| **free);
    match best.map(|(place, _)| place) {
        Some(place) => {
            free.swap_remove(place);
            0
        }
        None => values,
    }
}

/// What a unit's matrices hold, in values.
#[derive(Clone, Copy)]
struct Sizes {
    /// Rows that it reads; 0 for the first, whose inputs are counted elsewhere.
    x: usize,
    /// Messages that are not these.
    messages: usize,
    folded: usize,
    z: usize,
    /// Whether messages have parameters, so that the way back reads them.
    live: bool,
}

/// How a pass keeps what its way back could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// All of it.
    All,
    /// What cannot be made again (`train.recompute`).
    Least,
    /// Nothing: there is no way back.
    Nothing,
}

/// What a pass runs over.
#[derive(Clone, Copy)]
pub(super) struct Over {
    /// Own rows that it runs over.
    pub rows: usize,
    /// Kept copies of others' rows, of which messages are made.
    pub copies: usize,
}

/// The most bytes that a pass over a stage's network holds, besides its inputs, what layers keep, and the halo's rows.
/// Memory goes from one matrix to the next ([`crate::pass::spare`]), and matrices of half of the size of the largest
/// have its room.
pub(super) fn most_bytes(
    Over { rows, copies }: Over,
    (stage, precision): (&Stage, Precision),
    keeping: Keeping,
) -> usize {
    let units = stage.network.units();
    let layers = || units.iter().map(|unit| unit.layer.as_ref()).enumerate();
    let largest = rows * widest(&stage.network);
    let room = |values: usize| if 2 * values >= largest { values.max(largest) } else { values };
    let sizes = |(index, layer): (usize, &dyn Layer)| {
        let live = layer.message_has_parameters();
        let folds = layer.message_width() > 0 && (index > 0 || live);
        let is_weighted = keeping != Keeping::Nothing && reads_weighted_rows(&stage.network, index);
        let made = folds && !is_weighted && (!messages_are_rows(layer) || index == 0);
        Sizes {
            x: if index > 0 { room(rows * layer.inputs()) } else { 0 },
            messages: if made { room(rows * layer.message_width()) } else { 0 },
            folded: if folds { room(rows * layer.fold_width()) } else { 0 },
            z: room(rows * layer.outputs()),
            live,
        }
    };
    let sizes: Vec<Sizes> = layers().map(sizes).collect();
    let first = units[0].layer.as_ref();
    let (inputs, live) = (first.inputs(), first.message_has_parameters());
    let own = if first.reads_own_row() || live { rows * inputs } else { 0 };
    let folded = if first.message_width() > 0 && !live { rows * inputs } else { 0 };
    let drops = units[0].dropout > 0.0 && keeping != Keeping::Nothing;
    // Only where they are lent to others is all of their room used.
    let copy = |values: usize| if drops && keeping == Keeping::Least { room(values) } else { values };
    let dropped = if drops { [own, folded, copies * inputs].map(copy) } else { [0; 3] };
    // What is put together for the last unit is read by all, so nothing is made again, and all is kept.
    let keeping = if stage.network.joined().is_some() { Keeping::All } else { keeping };
    let joined = stage.network.joined().map_or(0, |_| 3 * room(rows * units[units.len() - 1].layer.inputs()));
    let mut held = Held { precision, ..Held::default() };
    dropped.into_iter().chain([joined]).for_each(|values| held.take(values));
    forward(&sizes, keeping, &mut held, &dropped);
    if keeping != Keeping::Nothing {
        backward(&sizes, keeping, &mut held, &dropped);
    }
    held.most
}

fn forward(sizes: &[Sizes], keeping: Keeping, held: &mut Held, dropped: &[usize]) {
    for (index, of) in sizes.iter().enumerate() {
        let is_last = index + 1 == sizes.len();
        held.take(of.x);
        held.take(of.messages);
        held.take(of.folded);
        if !of.live {
            held.give(of.messages);
        }
        if is_last {
            held.take_exact(of.z)
        } else {
            held.take(of.z)
        }
        match keeping {
            Keeping::All => {}
            Keeping::Least if index == 0 => dropped.iter().for_each(|values| held.give(*values)),
            Keeping::Least if is_last => {}
            Keeping::Least => {
                held.give(of.x);
                held.give(if of.live { 0 } else { of.folded });
            }
            Keeping::Nothing => {
                held.give(if is_last { 0 } else { of.x });
                held.give(of.folded);
            }
        }
        if keeping == Keeping::Nothing && !is_last {
            // What the next unit reads is made of it.
            held.take(sizes[index + 1].x);
            held.give(of.z);
            held.give(sizes[index + 1].x);
        }
    }
}

fn backward(sizes: &[Sizes], keeping: Keeping, held: &mut Held, dropped: &[usize]) {
    let least = keeping == Keeping::Least;
    // The gradient by the last unit's outputs.
    held.start_back(sizes.last().map_or(0, |of| of.z));
    for (index, of) in sizes.iter().enumerate().skip(1).rev() {
        let (was_forgotten, frugal) = (least && index + 1 < sizes.len(), least && !of.live);
        let message_gradient = match (of.folded > 0, of.messages) {
            (false, _) => 0,
            (true, 0) => of.x,
            (true, messages) => messages,
        };
        if was_forgotten {
            held.take(of.x);
        }
        if was_forgotten && frugal {
            held.take(of.messages);
            held.take(of.folded);
            held.give(of.messages);
        }
        held.give(of.folded);
        held.give(if frugal { of.x } else { 0 });
        // The gradients by inputs and folds, then that by messages in the place of the one by outputs.
        held.take(of.x);
        held.take(of.folded);
        held.give(of.z);
        held.take(message_gradient);
        held.give(of.folded);
        held.give(message_gradient);
        held.give(if of.live { of.messages } else { 0 });
        if frugal {
            held.take(of.x);
        }
        held.give(of.x);
        held.give(sizes[index - 1].z);
    }
    if least {
        dropped.iter().for_each(|values| held.take(*values));
    }
    if let Some(first) = sizes.first().filter(|first| first.live) {
        held.take(first.folded);
        held.take(first.messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three units of which all rows are as wide, on one worker, whose messages are rows; the last puts out half.
    fn unit(x: usize, z: usize) -> Sizes {
        Sizes { x, messages: 0, folded: x, z, live: false }
    }

    fn most(sizes: &[Sizes], keeping: Keeping) -> usize {
        let mut held = Held::default();
        forward(sizes, keeping, &mut held, &[]);
        if keeping != Keeping::Nothing {
            backward(sizes, keeping, &mut held, &[]);
        }
        held.most / Precision::F32.bytes()
    }

    #[test]
    fn the_most_is_what_a_table_of_comings_and_goings_says() {
        let sizes = [Sizes { folded: 0, ..unit(0, 100) }, unit(100, 100), unit(100, 10)];
        // z0, x1, f1, z1, x2, f2, z2 and dz2; f2 has gone when dx2 and df2 come, and what is narrow has no wide one's
        // memory for the gradient by messages.
        assert_eq!(most(&sizes, Keeping::All), 6 * 100 + 2 * 10 + 2 * 100);
        // z0, z1, z2 and dz2; x2 and f2 have gone then.
        assert_eq!(most(&sizes, Keeping::Least), 2 * 100 + 2 * 10 + 3 * 100);
        // x1, f1, z1 and z2.
        assert_eq!(most(&sizes, Keeping::Nothing), 310);
        // Heads that are averaged: m0, f0, z0, x1, m1, f1, z1, dz1 and dx1; f1 has gone when df1 comes, and dm1 is new.
        let heads = |x: usize| Sizes { x, messages: 100, folded: 100, z: 10, live: true };
        assert_eq!(most(&[heads(0), heads(10)], Keeping::All), 4 * 100 + 5 * 10 + 100);
    }
}
