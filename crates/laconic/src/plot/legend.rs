//! Names of styles below a figure, in as many lines as they need.

use super::svg::{Anchor, Svg, Weight};
use super::text::{LINE, width, wrap};

/// How a style is shown beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// A piece of its curve with its marker.
    Curve,
    /// Its marker.
    Marker,
    /// A filled square.
    Square,
}

/// Draws the names in rows from `top` on; returns where they end. No name is cut: one that is too long for a line has
/// several.
pub fn draw(svg: &mut Svg, names: &[(String, usize)], sample: Sample, (room, top): (f64, f64)) -> f64 {
    let before = if sample == Sample::Curve { 34.0 } else { 18.0 };
    let (mut x, mut y) = (4.0, top + 8.0);
    for (name, style) in names {
        let lines = wrap(name, room - before - 8.0);
        let needed = before + lines.iter().map(|line| width(line)).fold(0.0, f64::max) + 16.0;
        if x > 4.0 && x + needed > room + 12.0 {
            (x, y) = (4.0, y + LINE + 3.0);
        }
        match sample {
            Sample::Curve => {
                svg.curve(&[(x, y), (x + 28.0, y)], *style, Weight::Strong, "");
                svg.marker((x + 14.0, y), *style, "");
            }
            Sample::Marker => svg.marker((x + 7.0, y), *style, ""),
            Sample::Square => svg.rect((x, y - 6.0), (12.0, 12.0), *style, ""),
        }
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                y += LINE;
            }
            svg.text((x + before, y + 4.5), Anchor::Start, line);
        }
        x = if lines.len() > 1 { room } else { x + needed };
    }
    if names.is_empty() { top } else { y + LINE }
}
