//! Curves over two axes.

use super::axis::{Axis, Scale, Unit, name};
use super::frame::Frame;
use super::legend::{self, Sample};
use super::svg::{Anchor, Figure, Svg, Weight};

/// A curve through points.
pub struct Curve {
    /// What it says when pointed at.
    pub name: String,
    /// The number of its colour, dash and marker.
    pub style: usize,
    /// Whether it counts, or is one of several that another sums up.
    pub weight: Weight,
    /// Its points, in order.
    pub points: Vec<(f64, f64)>,
}

/// Where a stage starts.
pub struct Stage {
    /// Its first round.
    pub round: f64,
    /// What stands beside it.
    pub name: String,
}

/// A chart: label, unit and scale of both axes, and what is on it.
pub struct Chart {
    /// The title above the chart.
    pub title: String,
    /// The horizontal axis.
    pub x: (String, Unit, Scale),
    /// The vertical axis, which is linear.
    pub y: String,
    /// The curves, the later ones on top.
    pub curves: Vec<Curve>,
    /// Where stages start, on the horizontal axis.
    pub stages: Vec<Stage>,
    /// Names of styles.
    pub legend: Vec<(String, usize)>,
    /// The axes, where they are those of other charts too.
    pub axes: Option<(Axis, Axis)>,
}

impl Chart {
    /// The chart, `width` wide.
    pub fn svg(&self, width: f64) -> Figure {
        let (x, y) = self.axes.clone().unwrap_or_else(|| axes([self].into_iter()));
        let mut svg = Svg::default();
        let top = svg.heading(width, &self.title, &self.y) + 14.0;
        let unit = x.unit();
        let frame = Frame::new(x, y, width, (top, (width * 0.45).clamp(170.0, 340.0)));
        let end = frame.draw(&mut svg, &self.x.0);
        for stage in &self.stages {
            let x = frame.clamped((stage.round, 0.0)).0;
            svg.line((x, frame.area.y.0), (x, frame.area.y.1), "stage");
            svg.quiet((x + 4.0, frame.area.y.1 - 6.0), Anchor::Start, &stage.name);
        }
        for curve in &self.curves {
            let points: Vec<(f64, f64)> = curve.points.iter().filter_map(|point| frame.place(*point)).collect();
            svg.curve(&points, curve.style, curve.weight, &curve.name);
        }
        for curve in self.curves.iter().filter(|curve| curve.weight == Weight::Strong) {
            let Some((end, at)) = curve.points.last().and_then(|end| Some((end, frame.place(*end)?))) else { continue };
            let said = format!("{}: {}, {}", curve.name, name(end.0, unit), name(end.1, Unit::Plain));
            svg.marker(at, curve.style, &said);
        }
        let end = legend::draw(&mut svg, &self.legend, Sample::Curve, (width, end));
        svg.finish(width, end, &self.title)
    }
}

/// Gives charts the axes that hold them all.
pub fn share_axes(charts: &mut [Chart]) {
    if charts.is_empty() {
        return;
    }
    let shared = axes(charts.iter());
    charts.iter_mut().for_each(|chart| chart.axes = Some(shared.clone()));
}

fn axes<'a>(charts: impl Iterator<Item = &'a Chart> + Clone) -> (Axis, Axis) {
    let points = || charts.clone().flat_map(|chart| &chart.curves).flat_map(|curve| curve.points.iter().copied());
    let (unit, scale) = charts.clone().next().map_or((Unit::Plain, Scale::Linear), |chart| (chart.x.1, chart.x.2));
    let x = Axis::over(points().map(|(x, _)| x), scale, unit);
    (x, Axis::over(points().map(|(_, y)| y), Scale::Linear, Unit::Plain))
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

    fn chart(name: &str, points: Vec<(f64, f64)>) -> Chart {
        let name = name.to_owned();
        Chart {
            title: name.clone(),
            x: (name.clone(), Unit::Bytes, Scale::Log),
            y: name.clone(),
            curves: vec![Curve { name: name.clone(), style: 9, weight: Weight::Strong, points }],
            stages: vec![Stage { round: 3.0, name: name.clone() }],
            legend: vec![(name, 0)],
            axes: None,
        }
    }

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
        let hostile = "</svg><script>alert(1)</script>\u{1}\"'";
        let numbers = [f64::NAN, f64::INFINITY, 0.0, -1.0, 5e-324, f64::MAX, f64::MIN];
        let points = numbers.iter().flat_map(|x| numbers.iter().map(|y| (*x, *y))).collect();
        let svg = chart(hostile, points).svg(900.0).alone();
        assert!(
            !svg.contains("<script") && !svg.contains('\u{1}') && !svg.contains("NaN") && !svg.contains("inf"),
            "{svg}"
        );
        assert_eq!(svg.matches("</svg>").count(), 1);
    }

    #[test]
    fn charts_side_by_side_have_common_axes() {
        let mut charts = [chart("a", vec![(1e6, 0.2), (2e6, 0.5)]), chart("b", vec![(1e7, 0.4), (4e8, 0.9)])];
        share_axes(&mut charts);
        assert_eq!(charts[0].axes, charts[1].axes);
        let (x, y) = charts[0].axes.clone().expect("shared");
        assert!(x.place(1e6).is_some() && x.place(4e8).is_some() && y.place(0.2).is_some() && y.place(0.9).is_some());
    }
}
