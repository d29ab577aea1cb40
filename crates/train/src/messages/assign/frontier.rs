//! The least variance that messages of one channel can have within any number of steps.

use super::menu::Menu;

/// For every number of steps the least variance of messages within it, and how many of the noisiest messages then have
/// each width or a wider one.
///
/// Messages of a channel cost the same, so by exchange the noisiest have the widest codes, and an assignment is one
/// number for each width but the narrowest: how many messages rise to it. What the next message gains by rising falls
/// with their number, so the gain of each width is concave in it, and the best sum of such gains within a number of
/// steps is a convolution, one width after the other. Where one function is concave, the best split moves one way as
/// the steps go up, so that halves can be searched apart: messages times their logarithm.
///
/// Nobody rises to a width without having risen to that before: its gain for each step is larger, since widths double.
#[derive(Debug)]
pub(super) struct Frontier {
    /// The least variance within so many steps.
    variance: Vec<f64>,
    /// Per width but the narrowest: of so many steps for it and those before it, messages that rise to it.
    risen: Vec<Vec<u32>>,
    /// Per width but the narrowest the steps that a message takes to rise to it.
    rises: Vec<usize>,
}

impl Frontier {
    /// That of messages of falling `beta`, all above 0.
    pub fn of(beta: &[f64], menu: &Menu) -> Frontier {
        let mut sums = vec![0.0; beta.len() + 1];
        for (index, beta) in beta.iter().enumerate() {
            sums[index + 1] = sums[index] + beta;
        }
        let last = menu.widths().len() - 1;
        let steps = menu.steps(last) * beta.len();
        let mut gains = vec![0.0; steps + 1];
        let (mut risen, mut rises) = (Vec::new(), Vec::new());
        for place in 1..=last {
            let (rise, gain) = (menu.rise(place), menu.noise(place - 1) - menu.noise(place));
            let stage = Stage { before: &gains, sums: &sums, gain, rise };
            let (after, counts) = stage.best();
            gains = after;
            risen.push(counts);
            rises.push(rise);
        }
        let all = menu.noise(0) * sums[beta.len()];
        Frontier { variance: gains.into_iter().map(|gain| all - gain).collect(), risen, rises }
    }

    /// The most steps that messages can use.
    pub fn steps(&self) -> usize {
        self.variance.len() - 1
    }

    /// The least variance within so many steps.
    pub fn variance(&self, steps: usize) -> f64 {
        self.variance[steps]
    }

    /// Per width but the narrowest, narrowest first: how many messages have it or a wider one.
    pub fn risen(&self, mut steps: usize) -> Vec<u32> {
        let mut counts = Vec::with_capacity(self.rises.len());
        for (risen, rise) in self.risen.iter().zip(&self.rises).rev() {
            let count = risen[steps];
            steps -= count as usize * rise;
            counts.push(count);
        }
        counts.reverse();
        // Only what gains nothing that a sum can hold could rise past a width.
        for place in 1..counts.len() {
            counts[place] = counts[place].min(counts[place - 1]);
        }
        counts
    }
}

/// The choice of how many messages rise to one width.
struct Stage<'a> {
    /// The best gain within so many steps without it.
    before: &'a [f64],
    /// Sums of the first betas.
    sums: &'a [f64],
    /// What a message gains for each unit of its beta.
    gain: f64,
    /// Steps that a message takes.
    rise: usize,
}

impl Stage<'_> {
    /// The best gains within so many steps, and how many messages rise then; of equal choices the most.
    fn best(&self) -> (Vec<f64>, Vec<u32>) {
        let (mut gains, mut counts) = (vec![0.0; self.before.len()], vec![0; self.before.len()]);
        for remainder in 0..self.rise.min(self.before.len()) {
            let places = (self.before.len() - 1 - remainder) / self.rise;
            let mut found = Found { remainder, gains: &mut gains, counts: &mut counts };
            self.search((0, places + 1), (0, places), &mut found);
        }
        (gains, counts)
    }

    /// Finds the best for the multiples of `rise` in `from..to`, whose share without this width lies in `least..=most`
    /// multiples.
    fn search(&self, (from, to): (usize, usize), (least, most): (usize, usize), found: &mut Found<'_>) {
        if from >= to {
            return;
        }
        let middle = from.midpoint(to - 1);
        let messages = self.sums.len() - 1;
        let (mut best, mut at) = (f64::NEG_INFINITY, 0);
        for share in least.max(middle.saturating_sub(messages))..=most.min(middle) {
            let value = self.before[found.remainder + share * self.rise] + self.gain * self.sums[middle - share];
            if value > best {
                (best, at) = (value, share);
            }
        }
        let place = found.remainder + middle * self.rise;
        found.gains[place] = best;
        found.counts[place] = (middle - at) as u32;
        self.search((from, middle), (least, at), found);
        self.search((middle + 1, to), (at, most), found);
    }
}

/// Where the outcome of a search goes.
struct Found<'a> {
    remainder: usize,
    gains: &'a mut [f64],
    counts: &'a mut [u32],
}
