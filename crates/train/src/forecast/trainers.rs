//! What trainers on their own and their aggregator will send: to the byte where steps decide when means are taken, and
//! at most where time does, as long as nobody fails.

use laconic_wire::{Count, Ledger, Rank, Tag};

use crate::averaging::link::{sizes_from_trainer, sizes_to_trainer};
use crate::averaging::{FromTrainer, Model, ToTrainer};
use crate::plan::TrainersPlan;

/// One stage, as far as its traffic goes.
#[derive(Debug, Clone, Copy)]
pub struct StageMeans {
    /// The means that are taken, at most.
    pub means: u64,
    /// Whether it is exactly so many.
    pub is_exact: bool,
    /// Values of the model.
    pub parameters: usize,
    /// Whether another stage follows, which trainers get the chosen model for.
    pub hands_on: bool,
}

impl StageMeans {
    /// Of a stage whose trainers have epochs of so many steps; a time is divided by a time, steps by steps. Where one is
    /// a time and the other is not, nobody knows.
    pub fn of(plan: &TrainersPlan, of_epoch: &[u64], parameters: usize, hands_on: bool) -> Option<StageMeans> {
        let means = of_epoch.iter().map(|&steps| plan.means(steps)).collect::<Option<Vec<_>>>()?;
        let (means, is_exact) = means.into_iter().min()?;
        Some(StageMeans { means, is_exact, parameters, hands_on })
    }
}

/// Enters what the aggregator, of rank 0, and the trainers behind it send in a stage; `report` are the bytes of a
/// trainer's closing report. Counts repeat: a round of the ledger is a mean.
pub fn forecast_stage(stage: &StageMeans, trainers: usize, report: usize, ledgers: &mut [Ledger]) {
    let model: Model = vec![0.0f32; stage.parameters].into();
    let (aggregator, others) = ledgers.split_first_mut().expect("the aggregator has a ledger");
    let enter = |ledger: &mut Ledger, frames: Vec<(Tag, usize)>, peer: usize| {
        for (tag, payload) in frames {
            ledger.record_count(tag, Rank(peer as u32), Count::of(1, payload as u64));
        }
    };
    let number = |mean: u64| u32::try_from(mean).unwrap_or(u32::MAX);
    for (trainer, ledger) in others.iter_mut().enumerate().take(trainers) {
        let peer = trainer + 1;
        let came = FromTrainer::Came { steps_of_epoch: 1, rows: 0.0 };
        enter(ledger, sizes_from_trainer(&came, report), 0);
        enter(aggregator, sizes_to_trainer(&ToTrainer::Go { number: 0, model: None }), peer);
        for mean in 1..=stage.means {
            let answer = FromTrainer::Model { number: number(mean), steps: 0, loss: 0.0, model: model.clone() };
            enter(ledger, sizes_from_trainer(&answer, report), 0);
            if !stage.is_exact {
                enter(aggregator, sizes_to_trainer(&ToTrainer::Call { number: number(mean) }), peer);
            }
            if mean < stage.means {
                let go = ToTrainer::Go { number: number(mean), model: Some(model.clone()) };
                enter(aggregator, sizes_to_trainer(&go), peer);
            }
        }
        let chosen = stage.hands_on.then(|| model.clone());
        enter(aggregator, sizes_to_trainer(&ToTrainer::End { chosen }), peer);
        enter(ledger, sizes_from_trainer(&FromTrainer::Bye, report), 0);
    }
}
