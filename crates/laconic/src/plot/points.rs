//! Final points with error bars, each with its name beside it.

use super::axis::{Axis, Scale, Unit, name};
use super::frame::Frame;
use super::labels::{Area, Label, place};
use super::legend::{self, Sample};
use super::svg::{Anchor, Figure, Svg};
use super::text::{LINE, balanced, wrap};

/// What one method comes to.
pub struct Point {
    /// What it is called.
    pub name: String,
    /// The number of its colour and shape.
    pub style: usize,
    /// Its means, of the cost and of the metric.
    pub at: (f64, f64),
    /// The standard deviations of both, where there are any.
    pub sd: (Option<f64>, Option<f64>),
    /// Whether it is on the front.
    pub front: bool,
}

/// Points over two axes.
pub struct Points {
    /// The title above.
    pub title: String,
    /// What the horizontal, logarithmic axis says, and what it counts.
    pub x: (String, Unit),
    /// What the vertical axis says.
    pub y: String,
    /// The points, in the order in which they are drawn.
    pub points: Vec<Point>,
}

/// Where the axis is this many times shorter without the lowest points, up to a third of all, they are drawn at the
/// lower edge: otherwise one that learned nothing would press all others into a line.
const OUTLYING: f64 = 3.0;
/// How far above the edge.
const EDGE: f64 = 14.0;
/// The widest line of a name.
const NAME_ROOM: (f64, f64) = (118.0, 250.0);
/// Above this many, points are named below the figure.
const NAMED_MAX: usize = 40;

impl Points {
    /// The figure, `width` wide.
    pub fn svg(&self, width: f64) -> Figure {
        let mut svg = Svg::default();
        let y = if self.points.is_empty() { "nothing was measured".to_owned() } else { self.y.clone() };
        let top = svg.heading(width, &self.title, &y) + 14.0;
        let floor = self.floor();
        let frame = Frame::new(self.across(), self.up(floor), width, (top, self.height(width)));
        let end = frame.draw(&mut svg, &self.x.0);
        let at: Vec<(f64, f64)> = self.points.iter().map(|point| self.place(&frame, point, floor)).collect();
        let steps = self.draw_front(&mut svg, &frame, &at);
        let mut obstacles: Vec<Area> = steps.windows(2).map(|ends| around(ends[0], ends[1])).collect();
        for point in &self.points {
            for (from, to) in point.bars().into_iter().filter(|_| !point.is_below(floor)) {
                let (from, to) = (frame.clamped(from), frame.clamped(to));
                svg.stroke(from, to, point.style);
                obstacles.push(around(from, to));
            }
        }
        if self.points.len() <= NAMED_MAX {
            self.draw_names(&mut svg, &frame, (&at, &obstacles), floor);
        }
        for (point, &at) in self.points.iter().zip(&at) {
            if point.front {
                svg.ring(at);
            }
            svg.marker(at, point.style, &point.said(self.x.1));
        }
        let mut end = self.draw_key(&mut svg, (width, end), floor.is_some());
        if self.points.len() > NAMED_MAX {
            let names: Vec<(String, usize)> =
                self.points.iter().map(|point| (point.shown(floor), point.style)).collect();
            end = legend::draw(&mut svg, &names, Sample::Marker, (width, end));
        }
        svg.finish(width, end, &self.title)
    }

    /// A narrow figure is higher, so that names have room above each other.
    fn height(&self, width: f64) -> f64 {
        let names = self.points.len().min(NAMED_MAX) as f64;
        if width < 600.0 { (260.0 + 18.0 * names).min(520.0) } else { 430.0 }
    }

    /// The least mean that the axis reaches, where some lie so far below it that they are drawn at the edge.
    fn floor(&self) -> Option<f64> {
        let mut means: Vec<f64> = self.points.iter().map(|point| point.at.1).filter(|mean| mean.is_finite()).collect();
        means.sort_by(f64::total_cmp);
        let range = |left_out: usize| means[means.len() - 1] - means[left_out];
        let outlying =
            (1..=means.len() / 3).find(|count| range(*count) > 0.0 && range(*count) * OUTLYING < range(0))?;
        Some(means[outlying])
    }

    fn across(&self) -> Axis {
        let ends = |point: &Point| {
            let (x, sd) = (point.at.0, point.sd.0.unwrap_or(0.0));
            [x, x + sd, if x > sd { x - sd } else { x }]
        };
        Axis::over(self.points.iter().flat_map(ends), Scale::Log, self.x.1).widened(0.06)
    }

    fn up(&self, floor: Option<f64>) -> Axis {
        let shown = self.points.iter().filter(|point| !point.is_below(floor));
        let ends = |point: &Point| {
            let (y, sd) = (point.at.1, point.sd.1.unwrap_or(0.0));
            [y - sd, y + sd]
        };
        Axis::over(shown.flat_map(ends), Scale::Linear, Unit::Plain).widened(0.07)
    }

    fn place(&self, frame: &Frame, point: &Point, floor: Option<f64>) -> (f64, f64) {
        let (x, y) = frame.clamped(point.at);
        (x, if point.is_below(floor) { y - EDGE } else { y })
    }

    /// Draws the front as steps from the cheapest point to the edge; returns its corners.
    fn draw_front(&self, svg: &mut Svg, frame: &Frame, at: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let on_front = self.points.iter().zip(at).filter(|(point, _)| point.front);
        let mut front: Vec<(f64, f64)> = on_front.map(|(_, at)| *at).collect();
        front.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut steps = Vec::with_capacity(front.len() * 2 + 2);
        for (index, &(x, y)) in front.iter().enumerate() {
            let before = if index == 0 { frame.area.y.1 } else { front[index - 1].1 };
            steps.extend([(x, before), (x, y)]);
        }
        if let Some(last) = front.last() {
            steps.push((frame.area.x.1, last.1));
        }
        svg.front(&steps);
        steps
    }

