//! What passes over all own rows hold at their peak: the matrices of [`crate::pass::network`], as they come and go.

use laconic_nn::{Layer, Precision};

use crate::pass::spare::{LENT, widest};
use crate::pass::walk::{activates_in_place, outputs_replace_folds, reads_weighted_rows, undivided};
use crate::schedule::Stage;

/// The memory that goes from one matrix to another, as [`crate::pass::spare::Spare`] deals with it: what is given back
/// is lent to what needs a third of it at least and is stored alike, and is never freed.
#[derive(Default)]
struct Held {
    /// How a pass stores its rows. Those of [`Held::take_exact`] are `f32` whatever it says.
    precision: Precision,
    free: Vec<usize>,
    exact: Vec<usize>,
    /// All that was ever new of either kind.
    all: [Vec<usize>; 2],
    /// In bytes.
    most: usize,
}

impl Held {
    fn take(&mut self, values: usize) {
        let new = lack(&mut self.free, values);
        self.all[0].extend((new > 0).then_some(new));
        self.most += self.precision.bytes() * new;
    }

    /// Goes on to another pass: nobody reads anything of the one before.
    fn start_again(&mut self) {
        [self.free, self.exact] = self.all.clone();
    }

    fn give(&mut self, values: usize) {
        self.free.extend((values > 0).then_some(values));
    }

    fn take_exact(&mut self, values: usize) {
        match self.precision {
            Precision::F32 => self.take(values),
            Precision::Bf16 => {
                let new = lack(&mut self.exact, values);
                self.all[1].extend((new > 0).then_some(new));
                self.most += Precision::F32.bytes() * new;
            }
        }
    }

    /// The gradient that the backward pass starts from: made in `f32`, and stored as the others are.
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
    let fits = |(_, free): &(usize, &usize)| (values..=LENT * values).contains(*free);
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
    /// Whether these stand where the unit before put out its own.
    stands: bool,
    /// Messages that are not these.
    messages: usize,
    /// Folds that are not what it outputs.
    folded: usize,
    z: usize,
    /// Whether it folds anything in the pass.
    folds: bool,
    /// Whether it outputs its folds themselves.
    in_place: bool,
    /// Whether messages have parameters, so that the backward pass reads them.
    live: bool,
    /// Whether its end reads own rows, and so has a gradient for them.
    reads_rows: bool,
    /// Whether its backward pass is one function.
    undivided: bool,
    /// Whether others read its rows until the end, so that their gradient then has a place of its own.
    joined: bool,
}

/// How a pass keeps what its backward pass could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// All of it.
    All,
    /// What cannot be made again (`train.recompute`).
    Least,
    /// Nothing: there is no backward pass.
    Nothing,
}

/// What a pass runs over.
#[derive(Clone, Copy)]
pub(super) struct Over<'a> {
    /// Own rows that it runs over.
    pub rows: usize,
    /// How many of them each layer outputs.
    pub put_out: &'a [usize],
    /// Kept copies of others' rows, of which messages are made.
    pub copies: usize,
    /// Whether rows cross.
    pub crosses: bool,
    /// How many values of a row of inputs are stored, where these are sparse.
    pub sparse: Option<usize>,
}

/// The most bytes that passes over a stage's network hold, one after the other in the same memory, besides its
/// inputs, what layers keep, and the halo's rows. Memory goes from one matrix to the next ([`crate::pass::spare`]),
/// and matrices of a third of the size of the largest have its room.
pub(super) fn most_bytes<'a>(
    passes: impl IntoIterator<Item = (Over<'a>, Keeping)>,
    stage: &Stage,
    precision: Precision,
) -> usize {
    let mut held = Held { precision, ..Held::default() };
    for (over, keeping) in passes {
        held.start_again();
        hold(&mut held, over, stage, keeping);
    }
    held.most
}

