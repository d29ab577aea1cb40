//! A timeline: a lane for each worker, a coloured span for each thing that it does.

use super::axis::{Axis, Unit, name};
use super::svg::{Anchor, Svg, colour, short};

/// Something that took time.
pub struct Span {
    /// The number of its lane.
    pub lane: usize,
    /// The number of its phase among [`Lanes::phases`].
    pub phase: usize,
    /// Start and end in seconds.
    pub seconds: (f64, f64),
    /// What it says when pointed at.
    pub name: String,
}

/// A timeline with a lane for each worker.
pub struct Lanes {
    /// The title above the lanes.
    pub title: String,
    /// Names of the lanes.
    pub lanes: Vec<String>,
    /// Names of the phases.
    pub phases: Vec<String>,
    /// The spans; where they overlap, later ones are on top.
    pub spans: Vec<Span>,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 840.0;
const TOP: f64 = 62.0;
const LINE: f64 = 26.0;

impl Lanes {
    /// The timeline as SVG; its time starts with the first span.
    pub fn svg(&self) -> String {
        let start = self.spans.iter().map(|span| span.seconds.0).fold(f64::INFINITY, f64::min);
        let end = self.spans.iter().map(|span| span.seconds.1).fold(start, f64::max);
        let axis = Axis::from_zero(end - start, Unit::Seconds);
        let place = |value: f64| LEFT + axis.place(value).unwrap_or(1.0) * (RIGHT - LEFT);
        let bottom = TOP + LINE * self.lanes.len() as f64;
        let mut svg = Svg::default();
        svg.heading((10.0, 22.0), &self.title);
        for (index, phase) in self.phases.iter().enumerate() {
            let x = 10.0 + 100.0 * index as f64;
            svg.rect((x, 34.0), (12.0, 12.0), colour(index), phase);
            svg.text((x + 18.0, 44.0), Anchor::Start, &short(phase, 12));
        }
        for (value, name) in axis.ticks() {
            svg.line((place(value), TOP), (place(value), bottom), "#e4e4e4", "");
            svg.text((place(value), bottom + 16.0), Anchor::Middle, &name);
        }
        for (index, lane) in self.lanes.iter().enumerate() {
            svg.text((LEFT - 8.0, TOP + LINE * index as f64 + 17.0), Anchor::End, &short(lane, 12));
        }
        for span in &self.spans {
            let (from, to) = (place(span.seconds.0 - start), place(span.seconds.1 - start));
            let title = format!("{}: {}", span.name, name(span.seconds.1 - span.seconds.0, Unit::Seconds));
            let y = TOP + LINE * span.lane as f64 + 4.0;
            // A span that is too short to be seen is still drawn.
            svg.rect((from, y), ((to - from).max(0.3), LINE - 8.0), colour(span.phase), &title);
        }
        svg.text(((LEFT + RIGHT) / 2.0, bottom + 34.0), Anchor::Middle, "seconds since the round's first span");
        svg.finish(WIDTH, bottom + 46.0, &self.title)
    }
}
