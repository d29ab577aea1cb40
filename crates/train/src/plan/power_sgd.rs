//! Which gradients are added up as two factors (`train.power_sgd`), in how many values, and where that is refused.

use std::ops::Range;

use laconic_nn::Network;
use laconic_nn::network::is_running;

use super::{Members, Plan};
use crate::config::{CodecChoice, Config};
use crate::error::{Result, TrainError};
use crate::schedule::Stage;

/// How the gradient of one parameter is added up. A matrix of n × m values as n × rank ones, and then m × rank ones; as
/// it is, with the first, where these are no fewer than its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factored {
    /// Where it stands in the gradient.
    pub values: Range<usize>,
    /// How many columns it has as a matrix.
    pub columns: usize,
    /// Columns of its factors, 0 where it goes as it is.
    pub rank: usize,
    /// Where the first factor, or all of it, stands in the first sum.
    pub first: Range<usize>,
    /// Where the second factor stands in the second sum.
    pub second: Range<usize>,
}

/// The gradients of a network's parameters, first to last, in the order of the flat slice.
pub fn factored(plan: &Plan, network: &Network) -> Vec<Factored> {
    let outputs = plan.stages.last().map_or(1, Stage::outputs);
    let rank = plan.config.train.power_sgd.unwrap_or_default().rank.of(outputs);
    let mut ends = [0; 3];
    let mut next = |lens: [usize; 3]| {
        let starts = ends;
        ends.iter_mut().zip(lens).for_each(|(end, len)| *end += len);
        [0, 1, 2].map(|at| starts[at]..ends[at])
    };
    let of = |[rows, columns]: [usize; 2]| {
        let rank = if rank.saturating_mul(rows + columns) < rows * columns { rank } else { 0 };
        let first = if rank > 0 { rows * rank } else { rows * columns };
        let [values, first, second] = next([rows * columns, first, columns * rank]);
        Factored { values, columns, rank, first, second }
    };
    let learned = network.parameters().iter().filter(|spec| !is_running(&spec.name));
    learned.map(|spec| spec.matrix()).map(of).collect()
}

/// How many values the two sums of a round have.
pub fn sums(all: &[Factored]) -> [usize; 2] {
    all.last().map_or([0; 2], |last| [last.first.end, last.second.end])
}

/// Refuses factors where no gradients are added up over workers, or where something else is to make them smaller.
pub(super) fn check_power_sgd(members: &Members, config: &Config, stages: &[Stage]) -> Result<()> {
    let (train, messages) = (&config.train, &config.messages);
    if train.power_sgd.is_none() {
        return Ok(());
    }
    let refuse = |with: String, what: &str| Err(TrainError::config(format!("train.power_sgd with {with}: {what}")));
    let schedule = members.schedule(config)?;
    if schedule.trainers {
        let what = "independent trainers add up no gradients; messages.parameters makes their models smaller";
        return refuse(format!("schedule.kind = {:?}", schedule.name), what);
    }
    if stages.iter().all(|stage| stage.solves.is_some() || stage.network.trained() == 0) {
        return refuse(format!("schedule.kind = {:?}", schedule.name), "nothing there is learned by gradients");
    }
    if train.sync_every > 1 {
        let what = "models are averaged there, and no gradients added up; messages.parameters makes them smaller";
        return refuse(format!("train.sync_every = {}", train.sync_every), what);
    }
    if messages.parameters != CodecChoice::exact() {
        let what = "factors are added up as they are, since all workers go on from the same; leave one out";
        return refuse("messages.parameters".to_owned(), what);
    }
    if !messages.error_feedback {
        let what = "what factors leave over is always added to the next gradient";
        return refuse("messages.error_feedback = false".to_owned(), what);
    }
    Ok(())
}

impl Plan {
    /// Says so where no gradient is smaller as factors.
    pub(super) fn factors_nothing(&self) -> Option<String> {
        let factors = |stage: &Stage| factored(self, &stage.network).iter().any(|one| one.rank > 0);
        let is_idle = self.cadence.factors() && !self.stages.iter().any(factors);
        is_idle.then(|| {
            "train.power_sgd: no matrix of the model has more values than its two factors would have, so gradients \
             are added up as they are; a lower rank would factor some"
                .to_owned()
        })
    }
}
