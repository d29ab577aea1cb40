//! Curves and dots over two axes.

use super::axis::{Axis, Scale, Unit, name};
use super::svg::{Anchor, Svg, short};

/// A curve through points.
pub struct Curve {
    /// What it says when pointed at.
    pub name: String,
    /// The number of its colour and dash.
    pub style: usize,
    /// Its points, in order.
    pub points: Vec<(f64, f64)>,
}

/// A large dot.
pub struct Dot {
    /// What it says when pointed at.
    pub name: String,
    /// The number of its colour.
    pub style: usize,
    /// Where it is.
    pub at: (f64, f64),
}

/// A chart: label, unit and scale of both axes, and what is on it.
pub struct Chart {
    /// The title above the chart.
    pub title: String,
    /// The horizontal axis.
    pub x: (String, Unit, Scale),
    /// The vertical axis, which is linear.
    pub y: (String, Unit),
    /// The curves, the later ones on top.
    pub curves: Vec<Curve>,
    /// Dots, above the curves.
    pub dots: Vec<Dot>,
    /// Points that a dashed line connects.
    pub front: Vec<(f64, f64)>,
    /// Names of styles.
    pub legend: Vec<(String, usize)>,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 336.0;
const LEGEND_LINE: f64 = 18.0;
/// A longer legend says how many names it leaves out.
const LEGEND_MAX: usize = 32;
/// Letters of a name in the legend.
const LETTERS: usize = 28;

impl Chart {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        let (x, y) = self.axes();
        let place =
            |(a, b): (f64, f64)| Some((LEFT + x.place(a)? * (RIGHT - LEFT), BOTTOM - y.place(b)? * (BOTTOM - TOP)));
        let mut svg = Svg::default();
        svg.heading((LEFT, TOP - 14.0), &self.title);
        self.draw_axes(&mut svg, &x, &y);
        for curve in &self.curves {
            let points: Vec<(f64, f64)> = curve.points.iter().filter_map(|point| place(*point)).collect();
            svg.curve(&points, curve.style, 1.3, &curve.name);
        }
        let front: Vec<(f64, f64)> = self.front.iter().filter_map(|point| place(*point)).collect();
        for ends in front.windows(2) {
            svg.line(ends[0], ends[1], "#555", "5 4");
        }
        for dot in &self.dots {
            if let Some(at) = place(dot.at) {
                let (a, b) = (name(dot.at.0, self.x.1), name(dot.at.1, self.y.1));
                svg.dot(at, dot.style, &format!("{}: {a}, {b}", dot.name));
            }
        }
        let end = self.draw_legend(&mut svg);
        svg.finish(WIDTH, end.max(BOTTOM + 48.0), &self.title)
    }

    fn axes(&self) -> (Axis, Axis) {
        let points = || {
            let dots = self.dots.iter().map(|dot| dot.at);
            self.curves.iter().flat_map(|curve| curve.points.iter().copied()).chain(dots)
        };
        let x = Axis::over(points().map(|(x, _)| x), self.x.2, self.x.1);
        (x, Axis::over(points().map(|(_, y)| y), Scale::Linear, self.y.1))
    }

    fn draw_axes(&self, svg: &mut Svg, x: &Axis, y: &Axis) {
        for (value, name) in x.ticks() {
            let Some(at) = x.place(value).map(|at| LEFT + at * (RIGHT - LEFT)) else { continue };
            svg.line((at, TOP), (at, BOTTOM), "#e4e4e4", "");
            svg.text((at, BOTTOM + 16.0), Anchor::Middle, &name);
        }
        for (value, name) in y.ticks() {
            let Some(at) = y.place(value).map(|at| BOTTOM - at * (BOTTOM - TOP)) else { continue };
            svg.line((LEFT, at), (RIGHT, at), "#e4e4e4", "");
            svg.text((LEFT - 6.0, at + 4.0), Anchor::End, &name);
        }
        svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "#888", "");
        svg.line((LEFT, TOP), (LEFT, BOTTOM), "#888", "");
        svg.text(((LEFT + RIGHT) / 2.0, BOTTOM + 36.0), Anchor::Middle, &self.x.0);
        svg.upright((16.0, (TOP + BOTTOM) / 2.0), &self.y.0);
    }

    /// Draws the legend and returns where it ends.
    fn draw_legend(&self, svg: &mut Svg) -> f64 {
        let (x, mut y) = (RIGHT + 20.0, TOP + 6.0);
        for (name, style) in self.legend.iter().take(LEGEND_MAX) {
            svg.curve(&[(x, y), (x + 22.0, y)], *style, 3.0, name);
            svg.text((x + 28.0, y + 4.0), Anchor::Start, &short(name, LETTERS));
            y += LEGEND_LINE;
        }
        if self.legend.len() > LEGEND_MAX {
            svg.text((x, y + 4.0), Anchor::Start, &format!("and {} more", self.legend.len() - LEGEND_MAX));
            y += LEGEND_LINE;
        }
        if self.front.len() > 1 {
            svg.line((x, y), (x + 22.0, y), "#555", "5 4");
            svg.text((x + 28.0, y + 4.0), Anchor::Start, "front: nothing is better in both");
            y += LEGEND_LINE;
        }
        y
    }
}

/// At most `most` of the points, evenly chosen, the first and the last among them.
pub fn thin<T: Copy>(points: &[T], most: usize) -> Vec<T> {
    assert!(most >= 2, "thinning to {most} points cannot keep both ends");
    if points.len() <= most {
        return points.to_vec();
    }
    (0..most).map(|index| points[index * (points.len() - 1) / (most - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_order_both_ends_and_the_limit() {
        let points: Vec<usize> = (0..12_345).collect();
        let kept = thin(&points, 2000);
        assert_eq!((kept.len(), kept[0], kept[1999]), (2000, 0, 12_344));
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(thin(&points[..2000], 2000), points[..2000]);
    }

    #[test]
    fn hostile_names_do_not_leave_their_place_and_strange_numbers_are_passed_over() {
        let hostile = "</svg><script>alert(1)</script>\u{1}\"'".to_owned();
        let numbers = [f64::NAN, f64::INFINITY, 0.0, -1.0, 5e-324, f64::MAX, f64::MIN];
        let points = numbers.iter().flat_map(|x| numbers.iter().map(|y| (*x, *y))).collect();
        let chart = Chart {
            title: hostile.clone(),
            x: (hostile.clone(), Unit::Bytes, Scale::Log),
            y: (hostile.clone(), Unit::Plain),
            curves: vec![Curve { name: hostile.clone(), style: 9, points }],
            dots: vec![Dot { name: hostile.clone(), style: 0, at: (-1.0, 0.5) }],
            front: Vec::new(),
            legend: vec![(hostile, 0)],
        };
        let svg = chart.svg();
        assert!(
            !svg.contains("<script") && !svg.contains('\u{1}') && !svg.contains("NaN") && !svg.contains("inf"),
            "{svg}"
        );
        assert_eq!(svg.matches("</svg>").count(), 1);
    }
}
