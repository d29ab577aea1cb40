//! What frames carry, in the words of a site's policy.

use laconic_federation::Vocabulary;
use laconic_wire::{Content, DenyList, FramePurpose};

/// What a content is, in a sentence.
fn words(content: Content) -> &'static str {
    match content {
        Content::Features => "Input features of nodes, or a layer's messages made of them.",
        Content::HiddenRows => "Hidden rows of nodes, or a layer's messages made of them.",
        Content::Scores => "Class scores of nodes.",
        Content::LearnedColumns => "A few columns learned from hidden rows of nodes.",
        Content::Embeddings => "Embeddings of nodes, which a decoder of links reads.",
        Content::LabelledScores => "Scores of labelled nodes, or of held-out edges, with their truth.",
        Content::RowGradients => "Gradients of the loss by rows of nodes.",
        Content::ParameterGradients => "Gradients of the loss by parameters, summed over own training nodes.",
        Content::Models => "Parameters, or how far they have moved.",
        Content::Statistics => "Means and variances of columns of hidden rows.",
        Content::Ids => "Ids of nodes: what edges ask of the other sites, and their answers.",
        Content::Pairs => "Ids of both ends of pairs, and which pairs are edges.",
        Content::Neighbours => "Ids of nodes that batches reach, and neighbours drawn for them.",
        Content::Figures => "Summed losses, and counts that figures are made of.",
        Content::ClassCounts => "How many nodes each class has.",
        Content::ScoreBins => "How many scores lie in each bin, by their truth.",
        Content::PartFigures => "Figures of one part alone.",
        Content::Widths => "How much rows vary and count for, and the bits of messages.",
        Content::Agreement => "Digests, bytes, times, notes: what sites have to know of each other's runs.",
        Content::Refusal => "That a frame was kept back.",
        Content::TrainingLabels => "Classes of nodes that are learned from, one by one or as sums.",
        Content::LabelCodewords => "Which of a few rows stands for what is counted from neighbours' labels.",
        Content::PropagatedLabels => "Classes of nodes that are learned from, passed along edges.",
        Content::GramMatrices => "Sums of products of the columns that a model reads.",
    }
}

/// Contents that a first policy allows: what training by means of models takes where nobody's rows cross.
const FIRST: [&str; 5] = ["class_counts", "figures", "gradients", "ids", "models"];

/// The names, to be lent as a vocabulary.
pub struct Names {
    contents: Vec<(&'static str, &'static str)>,
    purposes: Vec<&'static str>,
    groups: Vec<(&'static str, Vec<&'static str>)>,
    first: Vec<&'static str>,
}

impl Names {
    /// All that there are.
    pub fn all() -> Names {
        let groups = DenyList::groups().map(|(name, of)| (name, of.iter().map(|content| content.name()).collect()));
        let groups: Vec<(&str, Vec<&str>)> = groups.collect();
        let is_first = |content: &&str| {
            let of_group = groups.iter().any(|(name, of)| FIRST.contains(name) && of.contains(content));
            // A row's gradient is no sum over nodes.
            (FIRST.contains(content) || of_group) && *content != Content::RowGradients.name()
        };
        let first = Content::ALL.into_iter().map(Content::name).filter(is_first).collect();
        Names {
            contents: Content::ALL.into_iter().map(|content| (content.name(), words(content))).collect(),
            purposes: FramePurpose::ALL.into_iter().map(FramePurpose::name).collect(),
            groups,
            first,
        }
    }

    /// Calls `then` with the vocabulary of these names.
    pub fn lend<T>(&self, then: impl FnOnce(&Vocabulary) -> T) -> T {
        let groups: Vec<(&str, &[&str])> = self.groups.iter().map(|(name, of)| (*name, of.as_slice())).collect();
        let always = DenyList::always().map(Content::name);
        then(&Vocabulary {
            contents: &self.contents,
            purposes: &self.purposes,
            groups: &groups,
            always: &always,
            first: &self.first,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_federation::Policy;

    #[test]
    fn a_first_policy_is_one_and_allows_no_rows_and_no_labels() {
        let names = Names::all();
        let policy = names.lend(|vocabulary| Policy::parse(&Policy::template(vocabulary), vocabulary).map(|_| ()));
        policy.expect("a policy");
        for kept in
            ["features", "hidden_rows", "class_scores", "training_labels", "gradients_of_rows", "scores_and_labels"]
        {
            assert!(!names.first.contains(&kept), "{kept}");
        }
        assert!(names.first.contains(&"models") && names.first.contains(&"ids"), "{:?}", names.first);
    }
}
