//! Stacked horizontal bars.

use super::axis::{Axis, Unit, name};
use super::svg::{Anchor, Svg, colour, short};

/// One bar of stacked segments.
pub struct Bar {
    /// What it stands for.
    pub name: String,
    /// The length of each segment, in the order of [`Bars::segments`].
    pub values: Vec<f64>,
}

/// Bars with the same segments.
pub struct Bars {
    /// The title above the bars.
    pub title: String,
    /// What lengths count.
    pub unit: Unit,
    /// Names of the segments.
    pub segments: Vec<String>,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 230.0;
const RIGHT: f64 = 760.0;
const LINE: f64 = 22.0;
/// Letters of a name beside its bar.
const LETTERS: usize = 32;
/// Names of segments in one line of the legend.
const COLUMNS: usize = 4;

impl Bars {
    /// The bars as SVG.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        svg.heading((10.0, 22.0), &self.title);
        let top = 40.0 + LINE * self.draw_legend(&mut svg) as f64;
        let most = self.bars.iter().map(|bar| bar.values.iter().sum::<f64>()).fold(0.0, f64::max);
        let axis = Axis::from_zero(most, self.unit);
        let place = |value: f64| LEFT + axis.place(value).unwrap_or(1.0) * (RIGHT - LEFT);
        let bottom = top + LINE * self.bars.len() as f64;
        for (value, name) in axis.ticks() {
            svg.line((place(value), top), (place(value), bottom), "#e4e4e4", "");
            svg.text((place(value), bottom + 16.0), Anchor::Middle, &name);
        }
        for (index, bar) in self.bars.iter().enumerate() {
            let y = top + LINE * index as f64;
            svg.text((LEFT - 8.0, y + 15.0), Anchor::End, &short(&bar.name, LETTERS));
            let mut sum = 0.0;
            for (segment, value) in bar.values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let (from, to) = (place(sum), place(sum + value));
                let title = format!("{}, {}: {}", bar.name, self.segments[segment], name(*value, self.unit));
                svg.rect((from, y + 3.0), (to - from, LINE - 6.0), colour(segment), &title);
                sum += value;
            }
            svg.text((place(sum) + 6.0, y + 15.0), Anchor::Start, &rounded(sum, self.unit));
        }
        svg.finish(WIDTH, bottom + 30.0, &self.title)
    }

    /// Draws the legend and returns how many lines it takes.
    fn draw_legend(&self, svg: &mut Svg) -> usize {
        for (index, segment) in self.segments.iter().enumerate() {
            let (x, y) = (10.0 + 205.0 * (index % COLUMNS) as f64, 34.0 + LINE * (index / COLUMNS) as f64);
            svg.rect((x, y), (12.0, 12.0), colour(index), segment);
            svg.text((x + 18.0, y + 10.0), Anchor::Start, &short(segment, 26));
        }
        self.segments.len().div_ceil(COLUMNS)
    }
}

/// A value of which three digits are enough.
fn rounded(value: f64, unit: Unit) -> String {
    let power = 10f64.powf(value.abs().max(1e-12).log10().floor() - 2.0);
    name((value / power).round() * power, unit)
}
