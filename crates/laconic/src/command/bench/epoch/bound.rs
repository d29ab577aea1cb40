//! Least work at measured rates: seconds.

use std::collections::BTreeMap;

use anyhow::Result;
use laconic_nn::Compute;
use laconic_train::Plan;
use laconic_train::forecast::bound::{Item, Moment, Work};
use schemars::JsonSchema;
use serde::Serialize;

use super::Figures;
use crate::command::bench::roofline::{Moved, Multiplied, ROWS, copied, gathered, multiplied};
use crate::command::bench::trained::OnLink;
use crate::command::bench::{Measuring, afford};

/// What the machine can do, of what a network needs.
pub struct Rates {
    copy: Moved,
    /// By width the faster of rows copied and rows read.
    gather: BTreeMap<usize, Moved>,
    /// The fastest product of any shape measured, of rows stored as the plan's are.
    dense: Multiplied,
}

impl Rates {
    /// Measures copies, gathers of the widths that are in these items from as many rows as there are nodes, and the
    /// products of the plan's layers.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn measure(
        measuring: &Measuring,
        threads: usize,
        plan: &Plan,
        (items, nodes): (&[Item], u64),
    ) -> Result<Rates> {
        let (array, seconds) = (measuring.array(), measuring.seconds);
        let mut compute = Compute::start(threads)?;
        afford("the arrays of copies", 2 * array)?;
        let copy = copied(&compute, array, seconds);
        let mut gather = BTreeMap::new();
        for item in items {
            if let Work::Gathered(width) = item.work
                && !gather.contains_key(&width)
            {
                // Far beyond caches more rows are no slower to reach, and would only take memory.
                let rows = nodes.min(4 * array / (4 * width as u64)).max(1);
                afford("the rows of gathers", rows.saturating_mul(8 * width as u64 + 4))?;
                let [copied, read] = gathered(&compute, (rows as usize, rows as usize), width, seconds);
                let faster = if copied.bytes_per_second > read.bytes_per_second { copied } else { read };
                gather.insert(width, faster);
            }
        }
        Ok(Rates { copy, gather, dense: fastest(&mut compute, plan, seconds) })
    }

    /// What one unit of this work takes a second of: flops or bytes.
    fn rate(&self, work: Work) -> f64 {
        match work {
            Work::Products => self.dense.flops_per_second,
            Work::Streamed => self.copy.bytes_per_second,
            Work::Gathered(width) => self.gather.get(&width).map_or(f64::NAN, |moved| moved.bytes_per_second),
        }
    }

    /// The measures themselves.
    pub fn figures(self) -> Figures {
        Figures { copy: self.copy, gather: self.gather.into_values().collect(), dense: self.dense }
    }
}

/// The fastest product of the shapes of a plan's layers, and of the usual wide one.
fn fastest(compute: &mut Compute, plan: &Plan, seconds: f64) -> Multiplied {
    let units = plan.stages.iter().flat_map(|stage| stage.network.units());
    let mut shapes: Vec<[usize; 2]> =
        units.map(|unit| [unit.layer.facts().inputs, unit.layer.facts().outputs]).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let rows = ROWS * compute.threads();
    let rows = (rows, plan.precision());
    let [mut best, others @ ..] = multiplied(compute, rows, [256, 256], seconds);
    let more = shapes.into_iter().filter(|shape| *shape != [256, 256]);
    let more: Vec<Multiplied> = more.flat_map(|shape| multiplied(compute, rows, shape, seconds)).collect();
    for product in others.into_iter().chain(more) {
        if product.flops_per_second > best.flops_per_second {
            best = product;
        }
    }
    best
}

/// What an epoch has to take at least.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Bound {
    /// Of all parts that are dense products.
    pub dense_seconds: f64,
    /// Of all that gather rows.
    pub gather_seconds: f64,
    /// Of all that go through arrays.
    pub stream_seconds: f64,
    /// On the link; 0 without one.
    pub link_seconds: f64,
    /// One entry for each unit, moment and work.
    pub parts: Vec<Part>,
}

