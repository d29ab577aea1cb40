//! Which bit-width each message gets: AdaQP's bi-objective assignment, solved exactly and without a solver for integer
//! programs.
//!
//! More bits lower the variance of what arrives and lengthen the exchange, whose rounds each last as long as their
//! slowest channel. [`assign`] minimises λ·(V − V_lo)/(V_hi − V_lo) + (1 − λ)·(T − T_lo)/(T_hi − T_lo) over one width
//! per message, where V sums `beta / (2^bits − 1)²` over messages and T the slowest channel's seconds over rounds. V_hi
//! and V_lo are those of 2 and of 8 bits throughout; so are T_lo and T_hi. (The published code takes the *fastest*
//! channel at 2 bits for T_lo, a time no assignment reaches. It changes the scale and not the meaning.)
//!
//! Why this is easy: messages of a channel cost the same, so by exchange the noisiest get 8 bits, the next 4,
//! the rest 2. That leaves, for each channel, the least variance within a number of extra bits (`frontier`) and, for
//! each round, a scan over the times at which one of its channels can afford one more step (`best_deadline`).
//!
//! The outcome depends on its arguments alone, so every rank can compute it and nobody needs to send it. It takes
//! 0.07 s for 12 channels of 30,000 messages on one core.

/// The bit-widths to choose from.
pub const MENU: [u8; 3] = [2, 4, 8];

/// Variance of a message at 2, 4 and 8 bits for each unit of its beta.
const NOISE: [f64; 3] = [1.0 / 9.0, 1.0 / 225.0, 1.0 / 65025.0];

/// A terabyte a second. Fits of noisy timings come out at nothing or less, and then more bits would be free.
const SECONDS_PER_BYTE_MIN: f64 = 1e-12;

