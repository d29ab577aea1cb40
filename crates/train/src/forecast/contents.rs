//! What frames carry, in the words of somebody who has to say what leaves a site.

use laconic_wire::{Content, Count, DenyList, Direction, FramePurpose, Kind, Rank, Tag};

use crate::config::Config;
use crate::error::Result;
use crate::plan::{Plan, TaskKind};
use crate::schedule::Stage;

/// What frames carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The ids of foreign nodes that a worker's edges come from.
    Questions,
    /// Digests of the ids of a peer's nodes that a worker's edges come from, and of those that the peer may need.
    Digests,
    /// Which of a peer's nodes a worker's edges come from, where the peer cannot know it, or training alone sees fewer.
    Lists,
    /// Which of the ids that were asked for a worker has.
    Answers,
    /// The ids of foreign nodes at the ends of pairs, and which of them a worker has.
    Ends {
        /// Whether evaluations alone need them.
        evaluates: bool,
    },
    /// Pairs of nodes that may be edges of others', and which of those that others ask for are edges.
    Pairs {
        /// Whether evaluations alone need them.
        evaluates: bool,
    },
    /// Rows of own nodes.
    Rows {
        /// What they are.
        of: Content,
        /// Whether they cross times the weights of the layer that reads them.
        is_weighted: bool,
        /// Whether evaluations alone see them.
        evaluates: bool,
    },
    /// What is told once of nodes, for a model's inputs.
    Input(Content),
    /// Gradients of the loss by the rows of the other's nodes.
    RowGradients,
    /// Gradients of parameters, summed over own training nodes.
    ParameterGradients,
    /// The same, those of matrices as two factors, one after the other.
    GradientFactors,
    /// Sums over own training nodes that a regression is solved from.
    GramMatrices,
    /// How far a worker's copy of the model has moved.
    Models,
    /// The same, and how the mean of its gradients has changed.
    CorrectedModels,
    /// A trainer's model, as its steps have left it.
    TrainerModels,
    /// Means of trainers' models.
    Means,
    /// The same to whoever evaluates them.
    EvaluatedMeans,
    /// What trainers and their aggregator say besides: that they come, how many steps, when they are called.
    TrainerWords,
    /// Means and variances of the columns of hidden rows, over own nodes, and sums of their gradients.
    Statistics,
    /// By how much class scores miss the labels of training nodes, summed.
    Errors,
    /// Counts and summed losses.
    Figures,
    /// Counts of scores in bins.
    Bins,
    /// Every labelled node's scores with their truth.
    Scored,
    /// How many training nodes each class has.
    ClassCounts,
    /// Figures of own nodes alone, and counts of which classes they were taken for.
    PartCounts,
    /// Nodes whose in-neighbours batches read, and what was drawn of them.
    Draws,
    /// What the assigner of bits asks for and says.
    Assignment,
    /// Whether a worker's copy of the model has moved far since the last mean.
    Drift,
    /// Digests, counts, reports.
    Agreement,
}

/// One thing that leaves in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// What is in the frames.
    pub what: What,
    /// The layer that reads rows, 0 for all else.
    pub layer: u16,
    /// Numbers in a row, 0 where there are none.
    pub width: usize,
    /// Whether other rows are drawn in each round.
    pub is_drawn: bool,
    /// Whether workers meet for evaluations alone when they send it, whatever it is.
    pub evaluates: bool,
}

impl Leaving {
    /// The tag of what this list denies of it.
    pub fn denied_by(&self, list: &DenyList) -> Option<Tag> {
        let tag = self.item.tag(self.item.purpose());
        list.denies(tag.content, tag.purpose).then_some(tag)
    }

    /// The kind that the ledger counts it as.
    pub fn kind(&self) -> Kind {
        self.item.tag(self.item.purpose()).kind()
    }
}

impl From<What> for Item {
    fn from(what: What) -> Item {
        Item { what, layer: 0, width: 0, is_drawn: false, evaluates: false }
    }
}

/// What leaves a worker towards another, of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// What it is.
    pub item: Item,
    /// Whom it goes to.
    pub to: Rank,
    /// How many nodes it is about, at most; 0 where it is about none.
    pub nodes: usize,
    /// Frames and bytes of the whole run.
    pub count: Count,
}

impl Item {
    /// Of a stage's exchange: `number` is the stage's, `width` that of a row.
    pub fn of_exchange(plan: &Plan, number: usize, tag: Tag, width: usize) -> Item {
        let stage: &Stage = &plan.stages[number];
        let index = usize::from(tag.layer - stage.first_layer);
        let layer = stage.network.units()[index].layer.as_ref();
        let late = stage.late.is_some_and(|late| late.carries.rows_of(layer)) && !tag.evaluates();
        // What is frozen crosses as rows in any case.
        let frozen = index == 0 && stage.freezes();
        let is_weighted = !layer.facts().message_is_row && !late && !frozen;
        let what = match tag.direction {
            Direction::Reverse => What::RowGradients,
            Direction::Forward => What::Rows { of: tag.content, is_weighted, evaluates: tag.evaluates() },
        };
        Item { what, layer: tag.layer, width, is_drawn: false, evaluates: false }
    }

