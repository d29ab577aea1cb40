//! A timeline: a lane for each worker, a coloured span for each thing that it does.

use super::axis::{Axis, Unit, name};
use super::frame::draw_columns;
use super::labels::Area;
use super::legend::{self, Sample};
use super::svg::{Anchor, Figure, Svg};
use super::text::width as text_width;

/// Something that took time.
pub struct Span {
    /// The number of its lane.
    pub lane: usize,
    /// The number of its phase among [`Lanes::phases`].
    pub phase: usize,
    /// Start and end in seconds.
    pub seconds: (f64, f64),
    /// What it says when pointed at; spans that say nothing take a tenth of the room in a file.
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
    /// What the axis below counts.
    pub x: (String, Unit),
    /// The spans; where they overlap, later ones are on top.
    pub spans: Vec<Span>,
}

const LINE: f64 = 26.0;

impl Lanes {
    /// The time from the first span to the end of the last.
    pub fn seconds(&self) -> f64 {
        let start = self.start();
        self.spans.iter().map(|span| span.seconds.1).fold(start, f64::max) - start
    }

    fn start(&self) -> f64 {
        self.spans.iter().map(|span| span.seconds.0).fold(f64::INFINITY, f64::min)
    }

    /// The timeline, `width` wide; its time starts with the first span and is `seconds` long, the same for all
    /// timelines that stand together.
    pub fn svg(&self, width: f64, seconds: f64) -> Figure {
        let start = self.start();
        let axis = Axis::from_zero(seconds, self.x.1);
        let mut svg = Svg::default();
        let top = svg.heading(width, &self.title, &self.x.0);
        let phases: Vec<(String, usize)> =
            self.phases.iter().enumerate().map(|(style, name)| (name.clone(), style)).collect();
        let top = legend::draw(&mut svg, &phases, Sample::Square, (width, top + 4.0));
        let left = self.lanes.iter().map(|lane| text_width(lane)).fold(0.0, f64::max) + 14.0;
        let area = Area { x: (left, width - 12.0), y: (top, top + LINE * self.lanes.len() as f64) };
        let place = |value: f64| left + axis.clamped(value) * (area.x.1 - left);
        draw_columns(&mut svg, &axis, &area);
        for (index, lane) in self.lanes.iter().enumerate() {
            svg.text((left - 8.0, top + LINE * index as f64 + 17.0), Anchor::End, lane);
        }
        let mut brief: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new(); self.phases.len()];
        for span in &self.spans {
            let (from, to) = (place(span.seconds.0 - start), place(span.seconds.1 - start));
            let y = top + LINE * span.lane as f64 + 4.0;
            // A span that is too short to be seen is still drawn.
            let wide = (to - from).max(0.3);
            if span.name.is_empty() {
                brief[span.phase].push((from, y, wide));
            } else {
                let title = format!("{}: {}", span.name, name(span.seconds.1 - span.seconds.0, self.x.1));
                svg.rect((from, y), (wide, LINE - 8.0), span.phase, &title);
            }
        }
        for (phase, spans) in brief.iter().enumerate() {
            svg.strips(spans, LINE - 8.0, phase);
        }
        svg.finish(width, area.y.1 + 28.0, &self.title)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timelines_that_stand_together_have_one_scale() {
        let drawn = |seconds: f64| {
            let span = Span { lane: 0, phase: 0, seconds: (1.0, 1.0 + seconds), name: "span".to_owned() };
            let (lanes, phases) = (vec!["worker 0".to_owned()], vec!["compute".to_owned()]);
            let x = ("seconds".to_owned(), Unit::Seconds);
            let lanes = Lanes { title: "round".to_owned(), lanes, phases, x, spans: vec![span] };
            let svg = lanes.svg(400.0, 0.33).in_page();
            let shape = svg.rsplit("<rect").next().expect("a span").to_owned();
            let width = shape.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a width");
            width.parse::<f64>().expect("a number")
        };
        assert!((drawn(0.33) / drawn(0.11) - 3.0).abs() < 0.01);
    }
}