    fn draw_names(&self, svg: &mut Svg, frame: &Frame, (at, obstacles): (&[(f64, f64)], &[Area]), floor: Option<f64>) {
        let wide = frame.area.x.1 - frame.area.x.0;
        let room = if wide > 600.0 { NAME_ROOM.1 } else { NAME_ROOM.0 };
        let lines: Vec<Vec<String>> = self.points.iter().map(|point| balanced(&point.shown(floor), room)).collect();
        for ((label, lines), &at) in place(at, &lines, obstacles, &frame.area).iter().zip(&lines).zip(at) {
            let Label { area, leader } = label;
            if let Some(end) = *leader {
                svg.line(at, end, "leader");
            }
            let middle = (area.y.0 + area.y.1) / 2.0;
            // A name stands with that side to its point that is nearer.
            let (x, anchor) = if area.x.0 >= at.0 {
                (area.x.0, Anchor::Start)
            } else if area.x.1 <= at.0 {
                (area.x.1, Anchor::End)
            } else {
                ((area.x.0 + area.x.1) / 2.0, Anchor::Middle)
            };
            svg.block((x, middle), anchor, lines);
        }
    }

    /// Says what lines mean.
    fn draw_key(&self, svg: &mut Svg, (room, top): (f64, f64), outlying: bool) -> f64 {
        let mut said = Vec::new();
        if self.points.iter().any(|point| point.front) {
            said.push("Rings and steps: the front, where nothing else is better in both.");
        }
        if self.points.iter().any(|point| point.sd.1.is_some()) {
            said.push("Bars: one standard deviation.");
        }
        if outlying {
            said.push("In brackets: below what is shown.");
        }
        let mut y = top;
        for line in wrap(&said.join(" "), room - 8.0).iter().filter(|line| !line.is_empty()) {
            y += LINE;
            svg.quiet((4.0, y), Anchor::Start, line);
        }
        y + 8.0
    }
}

impl Point {
    /// Its error bars.
    fn bars(&self) -> Vec<((f64, f64), (f64, f64))> {
        let (x, y) = self.at;
        let across = self.sd.0.filter(|sd| *sd > 0.0).map(|sd| ((x - sd, y), (x + sd, y)));
        let up = self.sd.1.filter(|sd| *sd > 0.0).map(|sd| ((x, y - sd), (x, y + sd)));
        across.into_iter().chain(up).collect()
    }

    fn is_below(&self, floor: Option<f64>) -> bool {
        floor.is_some_and(|floor| self.at.1 < floor)
    }

    fn shown(&self, floor: Option<f64>) -> String {
        if self.is_below(floor) { format!("{} ({:.4})", self.name, self.at.1) } else { self.name.clone() }
    }

    fn said(&self, unit: Unit) -> String {
        let sd = |sd: Option<f64>, unit| sd.map(|sd| format!(" ± {}", name(sd, unit))).unwrap_or_default();
        let x = name(self.at.0, unit) + &sd(self.sd.0, unit);
        format!("{}: {}{}, {x}", self.name, name(self.at.1, Unit::Plain), sd(self.sd.1, Unit::Plain))
    }
}

fn around(from: (f64, f64), to: (f64, f64)) -> Area {
    Area { x: (from.0.min(to.0) - 1.0, from.0.max(to.0) + 1.0), y: (from.1.min(to.1) - 1.0, from.1.max(to.1) + 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(tests: &[f64]) -> Points {
        let point = |(style, test): (usize, &f64)| Point {
            name: format!("method {style}"),
            style,
            at: (1e6 * (style + 1) as f64, *test),
            sd: (None, Some(0.002)),
            front: style == 0,
        };
        let points = tests.iter().enumerate().map(point).collect();
        Points { title: "title".to_owned(), x: ("bytes".to_owned(), Unit::Bytes), y: "accuracy".to_owned(), points }
    }

    #[test]
    fn the_axis_fits_the_results_and_one_far_below_does_not_press_them_together() {
        let near = points(&[0.94, 0.93, 0.92, 0.935]);
        assert_eq!(near.floor(), None);
        assert!(near.up(None).place(0.9).is_none() && near.up(None).place(0.92).is_some());
        let far = points(&[0.94, 0.93, 0.92, 0.935, 0.34]);
        assert!(far.up(far.floor()).place(0.34).is_none() && far.up(far.floor()).place(0.918).is_some());
        let svg = far.svg(900.0).alone();
        assert!(svg.contains("method 4 (0.3400)") && svg.contains("brackets"), "{svg}");
    }

    #[test]
    fn more_points_than_have_room_for_names_are_named_below() {
        let svg = points(&[0.5; NAMED_MAX + 5]).svg(400.0).in_page();
        assert!((0..NAMED_MAX + 5).all(|style| svg.contains(&format!(">method {style}<"))), "{svg}");
    }

    #[test]
    fn no_point_or_one_and_numbers_that_are_none_are_drawn_without_a_panic() {
        for tests in [&[][..], &[0.5], &[f64::NAN, f64::INFINITY, 0.5]] {
            let svg = points(tests).svg(400.0).in_page();
            assert!(!svg.contains("NaN") && !svg.contains("inf,"), "{svg}");
        }
    }
}