/// One part of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Part {
    /// The stage, from 0.
    pub stage: usize,
    /// The place in the stage's network, from 0; null on the link.
    pub unit: Option<usize>,
    /// `forward`, `backward`, or `step`: once for the network.
    pub moment: &'static str,
    /// `dense`, `gather`, `stream` or `link`.
    pub work: &'static str,
    /// Of gathered rows; else 0.
    pub width: usize,
    /// Flops of dense work, bytes of any other.
    pub amount: f64,
    /// Of these in a second.
    pub rate: f64,
    /// Amount over rate; on a link with the latency of exchanges that wait for one another.
    pub seconds: f64,
}

impl Bound {
    /// Work at these rates, and a round of each stage on its link.
    pub fn of(items: &[Item], rates: &Rates, links: &[Option<OnLink>]) -> Bound {
        let mut parts: Vec<Part> = items.iter().map(|item| part(item, rates.rate(item.work))).collect();
        for (stage, link) in links.iter().enumerate() {
            parts.extend(link.as_ref().map(|link| on_link(stage, link)));
        }
        let of = |work: &str| parts.iter().filter(|part| part.work == work).fold(0.0, |sum, part| sum + part.seconds);
        Bound {
            dense_seconds: of(DENSE),
            gather_seconds: of(GATHER),
            stream_seconds: of(STREAM),
            link_seconds: of(LINK),
            parts,
        }
    }

    /// The seconds of a round of this stage.
    pub fn of_stage(&self, stage: usize) -> f64 {
        self.parts.iter().filter(|part| part.stage == stage).map(|part| part.seconds).sum()
    }
}

const DENSE: &str = "dense";
const GATHER: &str = "gather";
const STREAM: &str = "stream";
const LINK: &str = "link";

fn part(item: &Item, rate: f64) -> Part {
    let (work, width) = match item.work {
        Work::Products => (DENSE, 0),
        Work::Gathered(width) => (GATHER, width),
        Work::Streamed => (STREAM, 0),
    };
    let moment = match item.moment {
        Moment::Forward => "forward",
        Moment::Backward => "backward",
        Moment::Step => STEP,
    };
    let Item { stage, unit, amount, .. } = *item;
    Part { stage, unit: Some(unit), moment, work, width, amount, rate, seconds: amount / rate }
}

const STEP: &str = "step";

fn on_link(stage: usize, link: &OnLink) -> Part {
    let (amount, rate) = (link.bytes as f64, link.bytes_per_second);
    let seconds = amount / rate + link.latency_seconds;
    Part { stage, unit: None, moment: STEP, work: LINK, width: 0, amount, rate, seconds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::bench::measure::Times;

    /// Work at round rates, in seconds worked out by hand.
    #[test]
    fn parts_add_up() {
        let times = Times { best_seconds: 1.0, median_seconds: 1.0, repetitions: 3 };
        let moved = |rate| Moved { threads: 1, width: 8, what: "read", bytes: 1, times, bytes_per_second: rate };
        let dense = Multiplied {
            threads: 1,
            what: "forward",
            precision: "f32",
            rows: 1,
            inputs: 1,
            outputs: 1,
            times,
            flops_per_second: 100.0,
        };
        let rates = Rates { copy: moved(10.0), gather: [(8, moved(5.0))].into(), dense };
        let item = |stage, work, amount| Item { stage, unit: 0, moment: Moment::Forward, work, amount };
        let items = [
            item(0, Work::Products, 200.0),
            item(0, Work::Gathered(8), 20.0),
            item(0, Work::Streamed, 5.0),
            item(1, Work::Streamed, 15.0),
        ];
        let link = OnLink { bytes: 100, bytes_per_second: 50.0, latency_seconds: 0.25 };
        let bound = Bound::of(&items, &rates, &[None, Some(link)]);
        assert_eq!((bound.of_stage(0), bound.of_stage(1)), (2.0 + 4.0 + 0.5, 1.5 + 2.25));
        assert_eq!((bound.dense_seconds, bound.gather_seconds), (2.0, 4.0));
        assert_eq!((bound.stream_seconds, bound.link_seconds), (2.0, 2.25));
    }
}
