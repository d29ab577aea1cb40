//! A grid of shades: how much goes from whom to whom.

use super::axis::{Unit, name};
use super::svg::{Anchor, Svg};

/// A square grid; the shade of a cell is its share of the largest.
pub struct Grid {
    /// The title above the grid.
    pub title: String,
    /// What rows and columns are.
    pub sides: (String, String),
    /// What values count.
    pub unit: Unit,
    /// The values of the cells, `values[row][column]`.
    pub values: Vec<Vec<f64>>,
}

const LEFT: f64 = 70.0;
const TOP: f64 = 62.0;
/// The grid is about this wide, and its cells no larger than the second.
const EXTENT: (f64, f64) = (520.0, 64.0);
/// Wider cells than this have room for their value.
const ROOM: f64 = 50.0;

impl Grid {
    /// The grid as SVG.
    pub fn svg(&self) -> String {
        let size = self.values.len().max(1) as f64;
        let cell = (EXTENT.0 / size).min(EXTENT.1);
        let most = self.values.iter().flatten().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let mut svg = Svg::default();
        svg.heading((10.0, 22.0), &self.title);
        svg.text((LEFT + cell * size / 2.0, TOP - 20.0), Anchor::Middle, &self.sides.1);
        svg.upright((20.0, TOP + cell * size / 2.0), &self.sides.0);
        for (row, values) in self.values.iter().enumerate() {
            let at = (row as f64 + 0.5) * cell;
            svg.text((LEFT - 6.0, TOP + at + 4.0), Anchor::End, &row.to_string());
            svg.text((LEFT + at, TOP - 5.0), Anchor::Middle, &row.to_string());
            for (column, value) in values.iter().enumerate() {
                let (x, y) = (LEFT + column as f64 * cell, TOP + row as f64 * cell);
                let said = name(*value, self.unit);
                svg.rect((x, y), (cell - 1.0, cell - 1.0), &shade(value / most), &format!("{row} to {column}: {said}"));
                if cell >= ROOM && *value > 0.0 {
                    svg.text((x + cell / 2.0, y + cell / 2.0 + 4.0), Anchor::Middle, &brief(*value, self.unit));
                }
            }
        }
        svg.finish((LEFT + cell * size + 20.0).max(420.0), TOP + cell * size + 14.0, &self.title)
    }
}

/// From white to a light blue on which black can be read.
fn shade(share: f64) -> String {
    let fade = |full: f64| (255.0 - (255.0 - full) * share.clamp(0.0, 1.0)) as u8;
    format!("#{:02x}{:02x}{:02x}", fade(70.0), fade(160.0), fade(225.0))
}

/// A value that fits a cell.
fn brief(value: f64, unit: Unit) -> String {
    let power = 10f64.powf(value.abs().max(1e-12).log10().floor() - 1.0);
    name((value / power).round() * power, unit)
}
