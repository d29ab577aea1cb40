//! Areas under the ROC curve over all workers: from counts in bins of the score, which add up, or from all scores.

use laconic_graph::dataset::Labels;
use laconic_graph::info::of_one_class;
use laconic_nn::Matrix;
use laconic_nn::loss::Targets;
use laconic_nn::roc::{BINS, Binned, bin, roc_auc};
use laconic_wire::{Content, Direction, FramePurpose, Ledger, Rank, Tag, Transport, WireError, collectives};

use super::local::{Local, SPLITS};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;

/// Scores of each row that areas look at: one, or one a class for sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Areas {
    /// Scores of one row.
    pub width: usize,
    /// Whether nodes may have several labels.
    pub sets: bool,
}

/// Rows of a worker, with what a model says of all its rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The worker whose rows they are.
    pub local: &'a Local,
    /// Scores of all of them.
    pub logits: &'a Matrix,
    /// Which of them are looked at, of each split.
    pub masks: &'a [Vec<bool>; 3],
}

/// One curve: its area, and what it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    /// The area; `None` unless both truths occur.
    pub area: Option<f64>,
    /// How far the exact area may be from it.
    pub off: f64,
    /// Things that are not, and things that are.
    pub counts: [u64; 2],
}

/// The area of a split.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Area {
    /// The mean over curves that have an area; `None` where none has.
    pub mean: Option<f64>,
    /// What is to be said of it, behind its name and split.
    pub said: Option<String>,
}

impl Curve {
    /// Of counts in bins.
    pub fn binned(binned: &Binned) -> Curve {
        Curve { area: binned.area(), off: binned.off(), counts: [binned.negatives, binned.positives] }
    }

    /// Of all scores.
    pub fn exact(scored: &mut [(f32, bool)]) -> Curve {
        let positives = scored.iter().filter(|scored| scored.1).count();
        let counts = [scored.len() - positives, positives].map(|count| count as u64);
        Curve { area: roc_auc(scored), off: 0.0, counts }
    }
}

impl Area {
    /// The mean over the curves of a split that have an area; `why` says of the only curve why it has none.
    pub fn of(curves: &[Curve], why: impl Fn([u64; 2]) -> String) -> Area {
        let defined: Vec<(f64, f64)> = curves.iter().filter_map(|curve| Some((curve.area?, curve.off))).collect();
        let (count, all) = (defined.len() as f64, curves.len());
        let Some(first) = curves.first().filter(|_| defined.is_empty()) else {
            let [area, off] = [0, 1].map(|which| {
                let each = defined.iter().map(|of_curve| if which == 0 { of_curve.0 } else { of_curve.1 });
                each.sum::<f64>() / count
            });
            let off = (off >= OFF_SAID)
                .then(|| format!("comes from counts of scores in bins: the exact area is within {off:.4} of it"));
            let some = (defined.len() < all).then(|| {
                let labels = defined.len();
                format!("is the mean over {labels} of {all} labels: of the others all nodes are alike")
            });
            let said: Vec<String> = some.into_iter().chain(off).collect();
            return Area { mean: (all > 0).then_some(area), said: (!said.is_empty()).then(|| said.join(" and ")) };
        };
        let why = if all == 1 { why(first.counts) } else { "of each label all nodes are alike".to_owned() };
        Area { mean: None, said: Some(format!("is not defined: {why}")) }
    }
}

const NUMBER: usize = size_of::<u64>();
/// Bytes of one score with its truth.
const SCORED: usize = 5;
/// Bytes of how many of each truth are in a bin.
const BIN: usize = 2 * size_of::<u32>();
/// Bytes of what a range of bins comes to.
const RANGE: usize = 2 * size_of::<u64>() + 2 * size_of::<u128>();
/// From this on it is said how far an area from bins may be from the exact one: it shows in the third digit.
const OFF_SAID: f64 = 5e-4;

/// What frames of areas are about. Steps of rows of evaluations are below.
#[derive(Clone, Copy)]
enum Step {
    Scores = 2,
    Bins = 5,
    Ranges = 6,
}

fn tag(round: u32, step: Step) -> Tag {
    let content = if let Step::Scores = step { Content::LabelledScores } else { Content::ScoreBins };
    let purpose = FramePurpose::Evaluation;
    Tag { content, purpose, direction: Direction::Forward, layer: 0, round, step: step as u16 }
}

/// Refuses what a peer has sent.
fn malformed(transport: &dyn Transport, peer: usize, tag: Tag, what: &'static str) -> TrainError {
    WireError::malformed(what).from_peer(transport.rank(), Rank(peer as u32), tag).into()
}