    /// What it is for.
    pub fn purpose(&self) -> FramePurpose {
        if self.evaluates { FramePurpose::Evaluation } else { self.what.purpose() }
    }

    /// The tag of what leaves without one of its own, of round 0.
    fn tag(&self, purpose: FramePurpose) -> Tag {
        let direction = if self.what == What::RowGradients { Direction::Reverse } else { Direction::Forward };
        Tag { content: self.what.content(), purpose, direction, layer: self.layer, round: 0, step: 0 }
    }

    /// What it is, of so many nodes, where this is learned.
    pub fn words(&self, nodes: usize, task: &TaskKind) -> String {
        let words = self.words_of_itself(nodes, task);
        match self.evaluates && !words.starts_with(FOR_EVALUATIONS) {
            true => format!("{FOR_EVALUATIONS}{words}"),
            false => words,
        }
    }

    fn words_of_itself(&self, nodes: usize, task: &TaskKind) -> String {
        let Item { what, layer, width, is_drawn, .. } = *self;
        let nodes = thousands(nodes);
        let sample = if is_drawn { "in each round another sample of " } else { "" };
        match what {
            What::Questions => format!("ids of the {nodes} foreign nodes that its edges come from"),
            What::Digests => {
                format!("a digest of the ids of the {nodes} of the other's nodes that its edges come from")
            }
            What::Lists => format!("which of the other's nodes its edges come from: {nodes}"),
            What::Answers => format!("which of the ids that it was asked for it has: {nodes}"),
            What::Ends { evaluates } => format!("{}{ENDS}: {nodes}", purpose(evaluates)),
            What::Pairs { evaluates } => format!("{}{PAIRS}", purpose(evaluates)),
            What::Rows { of, is_weighted, evaluates } => {
                let weights = if is_weighted { ", times the layer's weights" } else { "" };
                let each = format!("{width} {} each, for layer {layer}", numbers(width));
                format!("{}{of} of {sample}{nodes} of its nodes{weights}, {each}", purpose(evaluates))
            }
            What::Input(of) => format!("once, {of} of {nodes} of its nodes, which the model reads"),
            What::RowGradients => {
                let width = format!("{width} {} each, from layer {layer}", numbers(width));
                format!("gradients of the loss by rows of {sample}{nodes} of the other's nodes, {width}")
            }
            What::ParameterGradients => format!("gradients of the model, summed over its training {}", task.words.noun),
            What::GradientFactors => format!(
                "gradients of the model, summed over its training {}: of matrices their products with few directions \
                 that all workers share",
                task.words.noun
            ),
            What::GramMatrices => {
                "sums over its training nodes: of products of the columns that the model reads, and of these by class"
                    .to_owned()
            }
            What::Models => "how far its copy of the model has moved".to_owned(),
            What::CorrectedModels => {
                "how far its copy of the model has moved, and how the mean of its gradients has changed".to_owned()
            }
            What::TrainerModels => "its model for each mean, as its own steps have left it".to_owned(),
            What::Means => "means of the trainers' models, and the chosen one to go on from".to_owned(),
            What::EvaluatedMeans => "for evaluations: means of the trainers' models".to_owned(),
            What::TrainerWords => "that it is there, calls, counts of its training nodes and steps".to_owned(),
            What::Statistics => {
                "means and variances of the columns of hidden rows over its nodes, and sums of gradients by them"
                    .to_owned()
            }
            What::Errors => "by how much class scores miss the labels of its training nodes, one sum".to_owned(),
            What::Figures => task.words.figures.to_owned(),
            What::Bins => "for evaluations: how many of its scores lie in each bin, by their truth".to_owned(),
            What::Scored => (task.words.scored)(&nodes),
            What::ClassCounts => "how many of its training nodes each class has".to_owned(),
            What::PartCounts => task.words.parts.to_owned(),
            What::Draws => {
                "in each epoch ids of nodes that its batches reach, and the neighbours drawn of its own".to_owned()
            }
            What::Assignment => "how much its rows vary and count for, and the bits of messages".to_owned(),
            What::Drift => "whether its copy of the model has moved far since the last mean".to_owned(),
            What::Agreement => "digests of what it runs, counts of nodes and bytes, a closing report".to_owned(),
        }
    }
}

