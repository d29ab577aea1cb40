//! Figures as SVG text: points with error bars, curves, rows of dots, grids of shades, timelines.
//!
//! Written here and not with the crate `plotters` 0.3: its logarithmic axis labels nothing below the first power of
//! ten on it, so bytes within one decade (2 MB to 8 MB, our usual case) get an axis without numbers; its SVG has no
//! `title`, which in a page without scripts is the only way to read a value off; it knows neither names beside points
//! nor colours for light and dark ground; and rows of dots, grids and timelines would be drawn by hand on top of it
//! anyway.
//!
//! A figure is drawn for a width in pixels, [`WIDE`] or [`NARROW`], and its letters are never smaller than about eleven
//! of a reader's: what is too long is wrapped, not cut. All text is escaped in [`svg`], the only file that writes
//! markup.

mod axis;
mod chart;
mod dots;
mod frame;
mod grid;
mod labels;
mod lanes;
mod legend;
mod look;
mod points;
mod svg;
mod text;

pub use axis::{Scale, Unit};
pub use chart::{Chart, Curve, Stage, share_axes, thin};
pub use dots::{Dots, Row};
pub use grid::Grid;
pub use lanes::{Lanes, Span};
pub use look::STYLE;
pub use points::{Point, Points};
pub use svg::{Figure, Weight, escape, short};

/// The marker of a style alone, as the key of a table.
pub fn key(style: usize) -> Figure {
    let mut svg = svg::Svg::default();
    svg.marker((8.0, 8.0), style, "");
    svg.finish(16.0, 16.0, "")
}

/// The width of a figure on a screen.
pub const WIDE: f64 = 940.0;

/// The width of a figure on a phone, and of one of several side by side.
pub const NARROW: f64 = 400.0;
