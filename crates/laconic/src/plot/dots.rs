//! Rows of dots over one axis: several amounts of each of several things. Unlike stacked bars they are readable where
//! one row has two hundred times the other's amount.

use super::axis::{Axis, Scale, Unit, name};
use super::frame::draw_columns;
use super::labels::Area;
use super::legend::{self, Sample};
use super::svg::{Anchor, Figure, Svg};
use super::text::{LINE, widest, width as text_width, wrap};

/// One thing with its amounts.
pub struct Row {
    /// What it stands for.
    pub name: String,
    /// The amount of each kind, in the order of [`Dots::kinds`].
    pub values: Vec<f64>,
    /// The number at its right end.
    pub said: String,
}

/// Rows with the same kinds of amounts.
pub struct Dots {
    /// The title above the rows.
    pub title: String,
    /// What the axis says.
    pub axis: String,
    /// What amounts count, and how they are laid out.
    pub unit: (Unit, Scale),
    /// Names of the kinds; of a single one there is no legend.
    pub kinds: Vec<String>,
    /// The rows, from the top.
    pub rows: Vec<Row>,
}

/// A row is at least this high.
const ROW: f64 = 24.0;

impl Dots {
    /// The figure, `width` wide. Where it is narrow, names stand above their rows.
    pub fn svg(&self, width: f64) -> Figure {
        let mut svg = Svg::default();
        let top = svg.heading(width, &self.title, "");
        let top = match self.kinds.len() {
            0 | 1 => top + 12.0,
            _ => {
                let is_there = |kind: usize| self.rows.iter().any(|row| row.values.get(kind).is_some_and(|v| *v > 0.0));
                let kinds = self.kinds.iter().enumerate().filter(|(kind, _)| is_there(*kind));
                let names: Vec<(String, usize)> = kinds.map(|(style, name)| (name.clone(), style)).collect();
                legend::draw(&mut svg, &names, Sample::Marker, (width, top + 6.0))
            }
        };
        let above = width < 600.0;
        let room = if above { width - 16.0 } else { width * 0.36 };
        let names: Vec<Vec<String>> = self.rows.iter().map(|row| wrap(&row.name, room)).collect();
        let left = if above { 14.0 } else { names.iter().map(|lines| widest(lines)).fold(0.0, f64::max) + 18.0 };
        let said = self.rows.iter().map(|row| text_width(&row.said)).fold(0.0, f64::max);
        let right = width - 10.0 - said - 10.0;
        let heights: Vec<f64> = names.iter().map(|lines| row_height(lines.len(), above)).collect();
        let area = Area { x: (left, right), y: (top, top + heights.iter().sum::<f64>()) };
        let axis = self.scale();
        draw_columns(&mut svg, &axis, &area);
        let mut y = top;
        for ((row, lines), height) in self.rows.iter().zip(&names).zip(&heights) {
            let middle = if above { y + height - 10.0 } else { y + height / 2.0 };
            if above {
                svg.block((4.0, y + lines.len() as f64 * LINE / 2.0), Anchor::Start, lines);
            } else {
                svg.block((left - 12.0, middle), Anchor::End, lines);
            }
            self.draw_row(&mut svg, row, &axis, (&area, middle));
            svg.text((right + 12.0, middle + 4.5), Anchor::Start, &row.said);
            y += height;
        }
        let mut end = area.y.1 + 20.0;
        for line in wrap(&self.axis, width - 8.0) {
            end += LINE;
            svg.quiet(((width / 2.0).max(text_width(&line) / 2.0 + 4.0), end), Anchor::Middle, &line);
        }
        svg.finish(width, end + 8.0, &self.title)
    }

    fn scale(&self) -> Axis {
        let values = || self.rows.iter().flat_map(|row| row.values.iter().copied()).filter(|value| *value > 0.0);
        match self.unit {
            (unit, Scale::Linear) => Axis::from_zero(values().fold(0.0, f64::max), unit),
            (unit, Scale::Log) => Axis::over(values(), Scale::Log, unit).widened(0.03),
        }
    }

    fn draw_row(&self, svg: &mut Svg, row: &Row, axis: &Axis, (area, y): (&Area, f64)) {
        let (left, right) = area.x;
        svg.line((left, y), (right, y), "grid");
        for (kind, value) in row.values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let x = left + axis.clamped(*value) * (right - left);
            let kind_name = self.kinds.get(kind).map_or("", String::as_str);
            svg.marker((x, y), kind, &format!("{}, {kind_name}: {}", row.name, name(*value, self.unit.0)));
        }
    }
}

fn row_height(lines: usize, above: bool) -> f64 {
    if above { lines as f64 * LINE + 22.0 } else { (lines as f64 * LINE + 6.0).max(ROW) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_beside_much_is_placed_and_said() {
        let row = |name: &str, values: [f64; 2], said: &str| Row {
            name: name.to_owned(),
            values: values.to_vec(),
            said: said.to_owned(),
        };
        let rows = vec![row("much", [4.25e8, 1e7], "435 MB"), row("little", [2.09e6, 0.0], "2.09 MB")];
        let kinds = ["boundary".to_owned(), "evaluation".to_owned()].to_vec();
        let dots =
            Dots { title: "bytes".to_owned(), axis: "sent".to_owned(), unit: (Unit::Bytes, Scale::Log), kinds, rows };
        let place = |value| dots.scale().place(value).expect("on the axis");
        assert!((0.01..0.1).contains(&place(2.09e6)) && (0.9..0.99).contains(&place(4.25e8)));
        for width in [400.0, 900.0] {
            let svg = dots.svg(width).in_page();
            assert!(svg.contains(">2.09 MB<") && svg.contains(">435 MB<") && !svg.contains("NaN"), "{svg}");
        }
    }
}
