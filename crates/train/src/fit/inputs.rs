//! What a stage trains on: rows that do not change, and what is known of their neighbours.

use laconic_nn::Operand;

use super::propagated;
use crate::config::ramp::Reading;
use crate::error::Result;
use crate::pass::inputs::Inputs;
use crate::pass::reveal::Reveal;
use crate::schedule::Stage;
use crate::worker::{Handed, Worker};

/// What a stage trains on.
pub struct StageInputs {
    /// Frozen rows with what is known of their neighbours now.
    pub inputs: Inputs,
    /// What is still to be revealed of them.
    pub reveal: Option<Reveal>,
    /// Inputs of evaluations, if they are others.
    pub eval_inputs: Option<Inputs>,
}

/// Whether folds of frozen inputs for evaluations in pieces are made in every one of them rather than kept: where
/// training is in batches for its memory's sake, and nobody has to be asked for rows. Folds of sparse rows are sparse
/// where they are kept, and small.
pub fn folds_in_pieces(worker: &Worker, x: &Operand) -> bool {
    worker.plan.batching.is_some() && worker.size() == 1 && !matches!(x, Operand::Sparse(_))
}

impl StageInputs {
    /// Inputs that are the same in training and evaluation, all of them here.
    pub fn of(inputs: Inputs) -> StageInputs {
        StageInputs { inputs, reveal: None, eval_inputs: None }
    }

    /// Makes of the rows that the worker has for its next stage what that trains on, and fetches the rest, or the first
    /// bit of it.
    ///
    /// # Errors
    /// If another worker does not answer, or no rows were handed on.
    pub fn fetch(worker: &mut Worker, stage: &Stage, rounds_before: u32) -> Result<StageInputs> {
        let layer = stage.first();
        let precision = worker.plan.precision();
        let handed = match stage.propagation {
            Some(propagation) => propagated::rows(worker, stage, propagation, rounds_before)?,
            None => worker.take_handed()?,
        };
        let Handed { training: x, evaluation } = handed.stored(precision);
        if layer.facts().message_width > 0 && !stage.freezes() {
            let (inputs, eval_inputs) = (Inputs::unfolded(x), evaluation.map(Inputs::unfolded));
            return Ok(StageInputs { inputs, reveal: None, eval_inputs });
        }
        let plan = worker.plan.clone();
        if folds_in_pieces(worker, &x) && plan.reads_own_inputs(stage) {
            return Ok(StageInputs { inputs: Inputs::unfolded(x), reveal: None, eval_inputs: None });
        }
        if plan.reads_own_inputs(stage) {
            // Rounds read own rows, and others' as they come; only evaluations read all neighbours.
            let (mut peers, graph) = worker.split_whole();
            let at = (stage.evaluation_input_tag(rounds_before), plan.evaluation);
            let inputs = Inputs::freeze(&mut peers, graph, layer, x, at)?;
            return Ok(StageInputs { inputs, reveal: None, eval_inputs: None });
        }
        let evaluation = evaluation.or_else(|| plan.evaluates_apart(stage).then(|| x.clone()));
        let eval_inputs = match evaluation {
            Some(x) => {
                let (mut peers, graph) = worker.split_whole();
                let at = (stage.evaluation_input_tag(rounds_before), plan.evaluation);
                Some(Inputs::freeze(&mut peers, graph, layer, x, at)?)
            }
            None => None,
        };
        let (tag, scope) = (stage.input_tag(rounds_before), plan.frozen_scope(stage));
        let (mut peers, graph) = worker.split();
        if plan.reveals(stage) {
            let mut reveal = Reveal::new(&mut peers, layer, &graph.nodes, &x, (tag, scope))?;
            let inputs = reveal.inputs(peers.compute, graph, layer, x);
            return Ok(StageInputs { inputs, reveal: Some(reveal), eval_inputs });
        }
        peers.halo.coders.turn(Reading { rounds: stage.span, ..Reading::default() });
        let inputs = match plan.keeps_halo_apart(stage) {
            true => Inputs::copy(&mut peers, graph, layer, x, (tag, scope))?,
            false => Inputs::freeze(&mut peers, graph, layer, x, (tag, scope))?,
        };
        Ok(StageInputs { inputs, reveal: None, eval_inputs })
    }
}