impl What {
    /// A name for machines.
    pub fn name(self) -> String {
        let name = match self {
            What::Questions => "ids asked",
            What::Digests => "digests of ids",
            What::Lists => "rows needed",
            What::Answers => "ids answered",
            What::Ends { .. } => "ids of ends",
            What::Pairs { .. } => "pairs",
            What::Rows { of, .. } | What::Input(of) => of.name(),
            What::RowGradients => "gradients of rows",
            What::ParameterGradients | What::GradientFactors => "gradients of parameters",
            What::GramMatrices => "gram matrices",
            What::Models | What::CorrectedModels | What::TrainerModels => "models",
            What::Means | What::EvaluatedMeans => "models",
            What::Statistics => "statistics",
            What::Errors => "summed errors",
            What::Figures => "figures",
            What::Bins => "score bins",
            What::Scored => "scores and labels",
            What::ClassCounts => "class counts",
            What::PartCounts => "part figures",
            What::Draws => "draws",
            What::Assignment => "assignment",
            What::Drift | What::Agreement | What::TrainerWords => "agreement",
        };
        name.replace(' ', "_")
    }

    /// What its frames hold.
    pub fn content(self) -> Content {
        match self {
            What::Questions | What::Digests | What::Lists | What::Answers | What::Ends { .. } => Content::Ids,
            What::Pairs { .. } => Content::Pairs,
            What::Rows { of, .. } | What::Input(of) => of,
            What::RowGradients => Content::RowGradients,
            What::ParameterGradients | What::GradientFactors => Content::ParameterGradients,
            What::GramMatrices => Content::GramMatrices,
            What::Models | What::CorrectedModels | What::TrainerModels => Content::Models,
            What::Means | What::EvaluatedMeans => Content::Models,
            What::Statistics => Content::Statistics,
            What::Errors | What::Figures => Content::Figures,
            What::Bins => Content::ScoreBins,
            What::Scored => Content::LabelledScores,
            What::ClassCounts => Content::ClassCounts,
            What::PartCounts => Content::PartFigures,
            What::Draws => Content::Neighbours,
            What::Assignment => Content::Widths,
            What::Drift | What::Agreement | What::TrainerWords => Content::Agreement,
        }
    }

    /// What it is for.
    pub fn purpose(self) -> FramePurpose {
        match self {
            What::Questions | What::Digests | What::Lists | What::Answers => FramePurpose::StartUp,
            What::ClassCounts => FramePurpose::StartUp,
            What::PartCounts => FramePurpose::Evaluation,
            what if what.evaluates() => FramePurpose::Evaluation,
            _ => FramePurpose::Training,
        }
    }

    /// Whether evaluations alone need it.
    pub fn evaluates(self) -> bool {
        match self {
            What::Rows { evaluates, .. } | What::Ends { evaluates } | What::Pairs { evaluates } => evaluates,
            what => matches!(what, What::Figures | What::Bins | What::Scored | What::EvaluatedMeans),
        }
    }
}

/// The first of what leaves that the configuration denies: whom it goes to, and its tag.
///
/// # Errors
/// If the configuration denies what there is not.
pub fn denied(config: &Config, leaves: &[Leaving]) -> Result<Option<(Rank, Tag)>> {
    let Some(list) = config.policy.list()? else { return Ok(None) };
    Ok(leaves.iter().find_map(|leaving| Some((leaving.to, leaving.denied_by(&list)?))))
}

/// What a kind of the ledger holds, where this is learned.
pub fn kind_words(kind: Kind, task: &TaskKind) -> &'static str {
    match kind {
        Kind::Features => "features of nodes that others have edges from",
        Kind::Activations => task.words.rows,
        Kind::ActivationGradients => "gradients of the loss by rows that came from others, back to their owners",
        Kind::ParameterGradients => task.words.gradients,
        Kind::Parameters => "how far copies of the model have moved, or a checkpoint",
        Kind::Evaluation => "rows for evaluations, and what figures are computed from",
        Kind::Control => "ids of foreign nodes, digests, counts, reports",
        Kind::Draws => task.words.draws,
        Kind::Widths => "how much rows vary and count for, and the bits that messages get",
    }
}

const FOR_EVALUATIONS: &str = "for evaluations: ";
const ENDS: &str = "ids of foreign nodes at the ends of its pairs, and its own at others'";
const PAIRS: &str = "ids of both ends of pairs that it draws, and which of others' pairs are edges";

/// What stands before what evaluations alone need.
fn purpose(evaluates: bool) -> &'static str {
    if evaluates { FOR_EVALUATIONS } else { "" }
}

fn numbers(count: usize) -> &'static str {
    if count == 1 { "number" } else { "numbers" }
}

/// A number with a comma between thousands.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
