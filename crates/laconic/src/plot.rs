//! Figures as SVG text: charts of curves and dots, stacked bars, grids of shades, timelines.
//!
//! Written here and not with the crate `plotters` 0.3: its logarithmic axis labels nothing below the first power of
//! ten on it, so bytes within one decade (2 MB to 8 MB, our usual case) get an axis without numbers; its SVG has no
//! `title`, which in a page without scripts is the only way to read a value off; and bars, grids and timelines would
//! be drawn by hand on top of it anyway.
//!
//! All text is escaped in [`svg`], the only file that writes markup.

mod axis;
mod bars;
mod chart;
mod grid;
mod lanes;
mod svg;

pub use axis::{Scale, Unit};
pub use bars::{Bar, Bars};
pub use chart::{Chart, Curve, Dot, thin};
pub use grid::Grid;
pub use lanes::{Lanes, Span};
pub use svg::{escape, short};
