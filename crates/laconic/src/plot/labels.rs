//! Names beside their points, so that none lies on another.

use super::text::{LINE, widest};

/// A rectangle: left, top, right, bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    /// Its left and right side.
    pub x: (f64, f64),
    /// Its upper and lower side.
    pub y: (f64, f64),
}

/// Where the lines of a name stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// What it takes up.
    pub area: Area,
    /// Where a line from the point ends, for a name that is not right beside it.
    pub leader: Option<(f64, f64)>,
}

/// How far from its point a name may stand, nearest first.
const DISTANCES: [f64; 11] = [11.0, 15.0, 20.0, 28.0, 38.0, 50.0, 64.0, 80.0, 100.0, 130.0, 170.0];
/// A name farther than this has a line to its point.
const LEADER: f64 = 17.0;
/// Directions around a point.
const DIRECTIONS: usize = 24;
/// How often each name chooses.
const SWEEPS: usize = 3;
/// What it weighs that a name is not free.
const HIDDEN: f64 = 400.0;
/// What a covered square pixel weighs against a pixel of distance.
const COVERED: f64 = 4.0;
/// What a line across a name or a marker weighs.
const CROSSED: f64 = 60.0;

impl Area {
    /// A square around a point.
    pub fn around((x, y): (f64, f64), half: f64) -> Area {
        Area { x: (x - half, x + half), y: (y - half, y + half) }
    }

    /// How much of it lies in another.
    pub fn shared(&self, other: &Area) -> f64 {
        let side = |a: (f64, f64), b: (f64, f64)| (a.1.min(b.1) - a.0.max(b.0)).max(0.0);
        side(self.x, other.x) * side(self.y, other.y)
    }

    fn size(&self) -> f64 {
        (self.x.1 - self.x.0) * (self.y.1 - self.y.0)
    }

    /// The point of it that is nearest.
    fn nearest(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (x.clamp(self.x.0, self.x.1), y.clamp(self.y.0, self.y.1))
    }

    fn holds(&self, (x, y): (f64, f64)) -> bool {
        (self.x.0..=self.x.1).contains(&x) && (self.y.0..=self.y.1).contains(&y)
    }
}

/// A place for each name: `lines` are its lines, `points` where it belongs. Names keep within `room`, and off each
/// other, off markers and `obstacles` as far as there is room. Points with the most neighbours choose first; then each
/// chooses again, once it is known where the others are.
pub fn place(points: &[(f64, f64)], lines: &[Vec<String>], obstacles: &[Area], room: &Area) -> Vec<Label> {
    let neighbours = |point: &(f64, f64)| {
        points.iter().filter(|other| (other.0 - point.0).abs() < 120.0 && (other.1 - point.1).abs() < 40.0).count()
    };
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(neighbours(&points[index])));
    let mut placed: Vec<Option<Label>> = vec![None; points.len()];
    for index in order.iter().cycle().take(SWEEPS * points.len()) {
        placed[*index] = None;
        let around = Surroundings { points, placed: &placed, obstacles, room };
        let candidates = candidates(points[*index], widest(&lines[*index]), lines[*index].len() as f64 * LINE);
        let rated = candidates.into_iter().map(|(label, distance)| (distance + around.cost(*index, &label), label));
        placed[*index] = rated.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, label)| label);
    }
    placed.into_iter().flatten().collect()
}

/// What a name must stay off.
struct Surroundings<'a> {
    points: &'a [(f64, f64)],
    placed: &'a [Option<Label>],
    obstacles: &'a [Area],
    room: &'a Area,
}

