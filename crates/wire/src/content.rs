//! What a frame holds, what it is for and which way it goes: what a site that may not send everything has to know of
//! each, and what the ledger counts it as.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a frame's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Content {
    /// Input features of nodes, or a layer's messages made of them.
    Features = 0,
    /// Hidden rows of nodes, or a layer's messages made of them.
    HiddenRows = 1,
    /// Class scores of nodes.
    Scores = 2,
    /// Columns that a bottleneck has learned from hidden rows of nodes.
    LearnedColumns = 3,
    /// Embeddings of nodes, which a decoder of links reads.
    Embeddings = 4,
    /// Scores of labelled nodes, or of held-out edges, with their truth.
    LabelledScores = 5,
    /// Gradients of the loss by rows.
    RowGradients = 6,
    /// Gradients of the loss by parameters.
    ParameterGradients = 7,
    /// Parameters, or how far they have moved.
    Models = 8,
    /// Means and variances of columns of hidden rows, and sums of gradients by them.
    Statistics = 9,
    /// Ids of nodes.
    Ids = 10,
    /// Ids of both ends of pairs, which pairs are edges, and how many have too few.
    Pairs = 11,
    /// Ids of nodes that batches reach, and the neighbours that were drawn for them.
    Neighbours = 12,
    /// Summed losses, and counts of nodes and edges that figures are made of.
    Figures = 13,
    /// How many nodes each class has.
    ClassCounts = 14,
    /// How many scores lie in each bin, by their truth.
    ScoreBins = 15,
    /// Figures of one part alone, and which classes were taken for which there.
    PartFigures = 16,
    /// How much rows vary and count for, and the bits of messages.
    Widths = 17,
    /// Digests, bytes, times, notes: what workers have to know of each other's runs.
    Agreement = 18,
    /// That a worker's door has kept a frame back.
    Refusal = 19,
    /// Classes of nodes that are learned from.
    TrainingLabels = 20,
    /// Which of a few rows stands for what is counted from labels of a node's neighbours.
    LabelCodewords = 21,
    /// Rows of numbers a class that are made of classes of nodes that are learned from: these classes as they pass
    /// along edges, or by how much class scores miss them.
    PropagatedLabels = 22,
    /// Sums over nodes that are learned from: of products of the columns that a model reads, and of columns by class.
    GramMatrices = 23,
}

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FramePurpose {
    /// Training, and what workers say in its course.
    Training = 0,
    /// Nothing but measuring how good the model is.
    Evaluation = 1,
    /// The start of a run, before its first round.
    StartUp = 2,
}

/// The accounts of the ledger. Which one a frame counts in follows from its content and its purpose
/// ([`Content::kind`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Kind {
    /// Input features of halo nodes, and what else a model reads of them that is told once.
    Features = 0,
    /// Hidden rows of halo nodes.
    Activations = 1,
    /// Gradients of halo rows, on their way back to the owners.
    ActivationGradients = 2,
    /// Gradients of parameters, to be added up.
    ParameterGradients = 3,
    /// Parameters, to be copied or averaged.
    Parameters = 4,
    /// Whatever only measures: rows and counts of evaluation passes.
    Evaluation = 5,
    /// Plans, barriers, clocks, agreement.
    Control = 6,
    /// What the assigner of bit-widths asks, says and measures.
    Widths = 7,
    /// What workers ask and tell each other about what a round draws: neighbours of batches, ends of pairs.
    Draws = 8,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Kind; 9] = [
        Kind::Features,
        Kind::Activations,
        Kind::ActivationGradients,
        Kind::ParameterGradients,
        Kind::Parameters,
        Kind::Evaluation,
        Kind::Control,
        Kind::Widths,
        Kind::Draws,
    ];

    /// The name in files: `activation_gradients`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Features => "features",
            Kind::Activations => "activations",
            Kind::ActivationGradients => "activation_gradients",
            Kind::ParameterGradients => "parameter_gradients",
            Kind::Parameters => "parameters",
            Kind::Evaluation => "evaluation",
            Kind::Control => "control",
            Kind::Widths => "widths",
            Kind::Draws => "draws",
        }
    }
}

/// Which way a message runs through the model. Collectives run forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Direction {
    /// From owners to the holders of copies.
    Forward = 0,
    /// From the holders of copies back to the owners.
    Reverse = 1,
}

impl Direction {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
}

impl Content {
    /// Every content, in the order of their numbers.
    pub const ALL: [Content; 24] = [
        Content::Features,
        Content::HiddenRows,
        Content::Scores,
        Content::LearnedColumns,
        Content::Embeddings,
        Content::LabelledScores,
        Content::RowGradients,
        Content::ParameterGradients,
        Content::Models,
        Content::Statistics,
        Content::Ids,
        Content::Pairs,
        Content::Neighbours,
        Content::Figures,
        Content::ClassCounts,
        Content::ScoreBins,
        Content::PartFigures,
        Content::Widths,
        Content::Agreement,
        Content::Refusal,
        Content::TrainingLabels,
        Content::LabelCodewords,
        Content::PropagatedLabels,
        Content::GramMatrices,
    ];

