//! What a stage begins with where training labels pass along edges: rows of numbers a class, made before its rounds.
//!
//! Each step replaces the rows by `alpha · S · rows + (1 − alpha) · start`, with S the adjacency matrix divided by the
//! roots of both degrees: one halo exchange, whose layer in tags and accounts is the step's number behind the layers of
//! the model. All that crosses is made of labels of nodes that train, and so leaves only with leave.

use laconic_wire::Content;

use crate::config::{Config, Normalise};

/// What passes along edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagated {
    /// Labels of training nodes, alone.
    Labels,
    /// By how much the class scores of a model miss them, and then the corrected scores, with labels of training nodes
    /// in place of theirs.
    Scores,
}

impl Propagated {
    /// What frames hold that leave only with leave.
    pub fn contents(self) -> &'static [Content] {
        match self {
            Propagated::Labels => &[Content::TrainingLabels, Content::PropagatedLabels],
            Propagated::Scores => &[Content::PropagatedLabels],
        }
    }
}

/// The steps along edges that a stage begins with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Propagation {
    /// What passes along edges.
    pub of: Propagated,
    /// Steps of each of it.
    pub steps: u16,
    /// What neighbours count for in a step.
    pub alpha: f32,
    /// What sums over neighbours are divided by.
    pub normalise: Normalise,
}

impl Propagation {
    /// That of a checked configuration.
    pub fn of(of: Propagated, config: &Config) -> Propagation {
        let schedule = &config.schedule;
        Propagation { of, steps: schedule.steps, alpha: schedule.alpha, normalise: schedule.normalise }
    }

    /// How often rows of a number a class cross. The first step of labels has these themselves, in a few bits each.
    pub fn exchanges(&self) -> u16 {
        match self.of {
            Propagated::Labels => self.steps.saturating_sub(1),
            Propagated::Scores => 2 * self.steps,
        }
    }
}
