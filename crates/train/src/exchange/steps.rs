//! Every control frame there is: what workers tell each other besides rows, gradients and parameters.
//!
//! A step has a number of its own in its frames, so that no two can be mistaken for one another.

use laconic_wire::{Content, Direction, FramePurpose, Tag};

/// A control frame's purpose. The numbers are part of the wire format: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Step {
    /// The ids that each worker needs of others.
    Questions = 0,
    /// Which of them each worker owns.
    Answers = 1,
    /// Rows of each split, summed over workers.
    SplitRows = 2,
    /// Predicted bytes by kind, summed over workers.
    PredictedBytes = 3,
    /// Bytes sent so far by kind, summed over workers for a checkpoint.
    SentBytes = 4,
    /// The closing report of each worker, to worker 0.
    Report = 5,
    /// Predicted bytes of every rung of a budget's ladder, summed over workers.
    Rungs = 6,
    /// The ids that training needs of others, where it sees training nodes alone.
    TrainingQuestions = 7,
    /// Which of them are training nodes of each worker.
    TrainingAnswers = 8,
    /// Digests of what each worker runs, and of its part.
    Digests = 9,
    /// What each worker runs, where digests differ.
    Identities = 10,
    /// The shapes of every worker, where a controller follows the bytes of all of them.
    Shapes = 11,
    /// What each row counts for at its receivers, for the assigner of bit-widths.
    Weights = 16,
    /// The variance that each message would have, for the assigner.
    Variances = 17,
    /// The widths that the assigner chose.
    WidthMaps = 18,
    /// Frames that measure a link.
    Profile = 19,
    /// What all links cost, as measured.
    LinkCosts = 20,
    /// What the gradients of each row count for at its owner, for the assigner.
    OwnWeights = 21,
    /// Training nodes of each class, summed over workers.
    ClassCounts = 22,
    /// The ids of foreign nodes that a round's pairs have.
    PairQuestions = 23,
    /// Which of them each worker owns.
    PairAnswers = 24,
    /// The same for the pairs that evaluations look at.
    JudgedQuestions = 25,
    /// Which of those each worker owns.
    JudgedAnswers = 26,
    /// Edges and pairs that are none of a round, summed over workers.
    PairCounts = 27,
    /// Nodes of others whose in-neighbours a window of batches reads.
    DrawQuestions = 28,
    /// The in-neighbours that were drawn for them.
    DrawAnswers = 29,
    /// Nodes of others whose rows a window of batches reads.
    RowQuestions = 30,
    /// The degrees of those that nobody had told.
    RowAnswers = 31,
    /// Nodes of others that a window of batches reads, where batches go without some edges.
    DegreeQuestions = 32,
    /// What is left of the degrees of those that have fewer in-edges for it.
    DegreeAnswers = 33,
    /// Pairs of a round that may be edges.
    EdgeQuestions = 34,
    /// Which of them are edges of each worker.
    EdgeAnswers = 35,
    /// The same for the pairs that evaluations look at.
    JudgedEdgeQuestions = 36,
    /// Which of those are edges of each worker.
    JudgedEdgeAnswers = 37,
    /// A trainer is here, to its aggregator.
    TrainerComes = 38,
    /// A trainer's model for a mean comes behind it.
    TrainerAnswers = 39,
    /// A trainer's closing report.
    TrainerLeaves = 40,
    /// A trainer goes on from a mean, which comes behind it unless it is the initial model.
    TrainerGoes = 41,
    /// A trainer is to send its model.
    TrainerCalled = 42,
    /// A trainer has done its work; the chosen model comes behind it where another stage follows.
    TrainerDismissed = 43,
    /// How many held-out edges have few pairs to be ranked among, and how few.
    JudgedLeft = 44,
    /// What each part comes to under the best model so far, to worker 0.
    PartCounts = 45,
    /// A mean of trainers' models, to the workers that evaluate it.
    EvaluatedMean = 46,
    /// A stage of trainers is over, to the workers that evaluate its means.
    EvaluationEnds = 47,
    /// What each worker knows of its own part before independent trainers start.
    TrainerFacts = 48,
    /// What a trainer has sent to others than the aggregator, at the end.
    TrainerSent = 49,
    /// By how much class scores miss labels of training nodes, summed over workers. 50 and 51 are labels that are told.
    Errors = 52,
    /// The rows of each owner that a worker needs, where the owner does not know them.
    Lists = 53,
    /// How many workers' models have moved far since the last mean.
    Drift = 54,
    /// A digest of the edges between two workers, where sums may stand for rows.
    Cuts = 55,
}