/// One of these passes.
fn hold(held: &mut Held, over: Over<'_>, stage: &Stage, keeping: Keeping) {
    let Over { rows, put_out, copies, crosses, sparse } = over;
    let units = stage.network.units();
    let layers = || units.iter().map(|unit| unit.layer.as_ref()).enumerate();
    // What is put together for the last unit is counted by itself.
    let is_top = |index: usize| stage.network.is_top(index);
    let largest = rows * widest(&stage.network);
    let room = |values: usize| if LENT * values >= largest { values.max(largest) } else { values };
    let sizes = |(index, layer): (usize, &dyn Layer)| {
        let live = layer.facts().message_has_parameters;
        // The first reads inputs of as many rows as it outputs.
        let (read, put_out) = (put_out[index.saturating_sub(1)], put_out[index]);
        let undivided = undivided(&stage.network, index).filter(|_| !crosses);
        let is_one_function = undivided.is_some_and(|of| of.is_for_both_ways());
        let folds = layer.facts().message_width > 0 && (index > 0 || live) && !is_one_function;
        let is_weighted = keeping != Keeping::Nothing && reads_weighted_rows(&stage.network, index);
        let made = folds && !is_weighted && (!layer.facts().messages_are_rows() || index == 0);
        let in_place = outputs_replace_folds(layer);
        Sizes {
            x: if index > 0 { room(read * layer.facts().inputs) } else { 0 },
            stands: index > 0 && !is_top(index - 1) && activates_in_place(&stage.network, index - 1),
            messages: if made { room(read * layer.facts().message_width) } else { 0 },
            folded: if folds && !in_place { room(put_out * layer.facts().fold_width) } else { 0 },
            z: room(put_out * layer.facts().outputs),
            folds,
            in_place,
            live,
            reads_rows: layer.facts().reads_own_row,
            undivided: undivided.is_some(),
            joined: stage.network.joined().is_some(),
        }
    };
    let sizes: Vec<Sizes> = layers().map(sizes).collect();
    let first = units[0].layer.as_ref();
    let (inputs, live) = (first.facts().inputs, first.facts().message_has_parameters);
    let own = match sparse {
        // A copy of values and columns; nobody makes messages of them, which would be dense.
        Some(stored) if first.facts().message_width == 0 => put_out[0] * 2 * stored,
        _ if first.facts().reads_own_row || live => put_out[0] * inputs,
        _ => 0,
    };
    let folded = if first.facts().message_width > 0 && !live { put_out[0] * inputs } else { 0 };
    let drops = units[0].dropout > 0.0 && keeping != Keeping::Nothing;
    // Dense inputs are dropped out as they are read; where they are sent each time, so that others can read them.
    let are_sent = crosses && live && !stage.freezes();
    let dropped = match (drops, sparse.is_some()) {
        (true, true) => [own, folded, copies * inputs],
        (true, false) if are_sent => [own, 0, 0],
        _ => [0; 3],
    };
    // What is put together for the last unit is read by all, so nothing is made again, and all is kept.
    let keeping = if stage.network.joined().is_some() { Keeping::All } else { keeping };
    let joined = stage.network.joined().map_or(0, |_| 3 * room(rows * units[units.len() - 1].layer.facts().inputs));
    dropped.into_iter().chain([joined]).for_each(|values| held.take(values));
    forward(&sizes, keeping, held);
    if keeping != Keeping::Nothing {
        backward(&sizes, keeping, held);
    }
}

/// The most bytes of the messages of `halo` rows and of their gradients: what the backward pass reads stays until it
/// has been read, and memory goes from one matrix to the next.
pub(super) fn most_halo_bytes(halo: usize, stage: &Stage, precision: Precision, keeping: Keeping) -> usize {
    let keeping = if stage.network.joined().is_some() { Keeping::All } else { keeping };
    let messages = |(index, layer): (usize, &dyn Layer)| {
        let live = layer.facts().message_has_parameters;
        (if index > 0 || live { halo * layer.facts().message_width } else { 0 }, live)
    };
    let layers = stage.network.units().iter().map(|unit| unit.layer.as_ref()).enumerate();
    let mut held = Held { precision, ..Held::default() };
    of_halo(&layers.map(messages).collect::<Vec<_>>(), keeping, &mut held);
    held.most
}

/// Of each unit the values of the halo's messages, and whether these have parameters.
fn of_halo(units: &[(usize, bool)], keeping: Keeping, held: &mut Held) {
    let folds_again = |index: usize| keeping == Keeping::Least && !units[index].1 && index + 1 < units.len();
    for (index, &(values, live)) in units.iter().enumerate() {
        let stays = keeping != Keeping::Nothing && (live || folds_again(index));
        held.take(values);
        held.give(if stays { 0 } else { values });
    }
    if keeping == Keeping::Nothing {
        return;
    }
    for (index, &(values, live)) in units.iter().enumerate().rev() {
        held.give(if folds_again(index) { values } else { 0 });
        held.take(values);
        held.give(values);
        held.give(if live { values } else { 0 });
    }
}

