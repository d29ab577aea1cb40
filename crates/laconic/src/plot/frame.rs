//! The frame of a chart: two axes with their lines, numbers and names, and room that is measured for them.

use super::axis::Axis;
use super::labels::Area;
use super::svg::{Anchor, Svg};
use super::text::{LINE, width, wrap};

/// Two axes around an area.
pub struct Frame {
    /// What lies inside.
    pub area: Area,
    x: Axis,
    y: Axis,
}

/// Between a number of the vertical axis and the area.
const GAP: f64 = 6.0;
/// Between numbers of the horizontal axis at least.
const APART: f64 = 18.0;
/// About how far apart numbers of the vertical axis are.
const ROWS: f64 = 30.0;

impl Frame {
    /// A frame `width` wide whose area starts at `top` and is `height` high.
    pub fn new(x: Axis, y: Axis, width: f64, (top, height): (f64, f64)) -> Frame {
        let names = y.ticks(rows(height));
        let left = names.iter().map(|(_, name)| self::width(name)).fold(20.0, f64::max) + GAP + 2.0;
        Frame { area: Area { x: (left, width - 12.0), y: (top, top + height) }, x, y }
    }

    /// Where a point lies; `None` where an axis does not reach.
    pub fn place(&self, (a, b): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.across(self.x.place(a)?), self.up(self.y.place(b)?)))
    }

    /// Where a point lies, at the edge of the area if outside.
    pub fn clamped(&self, (a, b): (f64, f64)) -> (f64, f64) {
        (self.across(self.x.clamped(a)), self.up(self.y.clamped(b)))
    }

    fn across(&self, share: f64) -> f64 {
        self.area.x.0 + share * (self.area.x.1 - self.area.x.0)
    }

    fn up(&self, share: f64) -> f64 {
        self.area.y.1 - share * (self.area.y.1 - self.area.y.0)
    }

    /// Draws lines, numbers and the name of the horizontal axis; returns where they end.
    pub fn draw(&self, svg: &mut Svg, name: &str) -> f64 {
        let Area { x: (left, right), y: (top, bottom) } = self.area;
        draw_columns(svg, &self.x, &self.area);
        for (value, name) in self.y.ticks(rows(bottom - top)) {
            let Some(at) = self.y.place(value).map(|share| self.up(share)) else { continue };
            svg.line((left, at), (right, at), "grid");
            svg.quiet((left - GAP, at + 4.5), Anchor::End, &name);
        }
        svg.line((left, bottom), (right, bottom), "axis");
        svg.line((left, top), (left, bottom), "axis");
        let mut y = bottom + 18.0;
        for line in wrap(name, right + 12.0 - 8.0) {
            y += LINE;
            // In the middle of the area, unless that would leave the figure.
            let half = width(&line) / 2.0;
            let middle = ((left + right) / 2.0).min(right + 8.0 - half).max(4.0 + half);
            svg.quiet((middle, y), Anchor::Middle, &line);
        }
        y + 8.0
    }
}

fn rows(height: f64) -> usize {
    ((height / ROWS) as usize).clamp(2, 9)
}

/// Vertical lines with numbers below an area, as many as there is room for.
pub fn draw_columns(svg: &mut Svg, axis: &Axis, area: &Area) {
    let Area { x: (left, right), y: (top, bottom) } = *area;
    let room = right - left;
    let fits = |ticks: &Vec<(f64, String)>| {
        ticks.iter().map(|(_, name)| width(name) + APART).sum::<f64>() <= room + APART || ticks.len() <= 2
    };
    let ticks = (2..=9).rev().map(|most| axis.ticks(most)).find(fits).unwrap_or_else(|| axis.ticks(2));
    let mut end = f64::NEG_INFINITY;
    for (value, name) in ticks {
        let Some(at) = axis.place(value).map(|share| left + share * room) else { continue };
        svg.line((at, top), (at, bottom), "grid");
        let half = width(&name) / 2.0;
        // A number near the end of an axis moves in, so that it is not cut.
        let middle = at.min(right + 12.0 - half);
        if middle - half > end {
            svg.quiet((middle, bottom + 17.0), Anchor::Middle, &name);
            end = middle + half + 4.0;
        }
    }
}