impl Step {
    /// The tag of this step in a round; round 0 is start-up.
    pub fn tag(self, round: u32) -> Tag {
        let (content, purpose) = self.about();
        Tag { content, purpose, direction: Direction::Forward, layer: 0, round, step: self as u16 }
    }

    /// What its frames hold, and what for. What comes with every round that draws is a cost of training and not of the
    /// start, and what the assigner says one of the messages that it makes smaller.
    fn about(self) -> (Content, FramePurpose) {
        use FramePurpose::{Evaluation, StartUp, Training};
        match self {
            Step::Questions | Step::Answers | Step::Lists | Step::Cuts => (Content::Ids, StartUp),
            Step::TrainingQuestions | Step::TrainingAnswers => (Content::Ids, StartUp),
            Step::JudgedQuestions | Step::JudgedAnswers => (Content::Ids, Evaluation),
            Step::PairQuestions | Step::PairAnswers => (Content::Ids, Training),
            Step::EdgeQuestions | Step::EdgeAnswers => (Content::Pairs, Training),
            Step::JudgedEdgeQuestions | Step::JudgedEdgeAnswers | Step::JudgedLeft => (Content::Pairs, Evaluation),
            Step::DrawQuestions | Step::DrawAnswers | Step::RowQuestions => (Content::Neighbours, Training),
            Step::RowAnswers | Step::DegreeQuestions | Step::DegreeAnswers => (Content::Neighbours, Training),
            Step::ClassCounts => (Content::ClassCounts, StartUp),
            Step::Errors => (Content::Figures, Training),
            Step::PartCounts => (Content::PartFigures, Evaluation),
            Step::EvaluatedMean | Step::EvaluationEnds => (Content::Models, Evaluation),
            Step::Weights | Step::OwnWeights | Step::Variances => (Content::Widths, Training),
            Step::WidthMaps | Step::Profile | Step::LinkCosts => (Content::Widths, Training),
            Step::SplitRows | Step::PredictedBytes | Step::Rungs => (Content::Agreement, StartUp),
            Step::Digests | Step::Identities | Step::Shapes | Step::TrainerFacts => (Content::Agreement, StartUp),
            Step::SentBytes | Step::Report | Step::PairCounts | Step::Drift => (Content::Agreement, Training),
            Step::TrainerComes | Step::TrainerAnswers | Step::TrainerLeaves | Step::TrainerSent => {
                (Content::Agreement, Training)
            }
            Step::TrainerGoes | Step::TrainerCalled | Step::TrainerDismissed => (Content::Agreement, Training),
        }
    }

    /// The tag of the step's frames about exchange `number` of a round. Layers tell exchanges of one round apart;
    /// frames of one stream keep their order.
    pub fn of_exchange(self, round: u32, number: usize) -> Tag {
        Tag { layer: number as u16, ..self.tag(round) }
    }
}

/// What a worker that sends no frame of start-up with this tag has not done yet.
pub fn missing_at_start(tag: Tag) -> &'static str {
    match tag.step {
        _ if tag.content == Content::Models => "it has not handed the checkpoint round yet",
        step if step == Step::Digests as u16 => "it may still be reading or cutting its data",
        step if step == Step::Identities as u16 => "it has not said yet what it runs",
        step if step == Step::Questions as u16 => "it has not said yet which nodes it needs",
        step if step == Step::Lists as u16 => "it has not said yet which rows it needs",
        step if step == Step::Cuts as u16 => "it has not said yet which edges it has in common with others",
        step if step == Step::Answers as u16 => "it has not answered yet which nodes it has",
        step if step == Step::ClassCounts as u16 => "it has not counted its classes yet",
        step if step == Step::SplitRows as u16 => "it has not counted its rows yet",
        _ => "it has not predicted its traffic yet",
    }
}

/// The tag of the checkpoint that worker 0 hands round when a run is resumed.
pub fn checkpoint_tag() -> Tag {
    let (content, purpose) = (Content::Models, FramePurpose::StartUp);
    Tag { content, purpose, direction: Direction::Forward, layer: 0, round: 0, step: 0 }
}