/// The score of one row for one class, with its truth, [`Labels::UNKNOWN`] where nobody knows.
fn scored(local: &Local, logits: &Matrix, row: usize, class: usize) -> (f32, u8) {
    match local.targets() {
        Targets::Sets(sets) => (logits.row(row)[class], sets[row * logits.columns() + class]),
        Targets::Classes(classes) => (logits.row(row)[1] - logits.row(row)[0], u8::from(classes[row] == 1)),
    }
}

impl Areas {
    /// Curves: one for each split and class.
    fn curves(self) -> usize {
        SPLITS.len() * self.width
    }

    /// The mean over classes, of each split.
    fn means(self, of_curves: &[Curve]) -> [Area; 3] {
        let why = |[negatives, positives]: [u64; 2]| match (self.sets, positives) {
            (false, _) => of_one_class(negatives + positives, usize::from(positives > 0)),
            (true, 0) => "no node has the label".to_owned(),
            (true, _) => "every node has the label".to_owned(),
        };
        let mut of_splits = of_curves.chunks_exact(self.width.max(1));
        [(); 3].map(|()| of_splits.next().map_or_else(Area::default, |curves| Area::of(curves, why)))
    }

    /// Bytes that counting in bins takes on a worker: its own counts, those of others, and the frames.
    pub fn memory(self) -> u64 {
        (3 * self.curves() * BINS * BIN) as u64
    }

    /// The area of each split from own counts alone.
    pub fn of_counts(self, counts: &[[u32; 2]]) -> [Area; 3] {
        let of = |bins: &[[u32; 2]]| Curve::binned(&Binned::of(bins.iter().map(|bin| bin.map(u64::from))));
        self.means(&counts.chunks_exact(BINS).map(of).collect::<Vec<_>>())
    }

