//! Axes: a range that holds all values, round numbers on it, and their names with units.

use crate::bytes::separated;

/// What the numbers of an axis count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Figures and rounds.
    Plain,
    /// Bytes, named kB, MB, …
    Bytes,
    /// Seconds, named s.
    Seconds,
    /// Shares of one, named in per cent.
    Share,
}

/// How values are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long. An axis without positive values is linear all the same.
    Log,
}

/// An axis over a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    unit: Unit,
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis on which all of `values` can be placed; those that are no numbers are passed over.
    pub fn over(values: impl Iterator<Item = f64>, scale: Scale, unit: Unit) -> Axis {
        let finite: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let positive: Vec<f64> = finite.iter().copied().filter(|value| *value > 0.0).collect();
        let (scale, values) =
            if scale == Scale::Log && !positive.is_empty() { (Scale::Log, positive) } else { (Scale::Linear, finite) };
        let least = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let most = values.iter().copied().reduce(f64::max).unwrap_or(1.0);
        let (low, high) = match scale {
            Scale::Log => (least / 1.1, (most * 1.1).min(f64::MAX)),
            Scale::Linear => padded(least, most),
        };
        Axis { unit, scale, low, high }
    }

    /// The axis with so much of its length added at both ends, as room for what stands beside points.
    pub fn widened(self, share: f64) -> Axis {
        let Axis { unit, scale, low, high } = self;
        let (low, high) = match scale {
            Scale::Linear => (low - (high - low) * share, high + (high - low) * share),
            Scale::Log => (low * (low / high).powf(share), (high * (high / low).powf(share)).min(f64::MAX)),
        };
        Axis { unit, scale, low, high }
    }

    /// What its numbers count.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Where a value lies, from 0 to 1; at the end of the axis where it does not reach.
    pub fn clamped(&self, value: f64) -> f64 {
        let end = if value >= self.high { 1.0 } else { 0.0 };
        self.place(value).unwrap_or(end)
    }

    /// An axis from 0 to at least `most`.
    pub fn from_zero(most: f64, unit: Unit) -> Axis {
        let high = if most > 0.0 && most.is_finite() { most * 1.02 } else { 1.0 };
        Axis { unit, scale: Scale::Linear, low: 0.0, high }
    }

    /// Where a value lies, from 0 to 1; `None` where the axis does not reach.
    pub fn place(&self, value: f64) -> Option<f64> {
        let at = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
        };
        (-1e-9..=1.0 + 1e-9).contains(&at).then_some(at.clamp(0.0, 1.0))
    }

    /// Round values on the axis with their names: about `most`, hardly ever more.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let values = match self.scale {
            Scale::Linear => linear(self.low, self.high, most),
            Scale::Log => logarithmic(self.low, self.high, most),
        };
        values.into_iter().map(|value| (value, name(value, self.unit))).collect()
    }
}

/// A little more than the range, and something where the range is a point.
fn padded(least: f64, most: f64) -> (f64, f64) {
    let room = (most - least) * 0.04;
    if room > 0.0 && room.is_finite() {
        return (least - room, most + room);
    }
    let room = (least.abs() * 0.1).max(1e-6);
    (least - room, most + room)
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most.max(2) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    let first = (low / step).ceil();
    // Multiplied and not added up, so that no rounding gathers.
    (0..=20).map(|index| (first + f64::from(index)) * step).take_while(|value| *value <= high).collect()
}

/// 1, 2 and 5 times powers of ten, or powers alone over many decades; where the range is too short for three, as on a
/// linear axis.
fn logarithmic(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let on_axis = |mantissas: &[f64], every: usize| -> Vec<f64> {
        let powers = (first..=last).step_by(every).map(|power| 10f64.powi(power));
        let all = powers.flat_map(|power| mantissas.iter().map(move |mantissa| mantissa * power));
        all.filter(|value| (low..=high).contains(value)).collect()
    };
    let fine = on_axis(&[1.0, 2.0, 5.0], 1);
    if fine.len() < 3 {
        return linear(low, high, most);
    }
    let coarser = (1..=last.abs_diff(first) as usize).map(|every| on_axis(&[1.0], every));
    let lists = std::iter::once(fine.clone()).chain(coarser);
    lists.into_iter().find(|ticks| (2..=most.max(2)).contains(&ticks.len())).unwrap_or_else(|| {
        // Neither 1, 2, 5 nor powers alone: every other one of the former.
        fine.into_iter().step_by(2).collect()
    })
}

/// A value with its unit, without noughts at the end. Bytes have the units of the tables but not their two places: a
/// tick is a round number, or one of several that only a fifth digit tells apart.
pub fn name(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Plain => plain(value),
        Unit::Seconds => format!("{} s", plain(value)),
        Unit::Share => format!("{} %", plain(value * 100.0)),
        Unit::Bytes => {
            let power = if value.abs() >= 1.0 { ((value.abs().log10() + 1e-9) / 3.0).floor().min(4.0) } else { 0.0 };
            let unit = ["B", "kB", "MB", "GB", "TB"][power as usize];
            format!("{} {unit}", plain(value / 1000f64.powf(power)))
        }
    }
}

fn plain(value: f64) -> String {
    if value != 0.0 && (value.abs() < 1e-4 || value.abs() >= 1e7) {
        return format!("{value:.2e}");
    }
    let text = format!("{:.5}", value.abs());
    let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
    let places = places.trim_end_matches('0');
    let whole = separated(whole.parse().unwrap_or_default());
    let sign = if value < 0.0 && (whole != "0" || !places.is_empty()) { "-" } else { "" };
    if places.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{places}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_has_at_least_two_ticks_and_all_lie_on_the_axis() {
        let ranges =
            [(0.0, 1.0), (0.83, 0.8301), (2.38e6, 8.1e6), (1.0, 1e12), (5.0, 5.0), (-3.0, 700.0), (1e-9, 3e-9)];
        for (low, high) in ranges {
            for scale in [Scale::Linear, Scale::Log] {
                let axis = Axis::over([low, high].into_iter(), scale, Unit::Bytes);
                let ticks = axis.ticks(6);
                assert!((2..=16).contains(&ticks.len()), "{low} {high} {scale:?}: {ticks:?}");
                assert!(
                    ticks.iter().all(|(value, _)| axis.place(*value).is_some()),
                    "{low} {high} {scale:?}: {ticks:?}"
                );
            }
        }
    }

    #[test]
    fn values_without_a_logarithm_give_a_linear_axis_and_no_numbers_an_empty_one() {
        let axis = Axis::over([0.0, 0.0].into_iter(), Scale::Log, Unit::Bytes);
        assert_eq!(axis.place(0.0), Some(0.5));
        let axis = Axis::over([f64::NAN].into_iter(), Scale::Log, Unit::Plain);
        assert_eq!(axis.place(f64::NAN), None);
    }

    #[test]
    fn names_carry_units_and_no_needless_noughts() {
        let names = [(2.5e6, Unit::Bytes), (1000.0, Unit::Bytes), (0.25, Unit::Share), (0.5, Unit::Seconds)];
        assert_eq!(names.map(|(value, unit)| name(value, unit)), ["2.5 MB", "1 kB", "25 %", "0.5 s"]);
        assert_eq!(
            [12_000.0, -1234.5, -0.0, 0.93].map(|value| name(value, Unit::Plain)),
            ["12,000", "-1,234.5", "0", "0.93"]
        );
    }
}