/// The messages of one exchange from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Channel<'a> {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// How much each message's rounding matters, in any order. What is negative or no finite number counts as 0.
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
/// cost nothing. Ties go to the shorter round, then to more messages at 8 bits. Where all betas are 0 nothing is known
/// about the messages, and all get 8 bits. Time goes as messages times the logarithm of messages; memory is about 100
/// bytes a message of the largest round.
///
/// # Panics
/// If `lambda` is outside 0 to 1, or a channel's ends are equal or not below `workers`.
pub fn assign(channels: &[Channel<'_>], workers: u32, lambda: f64) -> Assignment {
    let mut bits: Vec<Vec<u8>> = channels.iter().map(|channel| vec![8; channel.beta.len()]).collect();
    if channels.iter().any(|channel| channel.betas().any(|beta| beta > 0.0)) {
        let scale = Scale::of(channels, workers, lambda);
        for members in rounds(channels, workers) {
            let menus: Vec<Menu> = members.iter().map(|&index| Menu::of(&channels[index])).collect();
            let deadline = best_deadline(&menus, &scale);
            for (menu, &index) in menus.iter().zip(&members) {
                menu.serve(deadline, &mut bits[index]);
            }
        }
    }
    let (variance, seconds, objective) = evaluate(channels, workers, lambda, &bits);
    Assignment { bits, variance, seconds, objective }
}

/// Variance, seconds and objective of any assignment, normalised as in [`assign`].
///
/// # Panics
/// As [`assign`] does, and if `bits` has not one width of [`MENU`] for every message.
pub fn evaluate(channels: &[Channel<'_>], workers: u32, lambda: f64, bits: &[Vec<u8>]) -> (f64, f64, f64) {
    assert_eq!(bits.len(), channels.len(), "one list of widths for each channel");
    let scale = Scale::of(channels, workers, lambda);
    let variance = channels.iter().zip(bits).map(|(channel, bits)| channel.variance(bits)).sum();
    let seconds =
        total_seconds(channels, workers, |index| bits[index].iter().map(|&bits| usize::from(bits / 2 - 1)).sum());
    (variance, seconds, scale.objective(variance, seconds))
}

impl Channel<'_> {
    fn betas(&self) -> impl Iterator<Item = f64> {
        self.beta.iter().map(|&beta| if beta.is_finite() && beta > 0.0 { f64::from(beta) } else { 0.0 })
    }

    fn variance(&self, bits: &[u8]) -> f64 {
        assert_eq!(bits.len(), self.beta.len(), "one width for each message from rank {} to {}", self.from, self.to);
        self.betas().zip(bits).map(|(beta, &bits)| NOISE[selector(bits) as usize] * beta).sum()
    }
}

/// Seconds of a channel as a straight line over steps: pairs of bits beyond the two that every message has.
struct Line {
    start: f64,
    step: f64,
}

impl Line {
    fn of(channel: &Channel<'_>) -> Line {
        let LinkCost { seconds_per_byte, latency } = channel.cost;
        let seconds_per_byte = if seconds_per_byte.is_finite() {
            seconds_per_byte.max(SECONDS_PER_BYTE_MIN)
        } else {
            SECONDS_PER_BYTE_MIN
        };
        let latency = if latency.is_finite() { latency.max(0.0) } else { 0.0 };
        let messages = channel.beta.len() as f64;
        let step = seconds_per_byte * 2.0 * channel.bytes_per_bit;
        Line { start: latency + messages * (seconds_per_byte * channel.overhead + step), step }
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
fn total_seconds(channels: &[Channel<'_>], workers: u32, steps: impl Fn(usize) -> usize) -> f64 {
    let seconds = |index: usize| Line::of(&channels[index]).seconds(steps(index));
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
    fn of(channels: &[Channel<'_>], workers: u32, lambda: f64) -> Scale {
        assert!((0.0..=1.0).contains(&lambda), "lambda is {lambda}, expected 0 to 1");
        let beta: f64 = channels.iter().map(|channel| channel.betas().sum::<f64>()).sum();
        let seconds_least = total_seconds(channels, workers, |_| 0);
        let seconds_most = total_seconds(channels, workers, |index| 3 * channels[index].beta.len());
        let weight = |weight: f64, range: f64| if range > 0.0 { weight / range } else { 0.0 };
        Scale {
            variance_least: NOISE[2] * beta,
            variance_per_unit: weight(lambda, (NOISE[0] - NOISE[2]) * beta),
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
struct Menu {
    line: Line,
    order: Vec<u32>,
    splits: Vec<Split>,
}

impl Menu {
    fn of(channel: &Channel<'_>) -> Menu {
        let betas: Vec<f64> = channel.betas().collect();
        let mut order: Vec<u32> = (0..betas.len() as u32).collect();
        // Equal betas go by index, so that every rank finds the same order.
        order.sort_unstable_by(|&a, &b| betas[b as usize].total_cmp(&betas[a as usize]).then(a.cmp(&b)));
        // Published code reads its sorted list at original positions here, and so weighs the wrong messages.
        let sorted: Vec<f64> = order.iter().map(|&index| betas[index as usize]).collect();
        Menu { line: Line::of(channel), order, splits: frontier(&sorted) }
    }

    /// The most steps that fit, of those there are.
    fn steps_within(&self, deadline: f64) -> usize {
        let (mut fits, mut most) = (0, self.splits.len() - 1);
        while fits < most {
            let middle = (fits + most).div_ceil(2);
            if self.line.seconds(middle) <= deadline { fits = middle } else { most = middle - 1 }
        }
        fits
    }

    /// Writes the widths that are best within a deadline.
    fn serve(&self, deadline: f64, bits: &mut [u8]) {
        let Split { eights, raised, .. } = self.splits[self.steps_within(deadline)];
        for (place, &index) in (0..).zip(&self.order) {
            bits[index as usize] = if place < eights {
                8
            } else if place < raised {
                4
            } else {
                2
            };
        }
    }
}

/// How long a round should last.
///
/// The only lengths worth trying are those at which some channel completes a step, from the least that lets all
/// channels send 2 bits. Each channel's are sorted already, and the stable sort merges sorted runs. The variance is
/// carried along: a round of a million steps drifts by 1e-10 of the objective's range at the very worst.
fn best_deadline(menus: &[Menu], scale: &Scale) -> f64 {
    let least = menus.iter().map(|menu| menu.line.seconds(0)).fold(0.0, f64::max);
    let mut steps: Vec<usize> = menus.iter().map(|menu| menu.steps_within(least)).collect();
    let mut candidates: Vec<(f64, u32)> = Vec::new();
    for ((menu, steps), index) in menus.iter().zip(&steps).zip(0..) {
        candidates.extend((steps + 1..menu.splits.len()).map(|step| (menu.line.seconds(step), index)));
    }
    candidates.sort_by(|(a, _), (b, _)| a.total_cmp(b));

    let mut variance: f64 = menus.iter().zip(&steps).map(|(menu, &step)| menu.splits[step].variance).sum();
    let mut best = (scale.objective(variance, least), least);
    for together in candidates.chunk_by(|(a, _), (b, _)| a == b) {
        for &(_, index) in together {
            let (splits, step) = (&menus[index as usize].splits, &mut steps[index as usize]);
            variance += splits[*step + 1].variance - splits[*step].variance;
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

/// The `eights` noisiest messages at 8 bits, the next up to `raised` at 4, the rest at 2, and the variance of all of
/// them then.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Split {
    variance: f64,
    eights: u32,
    raised: u32,
}

/// The least variance of messages of falling `beta` within u steps, for u from 0 to 3 a message; 4 bits take one step,
/// 8 bits three.
///
/// With u spent to the last step, one more message at 8 bits takes two from 4 down to 2. What that gains falls with the
/// number of messages at 8 bits and what it loses rises, so the first number at which it does not pay is the best one.
/// That number never falls as u rises, because the two messages given up become quieter: one pass finds all of them.
/// Spending all of u can be worse than spending less (3 steps on two messages buy 8 and 2 bits, 2 steps the often
/// better 4 and 4) or impossible (one step short of 8 bits throughout), hence the running minimum. Equal variances go
/// to the later split, which has no fewer at 8 bits.
fn frontier(beta: &[f64]) -> Vec<Split> {
    let count = beta.len();
    let mut sums = vec![0.0; count + 1];
    for (index, beta) in beta.iter().enumerate() {
        sums[index + 1] = sums[index] + beta;
    }
    let mut best = Split { variance: NOISE[0] * sums[count], eights: 0, raised: 0 };
    let mut splits = Vec::with_capacity(3 * count + 1);
    let mut eights = 0;
    for steps in 0..=3 * count {
        let most = steps / 3;
        eights = eights.max(steps.saturating_sub(count).div_ceil(2));
        while eights < most && another_eight_pays(beta, eights, steps - 2 * eights) {
            eights += 1;
        }
        if eights <= most {
            let split = split_at(&sums, eights, steps - 2 * eights);
            best = if split.variance <= best.variance { split } else { best };
        }
        splits.push(best);
    }
    splits
}

/// Whether to raise message `eights` from 4 to 8 bits at the cost of lowering the last two of the `raised` from 4 to 2.
fn another_eight_pays(beta: &[f64], eights: usize, raised: usize) -> bool {
    let gain = (NOISE[1] - NOISE[2]) * beta[eights];
    let loss = (NOISE[0] - NOISE[1]) * (beta[raised - 2] + beta[raised - 1]);
    gain >= loss
}

/// A split, of messages whose betas have these prefix sums.
fn split_at(sums: &[f64], eights: usize, raised: usize) -> Split {
    let (eight, four) = (sums[eights], sums[raised] - sums[eights]);
    let two = sums[sums.len() - 1] - sums[raised];
    let variance = NOISE[2] * eight + NOISE[1] * four + NOISE[0] * two;
    Split { variance, eights: eights as u32, raised: raised as u32 }
}

/// Two bits for a width: its place in [`MENU`].
fn selector(bits: u8) -> u8 {
    match bits {
        2 => 0,
        4 => 1,
        8 => 2,
        _ => panic!("a width of {bits} bits, expected one of {MENU:?}"),
    }
}

/// A bit map of widths: two bits a message, four messages a byte from its low end on, the rest of the last byte zero.
///
/// # Panics
/// If a width is not in [`MENU`].
pub fn pack_widths(bits: &[u8]) -> Vec<u8> {
    let byte = |four: &[u8]| four.iter().rev().fold(0, |byte, &bits| byte << 2 | selector(bits));
    bits.chunks(4).map(byte).collect()
}

/// The `count` widths of a bit map. `None` if its length is wrong, it has a selector that stands for nothing, or its
/// padding is not zero, so that every list of widths has one bit map only.
pub fn unpack_widths(bytes: &[u8], count: usize) -> Option<Vec<u8>> {
    if bytes.len() != count.div_ceil(4) {
        return None;
    }
    let mut selectors = bytes.iter().flat_map(|byte| [0, 2, 4, 6].map(|shift| byte >> shift & 3));
    let widths = selectors.by_ref().take(count).map(|selector| MENU.get(usize::from(selector)).copied()).collect();
    if selectors.all(|padding| padding == 0) { widths } else { None }
}

#[cfg(test)]
mod tests;