fn forward(sizes: &[Sizes], keeping: Keeping, held: &mut Held) {
    for (index, of) in sizes.iter().enumerate() {
        let is_last = index + 1 == sizes.len();
        let put_out = |held: &mut Held| if is_last { held.take_exact(of.z) } else { held.take(of.z) };
        held.take(if of.stands { 0 } else { of.x });
        held.take(of.messages);
        if of.in_place {
            put_out(held);
        }
        held.take(of.folded);
        let forgets_messages = keeping == Keeping::Nothing || (keeping == Keeping::Least && !is_last);
        if !of.live || forgets_messages {
            held.give(of.messages);
        }
        if !of.in_place {
            put_out(held);
        }
        match keeping {
            Keeping::All => {}
            Keeping::Least if index == 0 || is_last => {}
            Keeping::Least => {
                held.give(if of.stands { 0 } else { of.x });
                held.give(if of.live { 0 } else { of.folded });
            }
            Keeping::Nothing => {
                held.give(if is_last { 0 } else { of.x });
                held.give(of.folded);
            }
        }
        if keeping == Keeping::Nothing && !is_last && !sizes[index + 1].stands {
            // What the next unit reads is made of it.
            held.take(sizes[index + 1].x);
            held.give(of.z);
            held.give(sizes[index + 1].x);
        }
    }
}

fn backward(sizes: &[Sizes], keeping: Keeping, held: &mut Held) {
    let least = keeping == Keeping::Least;
    // The gradient by the last unit's outputs.
    held.start_back(sizes.last().map_or(0, |of| of.z));
    for (index, of) in sizes.iter().enumerate().skip(1).rev() {
        let (was_forgotten, frugal) = (least && index + 1 < sizes.len(), least && !of.live && !of.stands);
        if was_forgotten && !of.stands {
            held.take(of.x);
        }
        // What the unit before has put out, where it is neither rows nor folds.
        let before = &sizes[index - 1];
        let before = if before.in_place || of.stands { 0 } else { before.z };
        if of.undivided {
            // Else the gradient comes back in the place of the rows.
            held.give(if of.live { of.messages } else { 0 });
            held.give(of.folded);
            held.take(if of.joined { of.x } else { 0 });
            [of.z, if of.joined { of.x } else { 0 }, before].into_iter().for_each(|values| held.give(values));
            continue;
        }
        if was_forgotten && !of.live {
            held.take(of.messages);
            held.take(of.folded);
            held.give(of.messages);
        }
        held.give(of.folded);
        if of.in_place && index + 1 < sizes.len() {
            held.give(of.z);
        }
        held.give(if frugal { of.x } else { 0 });
        let of_folds = gradient_of_folds(of, held);
        return_messages(of, was_forgotten && of.live, of_folds, held);
        held.give(if of.live { of.messages } else { 0 });
        if frugal {
            held.take(of.x);
        }
        held.give(of.x);
        held.give(before);
    }
    if let Some(first) = sizes.first().filter(|first| first.live) {
        let makes_again = least && sizes.len() > 1;
        if first.in_place && sizes.len() > 1 {
            held.give(first.z);
        }
        gradient_of_folds(first, held);
        held.take(if makes_again { first.messages } else { 0 });
        held.take(first.messages);
    }
}

/// From the gradient of what a unit outputs to that of its folds, which this says the values of, and that of its rows
/// where its end reads them.
fn gradient_of_folds(of: &Sizes, held: &mut Held) -> usize {
    held.take(if of.reads_rows { of.x } else { 0 });
    if of.in_place {
        return of.z;
    }
    held.take(of.folded);
    held.give(of.z);
    of.folded
}

