//! The account of a run: who has to hold the whole graph, who sees what of others' nodes, and how often somebody waits.

use laconic_wire::{Content, PerKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::purposes::Purposes;

/// `account`: what a run takes besides bytes. Foreseen from what will cross, before it runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Account {
    /// Who has to hold the whole graph: `nobody`, `aggregator` or (one part) `worker`.
    pub holds_graph: Party,
    /// Who sees labels of others' nodes, or what is made of them: `nobody`, `peers`, `aggregator`, `everybody` or
    /// `worker`, as in the next three. Who holds the whole graph sees all of labels, features and scores.
    pub saw_labels: Party,
    /// (`policy.label_epsilon`) Epsilon of all that is told of a node's label, where random answers stand for labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_epsilon: Option<f64>,
    /// Who sees features of others' nodes, in however few bits.
    pub saw_features: Party,
    /// Who sees rows that a model has made of others' nodes, or gradients by rows: class scores, hidden rows.
    pub saw_scores: Party,
    /// Who sees models of single others, gradients of their parameters, or the sums that a regression is solved from.
    /// Means of models, which every trainer goes on from, are in `seen` alone.
    pub saw_models: Party,
    /// What each of the four sees, content by content.
    pub seen: Vec<Sight>,
    /// Rounds over all stages; of independent trainers means, and null where nobody knows how many.
    pub rounds: Option<u64>,
    /// How often somebody waits for frames, one wait after the other; null as `rounds` is.
    pub round_trips: Option<RoundTrips>,
}

/// Who it is, of those whom a run brings together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// Nobody but the owner.
    #[default]
    Nobody,
    /// Other workers, or trainers.
    Peers,
    /// The aggregator of independent trainers alone.
    Aggregator,
    /// Other trainers, and their aggregator.
    Everybody,
    /// The one worker that there is.
    Worker,
}

/// `account.seen`: a content that is seen, in the words of `policy.deny`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sight {
    /// Which of the four it belongs to: `labels`, `features`, `scores` or `models`.
    pub of: Subject,
    /// What it is: a content, `means` of models, or `whole_graph`.
    pub what: String,
    /// Who sees it.
    pub by: Party,
    /// Whether evaluations alone need it.
    pub for_evaluations: bool,
}

/// `account.round_trips`: waits for frames of other workers, one after the other. Each takes a latency of the link. An
/// exchange in which all send at once is one, an all-reduce is two, a mean of an aggregator is two: there and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RoundTrips {
    /// Those of training: for rows, gradients and models.
    pub training: u64,
    /// Those of evaluations.
    pub evaluation: u64,
    /// Those before the first round, for checkpoints, and for the closing report.
    pub start_up: u64,
}

/// What one of the four columns is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Labels, and what is made of them.
    Labels,
    /// Features.
    Features,
    /// Rows that a model has made.
    Scores,
    /// Models and their gradients.
    Models,
}

impl Subject {
    /// Every one, in the order of columns.
    pub const ALL: [Subject; 4] = [Subject::Labels, Subject::Features, Subject::Scores, Subject::Models];

    /// What frames of a content tell whoever gets them of single nodes, or of single workers' models. Counts and sums
    /// over nodes tell of no single one, and ids of none of the four.
    pub fn of(content: Content) -> &'static [Subject] {
        match content {
            Content::TrainingLabels | Content::LabelCodewords | Content::PropagatedLabels => &[Subject::Labels],
            Content::LabelledScores => &[Subject::Labels, Subject::Scores],
            Content::Features => &[Subject::Features],
            Content::HiddenRows | Content::Scores | Content::LearnedColumns => &[Subject::Scores],
            Content::Embeddings | Content::RowGradients => &[Subject::Scores],
            Content::ParameterGradients | Content::GramMatrices | Content::Models => &[Subject::Models],
            Content::Statistics | Content::Figures | Content::ClassCounts | Content::ScoreBins => &[],
            Content::PartFigures | Content::Ids | Content::Pairs | Content::Neighbours => &[],
            Content::Widths | Content::Agreement | Content::Refusal => &[],
        }
    }
}