    /// The area of each split from everybody's counts. Every worker adds up a share of the bins over all workers, and
    /// what all shares come to is told to everybody: so no score leaves a worker, and no number of bytes depends on
    /// nodes.
    pub fn binned(self, transport: &mut dyn Transport, counts: &[[u32; 2]], round: u32) -> Result<[Area; 3]> {
        let (rank, size) = (transport.rank(), transport.size());
        let to = |peer: Rank| {
            let range = collectives::chunk(BINS, size, peer);
            let of_curve = counts.chunks_exact(BINS).flat_map(|bins| &bins[range.clone()]);
            of_curve.flatten().flat_map(|count| count.to_le_bytes()).collect::<Vec<u8>>()
        };
        let step = tag(round, Step::Bins);
        let share = collectives::chunk(BINS, size, rank).len();
        let mut sums = vec![[0u64; 2]; self.curves() * share];
        let theirs = collectives::all_to_all(transport, step, Rank::all(size).map(to).collect())?;
        for (peer, bytes) in theirs.iter().enumerate() {
            if bytes.len() != sums.len() * BIN {
                return Err(malformed(transport, peer, step, "counts of another shape"));
            }
            for (sum, count) in sums.as_flattened_mut().iter_mut().zip(bytes.as_chunks().0) {
                *sum += u64::from(u32::from_le_bytes(*count));
            }
        }
        let mut mine = Vec::with_capacity(self.curves() * RANGE);
        for curve in 0..self.curves() {
            let range = Binned::of(sums[curve * share..(curve + 1) * share].iter().copied());
            mine.extend(range.positives.to_le_bytes());
            mine.extend(range.negatives.to_le_bytes());
            mine.extend(range.ordered.to_le_bytes());
            mine.extend(range.tied.to_le_bytes());
        }
        let step = tag(round, Step::Ranges);
        let mut all = vec![Binned::default(); self.curves()];
        for (peer, bytes) in collectives::all_gather(transport, step, &mine)?.iter().enumerate() {
            if bytes.len() != mine.len() {
                return Err(malformed(transport, peer, step, "counts of another shape"));
            }
            for (below, bytes) in all.iter_mut().zip(bytes.chunks_exact(RANGE)) {
                let number = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                let long = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes));
                let [ordered, tied] = [2 * NUMBER, 4 * NUMBER].map(long);
                *below = below.then(Binned { positives: number(0), negatives: number(NUMBER), ordered, tied });
            }
        }
        Ok(self.means(&all.iter().map(Curve::binned).collect::<Vec<_>>()))
    }

    /// Of every curve and bin how many own scores are in it, by their truth.
    pub fn count(self, Rows { local, logits, masks }: Rows<'_>) -> Vec<[u32; 2]> {
        let mut counts = vec![[0u32; 2]; self.curves() * BINS];
        for (split, mask) in masks.iter().enumerate() {
            for row in (0..logits.rows()).filter(|&row| mask[row]) {
                for class in 0..self.width {
                    let (score, truth) = scored(local, logits, row, class);
                    if truth != Labels::UNKNOWN {
                        counts[(split * self.width + class) * BINS + bin(score)][usize::from(truth != 0)] += 1;
                    }
                }
            }
        }
        counts
    }

    /// The exact area of each split over these rows alone.
    pub fn exact_here(self, Rows { local, logits, masks }: Rows<'_>) -> [Area; 3] {
        let mut all: Vec<Vec<(f32, bool)>> = vec![Vec::new(); self.curves()];
        for (mask, of_split) in masks.iter().zip(all.chunks_mut(self.width.max(1))) {
            for row in (0..logits.rows()).filter(|&row| mask[row]) {
                for (class, of_curve) in of_split.iter_mut().enumerate() {
                    let (score, truth) = scored(local, logits, row, class);
                    of_curve.extend((truth != Labels::UNKNOWN).then_some((score, truth != 0)));
                }
            }
        }
        self.means(&all.iter_mut().map(|scored| Curve::exact(scored)).collect::<Vec<_>>())
    }

    /// The exact area of each split, for which every labelled row's scores and truth go to every worker.
    pub fn exact(self, transport: &mut dyn Transport, rows: Rows<'_>, round: u32) -> Result<[Area; 3]> {
        let (Rows { local, logits, .. }, step) = (rows, tag(round, Step::Scores));
        let rows = |mask: &Vec<bool>| mask.iter().filter(|&&is_in| is_in).count() as u64;
        let mut mine: Vec<u8> = local.masks.iter().flat_map(|mask| rows(mask).to_le_bytes()).collect();
        for mask in &local.masks {
            for row in (0..logits.rows()).filter(|&row| mask[row]) {
                for class in 0..self.width {
                    let (score, truth) = scored(local, logits, row, class);
                    mine.extend(score.to_le_bytes());
                    mine.push(truth);
                }
            }
        }
        let mut all: Vec<Vec<(f32, bool)>> = vec![Vec::new(); self.curves()];
        for (peer, bytes) in collectives::all_gather(transport, step, &mine)?.iter().enumerate() {
            let refuse = || malformed(transport, peer, step, "scores of another shape");
            let (counts, rest) = bytes.split_at_checked(SPLITS.len() * NUMBER).ok_or_else(refuse)?;
            let counts: Vec<u64> = counts.as_chunks::<NUMBER>().0.iter().map(|c| u64::from_le_bytes(*c)).collect();
            let total = counts.iter().try_fold(0u64, |sum, &c| sum.checked_add(c)).ok_or_else(refuse)?;
            if total.checked_mul((self.width * SCORED) as u64) != Some(rest.len() as u64) {
                return Err(refuse());
            }
            let mut entries = rest.as_chunks::<SCORED>().0.iter();
            for (split, &rows) in counts.iter().enumerate() {
                for _ in 0..rows {
                    for class in 0..self.width {
                        let &[a, b, c, d, truth] = entries.next().ok_or_else(refuse)?;
                        // Unknown entries travel too, so that the number of bytes does not depend on labels.
                        if truth != Labels::UNKNOWN {
                            all[split * self.width + class].push((f32::from_le_bytes([a, b, c, d]), truth != 0));
                        }
                    }
                }
            }
        }
        Ok(self.means(&all.iter_mut().map(|scored| Curve::exact(scored)).collect::<Vec<_>>()))
    }

    /// Enters what [`Areas::binned`] sends.
    pub fn forecast_binned(self, shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let (rank, size) = (Rank(shapes.rank), shapes.workers());
        let bytes = |peer: Rank| self.curves() * collectives::chunk(BINS, size, peer).len() * BIN;
        let lens: Vec<usize> = Rank::all(size).map(bytes).collect();
        collectives::forecast_all_to_all(ledger, tag(round, Step::Bins), rank, &lens);
        let ranges = self.curves() * RANGE;
        collectives::forecast_all_gather(ledger, tag(round, Step::Ranges), size, rank, ranges);
    }

    /// Enters what [`Areas::exact`] sends.
    pub fn forecast_exact(self, shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let rows: usize = shapes.split_rows.iter().sum();
        let bytes = SPLITS.len() * NUMBER + rows * self.width * SCORED;
        let (rank, size) = (Rank(shapes.rank), shapes.workers());
        collectives::forecast_all_gather(ledger, tag(round, Step::Scores), size, rank, bytes);
    }
}