/// From the gradient of a unit's folds to that of its rows, by messages that may have to be made again.
fn return_messages(of: &Sizes, makes_again: bool, of_folds: usize, held: &mut Held) {
    held.take(if makes_again { of.messages } else { 0 });
    let of_messages = match (of.folds, of.messages) {
        (false, _) => 0,
        (true, 0) => of.x,
        (true, messages) => messages,
    };
    held.take(of_messages);
    held.give(of_folds);
    // Where messages are rows, and nothing else reads these, their gradient is that of the rows.
    if of.reads_rows || of.messages > 0 {
        held.take(if of.reads_rows { 0 } else { of.x });
        held.give(of_messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three units of which all rows are as wide, on one worker, whose messages are rows; the last outputs half.
    fn unit(x: usize, z: usize) -> Sizes {
        Sizes {
            x,
            stands: false,
            messages: 0,
            folded: x,
            z,
            folds: true,
            in_place: false,
            live: false,
            reads_rows: true,
            undivided: false,
            joined: false,
        }
    }

    fn most(sizes: &[Sizes], keeping: Keeping) -> usize {
        let mut held = Held::default();
        forward(sizes, keeping, &mut held);
        if keeping != Keeping::Nothing {
            backward(sizes, keeping, &mut held);
        }
        held.most / Precision::F32.bytes()
    }

    #[test]
    fn the_most_is_what_a_table_of_comings_and_goings_says() {
        let sizes = [Sizes { folded: 0, folds: false, ..unit(0, 100) }, unit(100, 100), unit(100, 10)];
        // z0, x1, f1, z1, x2, f2, z2 and dz2; f2 has gone when dx2 and df2 come, and what is narrow has no wide one's
        // memory for the gradient by messages.
        assert_eq!(most(&sizes, Keeping::All), 6 * 100 + 2 * 10 + 2 * 100);
        // z0, z1, z2 and dz2; x2 and f2 have gone then.
        assert_eq!(most(&sizes, Keeping::Least), 2 * 100 + 2 * 10 + 3 * 100);
        // x1, f1, z1 and z2.
        assert_eq!(most(&sizes, Keeping::Nothing), 310);
        // Heads that are averaged: m0, f0, z0, x1, m1, f1, z1 and dz1; f1 has gone when df1 comes, dm1 is new, and dx1
        // has the place of dz1.
        let heads =
            |x: usize| Sizes { x, messages: 100, z: 10, folds: true, live: true, reads_rows: false, ..unit(100, 0) };
        assert_eq!(most(&[heads(0), heads(10)], Keeping::All), 4 * 100 + 4 * 10 + 100);
        // Heads side by side, whose folds are what is output: m0, z0, x1, m1, z1, x2, m2 and z2; dz2, dm2 and the wide
        // dx2 are new.
        let beside = |x: usize, z: usize| Sizes { messages: z, folded: 0, z, in_place: true, ..heads(x) };
        let sizes = [beside(0, 100), beside(100, 100), beside(100, 10)];
        assert_eq!(most(&sizes, Keeping::All), 6 * 100 + 4 * 10 + 100);
        // z0, z1, x2, m2, z2, dz2, dm2 and dx2 on the way; then z0, x1, m1, dz1 and dm1 have the places of all but one.
        assert_eq!(most(&sizes, Keeping::Least), 4 * 100 + 4 * 10 + 100);
    }

    #[test]
    fn messages_of_the_halo_stay_until_they_have_been_read() {
        let most = |units: &[(usize, bool)], keeping| {
            let mut held = Held::default();
            of_halo(units, keeping, &mut held);
            held.most / Precision::F32.bytes()
        };
        let folds = [(0, false), (100, false), (100, false), (30, false)];
        // One after the other in the same memory, but for what is narrow; likewise their gradients.
        assert_eq!(most(&folds, Keeping::All), 130);
        assert_eq!(most(&folds, Keeping::Nothing), 130);
        // The wide ones stay until they are folded again; then each has its gradient's place.
        assert_eq!(most(&folds, Keeping::Least), 230);
        // All stay, and the gradient of the narrow and of the last wide one are new.
        let heads = [(100, true), (100, true), (30, true)];
        assert_eq!(most(&heads, Keeping::All), 230 + 130);
        assert_eq!(most(&heads, Keeping::Nothing), 130);
    }

    #[test]
    fn units_that_are_one_function_hold_rows_alone() {
        let undivided = |x, z| Sizes { folded: 0, folds: false, undivided: true, ..unit(x, z) };
        let sizes = [Sizes { folded: 0, folds: false, ..unit(0, 100) }, undivided(100, 100), undivided(100, 10)];
        // z0, x1, z1, x2, z2 and dz2.
        assert_eq!(most(&sizes, Keeping::All), 4 * 100 + 2 * 10);
        // z0, z1, x2, z2 and dz2; x1 has the place of z1.
        assert_eq!(most(&sizes, Keeping::Least), 3 * 100 + 2 * 10);
        // z0 and x1, x1 and z1, or z1 and x2; what is wide is not lent to the narrow z2.
        assert_eq!(most(&sizes, Keeping::Nothing), 2 * 100 + 10);
        // z0 that is x1, z1 that is x2, z2 and dz2; the rows are there once, so none are made again.
        let stands = |of: Sizes| Sizes { stands: true, ..of };
        let sizes = [sizes[0], stands(sizes[1]), stands(sizes[2])];
        assert_eq!(most(&sizes, Keeping::All), 2 * 100 + 2 * 10);
        assert_eq!(most(&sizes, Keeping::Least), 2 * 100 + 2 * 10);
        // One after the other.
        assert_eq!(most(&sizes, Keeping::Nothing), 2 * 100 + 10);
    }
}
