//! A grid of shades: how much goes from whom to whom.

use super::axis::{Unit, name};
use super::svg::{Anchor, Figure, Svg};

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

/// The grid is about this wide, and its cells no larger than the second.
const EXTENT: (f64, f64) = (330.0, 64.0);
/// Wider cells than this have room for their value.
const ROOM: f64 = 62.0;
/// The shade of the largest value: one on which letters can be read.
const DARKEST: f64 = 0.7;

impl Grid {
    /// The grid, as wide as it needs to be.
    pub fn svg(&self, width: f64) -> Figure {
        let size = self.values.len().max(1) as f64;
        let cell = (EXTENT.0 / size).min(EXTENT.1);
        let most = self.values.iter().flatten().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let mut svg = Svg::default();
        let below = format!("rows: {}, columns: {}", self.sides.0, self.sides.1);
        let top = svg.heading(width, &self.title, &below) + 30.0;
        let left = 40.0;
        for (row, values) in self.values.iter().enumerate() {
            let at = (row as f64 + 0.5) * cell;
            svg.quiet((left - 6.0, top + at + 4.5), Anchor::End, &row.to_string());
            if cell >= 16.0 {
                svg.quiet((left + at, top - 6.0), Anchor::Middle, &row.to_string());
            }
            for (column, value) in values.iter().enumerate() {
                let (x, y) = (left + column as f64 * cell, top + row as f64 * cell);
                let said = format!("{row} to {column}: {}", name(*value, self.unit));
                svg.shade((x, y), (cell - 1.0, cell - 1.0), DARKEST * value / most, &said);
                if cell >= ROOM && *value > 0.0 {
                    svg.text((x + cell / 2.0, y + cell / 2.0 + 4.5), Anchor::Middle, &brief(*value, self.unit));
                }
            }
        }
        svg.finish(width, top + cell * size + 14.0, &self.title)
    }
}

/// A value that fits a cell.
fn brief(value: f64, unit: Unit) -> String {
    let power = 10f64.powf(value.abs().max(1e-12).log10().floor() - 2.0);
    name((value / power).round() * power, unit)
}