impl Surroundings<'_> {
    /// What a place costs besides its distance.
    fn cost(&self, index: usize, label: &Label) -> f64 {
        let area = &label.area;
        let names = || self.placed.iter().flatten().map(|other| other.area);
        let marker = |(other, point): (usize, &(f64, f64))| (other, Area::around(*point, 9.5));
        let markers = || self.points.iter().enumerate().map(marker);
        let covered: f64 = names().chain(markers().map(|(_, marker)| marker)).map(|other| area.shared(&other)).sum();
        let lines: f64 = self.obstacles.iter().map(|other| area.shared(other)).sum();
        let outside = area.size() - area.shared(self.room);
        let leaders = self.placed.iter().zip(self.points);
        let leaders = leaders.filter_map(|(other, point)| Some((*point, other.as_ref()?.leader?)));
        let under = leaders.filter(|(from, to)| crosses(*from, *to, area)).count();
        let over = label.leader.map_or(0, |end| {
            let others = markers().filter(|(other, _)| *other != index).map(|(_, marker)| marker);
            names().chain(others).filter(|other| crosses(self.points[index], end, other)).count()
        });
        let hidden = if covered + outside > 0.0 { HIDDEN } else { 0.0 };
        hidden + COVERED * (covered + outside * 10.0) + lines + CROSSED * (under + over) as f64
    }
}

/// Places around a point for a name of this size, with how far each is: beside it is nearer than above it.
fn candidates(point: (f64, f64), width: f64, height: f64) -> Vec<(Label, f64)> {
    let mut all = Vec::with_capacity(DISTANCES.len() * DIRECTIONS);
    for distance in DISTANCES {
        for step in 0..DIRECTIONS {
            let (sin, cos) = (step as f64 / DIRECTIONS as f64 * std::f64::consts::TAU).sin_cos();
            // The name's edge, not its middle, is at the distance; a square norm lets it slide along its sides.
            let reach = |part: f64, half: f64| part * distance + (part * 1.5).clamp(-1.0, 1.0) * half;
            let middle = (point.0 + reach(cos, width / 2.0), point.1 + reach(sin, height / 2.0));
            let area = Area {
                x: (middle.0 - width / 2.0, middle.0 + width / 2.0),
                y: (middle.1 - height / 2.0, middle.1 + height / 2.0),
            };
            let nearest = area.nearest(point);
            let gap = (nearest.0 - point.0).hypot(nearest.1 - point.1);
            let leader = (gap > LEADER).then_some(nearest);
            all.push((Label { area, leader }, gap * 1.5 + sin.abs() * 3.0 + (1.0 - cos)));
        }
    }
    all
}

/// Whether a line goes through an area.
fn crosses(from: (f64, f64), to: (f64, f64), area: &Area) -> bool {
    let steps = ((to.0 - from.0).hypot(to.1 - from.1) / 4.0).ceil().max(1.0) as u32;
    let at = |step: u32| {
        let share = f64::from(step) / f64::from(steps);
        (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
    };
    (0..=steps).any(|step| area.holds(at(step)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::text::wrap;

    #[test]
    fn names_of_crowded_points_lie_neither_on_each_other_nor_on_markers_and_keep_within_the_figure() {
        let room = Area { x: (60.0, 880.0), y: (30.0, 420.0) };
        // Knuth's generator; its high bits are random enough to throw points into a corner.
        let mut state = 7u64;
        let mut share = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        for _ in 0..30 {
            let points: Vec<(f64, f64)> = (0..12).map(|_| (500.0 + share() * 300.0, 60.0 + share() * 200.0)).collect();
            let names: Vec<Vec<String>> =
                (0..12).map(|n| wrap(&format!("method {n}, of three words"), 150.0)).collect();
            let labels = place(&points, &names, &[], &room);
            assert_eq!(labels.len(), points.len());
            for (index, label) in labels.iter().enumerate() {
                let area = label.area;
                assert!((area.size() - area.shared(&room)).abs() < 1e-6, "{area:?} leaves the figure");
                for other in &labels[index + 1..] {
                    assert_eq!(area.shared(&other.area), 0.0, "{area:?} and {other:?}");
                }
                for point in &points {
                    assert!(!area.holds(*point), "{area:?} covers {point:?}");
                }
            }
        }
    }
}