/// What models are called that are sums over trainers.
pub const MEANS: &str = "means";

/// What is seen by whoever holds all.
const WHOLE_GRAPH: &str = "whole_graph";

impl Account {
    /// An account of who holds the whole graph, and has seen all of it; the rest is entered.
    pub fn held_by(holder: Party) -> Account {
        let mut account = Account { holds_graph: holder, ..Account::default() };
        if holder != Party::Nobody {
            for subject in [Subject::Labels, Subject::Features, Subject::Scores] {
                account.enter(Sight { of: subject, what: WHOLE_GRAPH.to_owned(), by: holder, for_evaluations: false });
            }
        }
        account
    }

    /// Enters what is seen.
    pub fn enter(&mut self, sight: Sight) {
        let party = match sight.of {
            Subject::Labels => &mut self.saw_labels,
            Subject::Features => &mut self.saw_features,
            Subject::Scores => &mut self.saw_scores,
            Subject::Models => &mut self.saw_models,
        };
        if sight.what != MEANS {
            *party = party.and(sight.by);
        }
        match self.seen.iter_mut().find(|known| (known.of, &known.what) == (sight.of, &sight.what)) {
            Some(known) => {
                known.by = known.by.and(sight.by);
                known.for_evaluations &= sight.for_evaluations;
            }
            None => self.seen.push(sight),
        }
    }

    /// Who sees each of the four, in the order of columns.
    pub fn saw(&self) -> [Party; 4] {
        [self.saw_labels, self.saw_features, self.saw_scores, self.saw_models]
    }

    /// The whole graph and the four in a letter each: a capital where other workers have it, a small one where the
    /// aggregator alone has, a dot where nobody has.
    pub fn letters(&self) -> String {
        let [labels, features, scores, models] = self.saw();
        let parties = [('g', self.holds_graph), ('l', labels), ('f', features), ('s', scores), ('m', models)];
        let letter = |(letter, party): (char, Party)| match party {
            Party::Nobody => '.',
            Party::Aggregator => letter,
            Party::Peers | Party::Everybody | Party::Worker => letter.to_ascii_uppercase(),
        };
        parties.map(letter).iter().collect()
    }
}

/// What [`Account::letters`] mean.
pub const LETTERS: &str = "who saw, of others: G the whole graph, L labels, F features, S rows that a model has made, \
                           M single models; capitals: other workers, small letters: the aggregator alone";

/// What the number beside them means.
pub const TRIPS: &str = "trips: waits for frames in training, one after the other; start-up and evaluations apart";

impl Party {
    /// Whoever one or the other is.
    #[must_use]
    pub fn and(self, other: Party) -> Party {
        match (self, other) {
            (Party::Nobody, party) | (party, Party::Nobody) => party,
            (one, other) if one == other => one,
            _ => Party::Everybody,
        }
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Party::Nobody => "nobody",
            Party::Peers => "peers",
            Party::Aggregator => "aggregator",
            Party::Everybody => "everybody",
            Party::Worker => "worker",
        }
    }
}

impl RoundTrips {
    /// By what waits are for, as bytes are.
    pub fn of(waits: &PerKind<u64>) -> RoundTrips {
        let of = Purposes::of(waits);
        RoundTrips { training: of.boundary + of.parameters, evaluation: of.evaluation, start_up: of.start_up }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_say_who_and_means_count_for_nobody_single() {
        let mut account = Account::held_by(Party::Aggregator);
        let sight = |of, what: &str, by| Sight { of, what: what.to_owned(), by, for_evaluations: false };
        account.enter(sight(Subject::Models, "models", Party::Aggregator));
        account.enter(sight(Subject::Models, MEANS, Party::Peers));
        assert_eq!((account.letters().as_str(), account.saw_models), ("glfsm", Party::Aggregator));
        account.enter(sight(Subject::Features, "features", Party::Peers));
        assert_eq!((account.letters().as_str(), account.saw_features), ("glFsm", Party::Everybody));
        assert_eq!(Account::default().letters(), ".....");
        let of_models = account.seen.iter().filter(|sight| sight.of == Subject::Models);
        assert_eq!(of_models.count(), 2);
    }
}
