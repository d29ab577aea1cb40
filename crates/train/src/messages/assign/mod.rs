//! Which bit-width each message gets: AdaQP's bi-objective assignment, solved exactly and without a solver for integer
//! programs.
//!
//! More bits lower the variance of what arrives and lengthen the exchange, whose rounds each last as long as their
//! slowest channel. [`assign`] minimises λ·(V − V_lo)/(V_hi − V_lo) + (1 − λ)·(T − T_lo)/(T_hi − T_lo) over one width
//! per message, where V sums `beta / (2^bits − 1)²` over messages and T the slowest channel's seconds over rounds. V_hi
//! and V_lo are those of the narrowest and the widest code throughout; so are T_lo and T_hi. (The published code takes
//! the *fastest* channel at 2 bits for T_lo, a time no assignment reaches. It changes the scale and not the meaning.)
//!
//! Why this is easy: messages of a channel cost the same, so by exchange the noisiest get the widest code, the next the
//! one before, and so on. That leaves, for each channel, the least variance within a number of extra bits
//! (`frontier`) and, for each round, a scan over the times at which one of its channels can afford one more step
//! (`best_deadline`). Every width counts as if it had a quantiser's parameters; 32 bits do without their four bytes.
//!
//! The outcome depends on its arguments alone, so every rank can compute it and nobody needs to send it. It takes
//! 0.07 s for 12 channels of 30,000 messages on one core.

mod frontier;
mod menu;

use frontier::Frontier;
pub use menu::Menu;

/// A terabyte a second. Fits of noisy timings come out at nothing or less, and then more bits would be free.
const SECONDS_PER_BYTE_MIN: f64 = 1e-12;

/// The messages of one exchange from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Channel<'a> {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// How much each message's rounding matters, in any order; NaN where nothing is known of it. What is negative or
    /// infinite counts as 0.
    pub beta: &'a [f32],
    /// Bytes of one message at one bit: its columns over 8.
    pub bytes_per_bit: f64,
    /// Bytes of one message that do not depend on its width: the parameters of its quantiser.
    pub overhead: f64,
    /// What sending costs.
    pub cost: LinkCost,
}

/// A straight line from bytes to seconds. Values that no link can have count as the cheapest that one can.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkCost {
    /// Seconds for one more byte.
    pub seconds_per_byte: f64,
    /// Seconds for none.
    pub latency: f64,
}

/// A bit-width for every message and what it comes to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assignment {
    /// For each channel its messages' widths, in the order given.
    pub bits: Vec<Vec<u8>>,
    /// The summed variance.
    pub variance: f64,
    /// The slowest channel's seconds, summed over rounds.
    pub seconds: f64,
    /// What was minimised.
    pub objective: f64,
}