    /// The name in files: `hidden_rows`.
    pub fn name(self) -> &'static str {
        match self {
            Content::Features => "features",
            Content::HiddenRows => "hidden_rows",
            Content::Scores => "class_scores",
            Content::LearnedColumns => "learned_columns",
            Content::Embeddings => "embeddings",
            Content::LabelledScores => "scores_and_labels",
            Content::RowGradients => "gradients_of_rows",
            Content::ParameterGradients => "gradients_of_parameters",
            Content::Models => "models",
            Content::Statistics => "statistics",
            Content::Ids => "ids",
            Content::Pairs => "pairs",
            Content::Neighbours => "draws",
            Content::Figures => "figures",
            Content::ClassCounts => "class_counts",
            Content::ScoreBins => "score_bins",
            Content::PartFigures => "part_figures",
            Content::Widths => "assignment",
            Content::Agreement => "agreement",
            Content::Refusal => "refusal",
            Content::TrainingLabels => "training_labels",
            Content::LabelCodewords => "label_codewords",
            Content::PropagatedLabels => "propagated_labels",
            Content::GramMatrices => "gram_matrices",
        }
    }

    /// The kind of the ledger that a frame of this content counts as.
    pub fn kind(self, purpose: FramePurpose, direction: Direction) -> Kind {
        let evaluates = purpose == FramePurpose::Evaluation;
        match self {
            Content::Features | Content::HiddenRows | Content::Scores | Content::LearnedColumns if evaluates => {
                Kind::Evaluation
            }
            Content::Embeddings | Content::Figures | Content::ScoreBins | Content::LabelledScores if evaluates => {
                Kind::Evaluation
            }
            Content::Features | Content::TrainingLabels | Content::LabelCodewords => Kind::Features,
            Content::HiddenRows | Content::Scores | Content::LearnedColumns | Content::Embeddings => Kind::Activations,
            Content::PropagatedLabels => Kind::Activations,
            Content::Statistics if direction == Direction::Forward => Kind::Activations,
            Content::RowGradients | Content::Statistics => Kind::ActivationGradients,
            Content::ParameterGradients | Content::GramMatrices => Kind::ParameterGradients,
            Content::Models if evaluates => Kind::Evaluation,
            Content::Models => Kind::Parameters,
            Content::Ids | Content::Pairs | Content::Neighbours if purpose == FramePurpose::Training => Kind::Draws,
            Content::Widths => Kind::Widths,
            Content::Ids | Content::Pairs | Content::Neighbours => Kind::Control,
            Content::Figures | Content::ClassCounts | Content::ScoreBins | Content::LabelledScores => Kind::Control,
            Content::PartFigures | Content::Agreement | Content::Refusal => Kind::Control,
        }
    }
}

impl FramePurpose {
    /// Every purpose, in the order of their numbers.
    pub const ALL: [FramePurpose; 3] = [FramePurpose::Training, FramePurpose::Evaluation, FramePurpose::StartUp];

    /// The name in files: `start_up`.
    pub fn name(self) -> &'static str {
        match self {
            FramePurpose::Training => "training",
            FramePurpose::Evaluation => "evaluation",
            FramePurpose::StartUp => "start_up",
        }
    }
}

impl fmt::Display for Content {
    /// In words: `hidden rows`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().replace('_', " "))
    }
}

impl fmt::Display for FramePurpose {
    /// In words: `start-up`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().replace('_', "-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_numbers_agree_everywhere() {
        for (number, content) in Content::ALL.into_iter().enumerate() {
            assert_eq!(content as usize, number);
        }
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
        for (number, purpose) in FramePurpose::ALL.into_iter().enumerate() {
            assert_eq!(purpose as usize, number);
        }
        let names: BTreeSet<&str> = Content::ALL.into_iter().map(Content::name).collect();
        assert_eq!(names.len(), Content::ALL.len());
    }

    #[test]
    fn rows_of_evaluations_count_as_evaluation_and_those_of_training_by_what_they_are() {
        use Direction::{Forward, Reverse};
        use FramePurpose::{Evaluation, StartUp, Training};
        for (content, purpose, direction, kind) in [
            (Content::Features, Training, Forward, Kind::Features),
            (Content::Features, Evaluation, Forward, Kind::Evaluation),
            (Content::Scores, Training, Forward, Kind::Activations),
            (Content::Embeddings, Evaluation, Forward, Kind::Evaluation),
            (Content::RowGradients, Training, Reverse, Kind::ActivationGradients),
            (Content::Statistics, Training, Forward, Kind::Activations),
            (Content::Statistics, Training, Reverse, Kind::ActivationGradients),
            (Content::LabelledScores, Evaluation, Forward, Kind::Evaluation),
            (Content::Ids, Training, Forward, Kind::Draws),
            (Content::Ids, Evaluation, Forward, Kind::Control),
            (Content::Ids, StartUp, Forward, Kind::Control),
            (Content::Figures, Training, Forward, Kind::Control),
            (Content::Figures, Evaluation, Forward, Kind::Evaluation),
            (Content::Models, StartUp, Forward, Kind::Parameters),
        ] {
            assert_eq!(content.kind(purpose, direction), kind, "{content:?}, {purpose:?}");
        }
    }
}