/// The assignment of least objective. `lambda` from 0 to 1 weighs variance against time.
///
/// In round r of 1 up to `workers`, exclusive, rank k sends to rank k + r modulo `workers`; channels without messages
/// cost nothing. Ties go to the shorter round, then to more messages of the widest code. Messages of which nothing is
/// known have [`Menu::first`] bits, and all have where no beta is above 0; messages without variance have the narrowest
/// code. Time goes as messages times the logarithm of messages; memory is 100 bytes or so a message of the largest
/// round.
///
/// # Panics
/// If `lambda` is outside 0 to 1, or a channel's ends are equal or not below `workers`.
pub fn assign(channels: &[Channel<'_>], workers: u32, lambda: f64, menu: &Menu) -> Assignment {
    let mut bits: Vec<Vec<u8>> = channels.iter().map(|channel| vec![menu.first(); channel.beta.len()]).collect();
    if channels.iter().any(|channel| channel.betas().any(|beta| beta > 0.0)) {
        let scale = Scale::of(channels, workers, lambda, menu);
        for members in rounds(channels, workers) {
            let reaches: Vec<Reach> = members.iter().map(|&index| Reach::of(&channels[index], menu)).collect();
            let deadline = best_deadline(&reaches, &scale);
            for (reach, &index) in reaches.iter().zip(&members) {
                reach.serve(deadline, menu, &mut bits[index]);
            }
        }
    }
    let (variance, seconds, objective) = evaluate(channels, workers, lambda, menu, &bits);
    Assignment { bits, variance, seconds, objective }
}

/// Variance, seconds and objective of any assignment, normalised as in [`assign`].
///
/// # Panics
/// As [`assign`] does, and if `bits` has not one width of the menu for every message.
pub fn evaluate(channels: &[Channel<'_>], workers: u32, lambda: f64, menu: &Menu, bits: &[Vec<u8>]) -> (f64, f64, f64) {
    assert_eq!(bits.len(), channels.len(), "one list of widths for each channel");
    let scale = Scale::of(channels, workers, lambda, menu);
    let variance = channels.iter().zip(bits).map(|(channel, bits)| channel.variance(bits, menu)).sum();
    let steps = |bits: &Vec<u8>| bits.iter().map(|&bits| menu.steps(menu.place(bits))).sum();
    let seconds = total_seconds(channels, menu, workers, |index| steps(&bits[index]));
    (variance, seconds, scale.objective(variance, seconds))
}

impl Channel<'_> {
    fn betas(&self) -> impl Iterator<Item = f64> {
        self.beta.iter().map(|&beta| if beta.is_finite() && beta > 0.0 { f64::from(beta) } else { 0.0 })
    }

    /// Messages of which nothing is known.
    fn unknown(&self) -> usize {
        self.beta.iter().filter(|beta| beta.is_nan()).count()
    }

    /// Steps of what is unknown, whatever is assigned.
    fn fixed_steps(&self, menu: &Menu) -> usize {
        self.unknown() * menu.steps(menu.place(menu.first()))
    }

    fn variance(&self, bits: &[u8], menu: &Menu) -> f64 {
        assert_eq!(bits.len(), self.beta.len(), "one width for each message from rank {} to {}", self.from, self.to);
        self.betas().zip(bits).map(|(beta, &bits)| menu.noise(menu.place(bits)) * beta).sum()
    }
}

/// Seconds of a channel as a straight line over steps: bits beyond the narrowest code's, which every message has.
struct Line {
    start: f64,
    step: f64,
}

impl Line {
    fn of(channel: &Channel<'_>, menu: &Menu) -> Line {
        let LinkCost { seconds_per_byte, latency } = channel.cost;
        let seconds_per_byte = if seconds_per_byte.is_finite() {
            seconds_per_byte.max(SECONDS_PER_BYTE_MIN)
        } else {
            SECONDS_PER_BYTE_MIN
        };
        let latency = if latency.is_finite() { latency.max(0.0) } else { 0.0 };
        let messages = channel.beta.len() as f64;
        let least = seconds_per_byte * f64::from(menu.least()) * channel.bytes_per_bit;
        let step = seconds_per_byte * f64::from(menu.step()) * channel.bytes_per_bit;
        Line { start: latency + messages * (seconds_per_byte * channel.overhead + least), step }
    }

    fn seconds(&self, steps: usize) -> f64 {
        self.start + self.step * steps as f64
    }
}

/// The indices of each round's channels that carry anything.
fn rounds(channels: &[Channel<'_>], workers: u32) -> Vec<Vec<usize>> {
    let mut rounds = vec![Vec::new(); workers as usize];
    for (index, Channel { from, to, beta, .. }) in channels.iter().enumerate() {
        let fits = *from < workers && *to < workers && from != to;
        assert!(fits, "channel {index} from rank {from} to {to} among {workers} workers");
        if !beta.is_empty() {
            let round = (u64::from(*to) + u64::from(workers) - u64::from(*from)) % u64::from(workers);
            rounds[round as usize].push(index);
        }
    }
    rounds
}

/// The slowest channel's seconds, summed over rounds, where each channel takes so many steps.
fn total_seconds(channels: &[Channel<'_>], menu: &Menu, workers: u32, steps: impl Fn(usize) -> usize) -> f64 {
    let seconds = |index: usize| Line::of(&channels[index], menu).seconds(steps(index));
    rounds(channels, workers)
        .iter()
        .map(|members| members.iter().map(|&index| seconds(index)).fold(0.0, f64::max))
        .sum()
}

/// The two terms of the objective. A term whose range is empty weighs nothing, since no assignment can change it.
struct Scale {
    variance_least: f64,
    variance_per_unit: f64,
    seconds_least: f64,
    seconds_per_unit: f64,
}

impl Scale {
    fn of(channels: &[Channel<'_>], workers: u32, lambda: f64, menu: &Menu) -> Scale {
        assert!((0.0..=1.0).contains(&lambda), "lambda is {lambda}, expected 0 to 1");
        let beta: f64 = channels.iter().map(|channel| channel.betas().sum::<f64>()).sum();
        let last = menu.widths().len() - 1;
        let known = |channel: &Channel<'_>| channel.beta.len() - channel.unknown();
        let least = |index: usize| channels[index].fixed_steps(menu);
        let seconds_least = total_seconds(channels, menu, workers, least);
        let most = |index: usize| least(index) + menu.steps(last) * known(&channels[index]);
        let seconds_most = total_seconds(channels, menu, workers, most);
        let weight = |weight: f64, range: f64| if range > 0.0 { weight / range } else { 0.0 };
        Scale {
            variance_least: menu.noise(last) * beta,
            variance_per_unit: weight(lambda, (menu.noise(0) - menu.noise(last)) * beta),
            seconds_least,
            seconds_per_unit: weight(1.0 - lambda, seconds_most - seconds_least),
        }
    }

    fn objective(&self, variance: f64, seconds: f64) -> f64 {
        self.variance_per_unit * (variance - self.variance_least)
            + self.seconds_per_unit * (seconds - self.seconds_least)
    }
}

/// All that one channel could do: its messages from the noisiest on and the best use of every number of steps.
struct Reach {
    line: Line,
    /// Steps of what is unknown.
    fixed: usize,
    /// Messages of known variance above 0, noisiest first.
    order: Vec<u32>,
    /// Messages that are known to have none.
    silent: Vec<u32>,
    frontier: Frontier,
}

impl Reach {
    fn of(channel: &Channel<'_>, menu: &Menu) -> Reach {
        let betas: Vec<f64> = channel.betas().collect();
        let known = (0..betas.len() as u32).filter(|&index| !channel.beta[index as usize].is_nan());
        let (mut order, silent): (Vec<u32>, Vec<u32>) = known.partition(|&index| betas[index as usize] > 0.0);
        // Equal betas go by index, so that every rank finds the same order.
        order.sort_unstable_by(|&a, &b| betas[b as usize].total_cmp(&betas[a as usize]).then(a.cmp(&b)));
        // Published code reads its sorted list at original positions here, and so weighs the wrong messages.
        let sorted: Vec<f64> = order.iter().map(|&index| betas[index as usize]).collect();
        let (line, fixed) = (Line::of(channel, menu), channel.fixed_steps(menu));
        Reach { line, fixed, order, silent, frontier: Frontier::of(&sorted, menu) }
    }

    fn seconds(&self, steps: usize) -> f64 {
        self.line.seconds(self.fixed + steps)
    }

    /// The most steps that fit, of those there are.
    fn steps_within(&self, deadline: f64) -> usize {
        let (mut fits, mut most) = (0, self.frontier.steps());
        while fits < most {
            let middle = (fits + most).div_ceil(2);
            if self.seconds(middle) <= deadline { fits = middle } else { most = middle - 1 }
        }
        fits
    }

    /// Writes the widths that are best within a deadline.
    fn serve(&self, deadline: f64, menu: &Menu, bits: &mut [u8]) {
        let risen = self.frontier.risen(self.steps_within(deadline));
        for (place, &index) in (0..).zip(&self.order) {
            bits[index as usize] = menu.widths()[risen.iter().filter(|&&count| place < count).count()];
        }
        self.silent.iter().for_each(|&index| bits[index as usize] = menu.least());
    }
}

/// How long a round should last.
///
/// The only lengths worth trying are those at which some channel completes a step, from the least that lets all
/// channels send their narrowest codes. Each channel's are sorted already, and the stable sort merges sorted runs. The
/// variance is carried along: a round of a million steps drifts by 1e-10 of the objective's range at the very worst.
fn best_deadline(reaches: &[Reach], scale: &Scale) -> f64 {
    let least = reaches.iter().map(|reach| reach.seconds(0)).fold(0.0, f64::max);
    let mut steps: Vec<usize> = reaches.iter().map(|reach| reach.steps_within(least)).collect();
    let mut candidates: Vec<(f64, u32)> = Vec::new();
    for ((reach, steps), index) in reaches.iter().zip(&steps).zip(0..) {
        candidates.extend((steps + 1..=reach.frontier.steps()).map(|step| (reach.seconds(step), index)));
    }
    candidates.sort_by(|(a, _), (b, _)| a.total_cmp(b));

    let mut variance: f64 = reaches.iter().zip(&steps).map(|(reach, &step)| reach.frontier.variance(step)).sum();
    let mut best = (scale.objective(variance, least), least);
    for together in candidates.chunk_by(|(a, _), (b, _)| a == b) {
        for &(_, index) in together {
            let (frontier, step) = (&reaches[index as usize].frontier, &mut steps[index as usize]);
            variance += frontier.variance(*step + 1) - frontier.variance(*step);
            *step += 1;
        }
        let deadline = together[0].0;
        let objective = scale.objective(variance, deadline);
        if objective < best.0 {
            best = (objective, deadline);
        }
    }
    best.1
}

#[cfg(test)]
mod tests;
