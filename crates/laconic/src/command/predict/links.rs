//! Scores of pairs of nodes by a model of links: those of a file, or the best for some nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::{Context, Result};
use laconic_nn::links::{PairRows, PairScorer, Scoring};
use laconic_nn::{Compute, Matrix};
use laconic_train::Plan;
use laconic_train::record::weights::{Weights, parameters};
use laconic_train::run::predict::Predictions;
use laconic_train::worker::evaluate::{Figures, Scores};
use schemars::JsonSchema;
use serde::Serialize;

use super::candidates::Candidates;
use super::pairs::{Names, Wanted};
use super::relations::Relations;
use crate::bytes::listed;

/// Every node's embedding and what it is called.
pub struct Embedded {
    names: Names,
    /// What relations are called, in a model that tells them apart.
    relations: Option<Relations>,
    embeddings: Matrix,
}

/// How high edges rank that are held out.
#[derive(Default, Serialize, JsonSchema)]
pub struct Judged {
    /// Figures of edges that are held out, by split (`val`, `test`): those that have some; null where one is not
    /// defined.
    #[schemars(extend("x-name" = "SPLIT.METRIC"))]
    figures: BTreeMap<&'static str, Figures>,
    /// (with `hits@K`) How many pairs the pool has that these figures count against.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-name" = "SPLIT"))]
    hits_pool: BTreeMap<String, u64>,
    /// (where there is something to say) Why figures are not defined, and how far areas from bins may be from exact
    /// ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Judged {
    /// Of all parts, each of which has the figures of all.
    pub fn of(predictions: &[Predictions]) -> Judged {
        let scores = predictions.iter().find_map(|part| part.scores.clone()).unwrap_or_default();
        let Scores { val, test, hits_pool, notes, .. } = scores;
        let figures = [("val", val), ("test", test)].into_iter().filter(|(_, figures)| !figures.is_empty()).collect();
        Judged { figures, hits_pool, notes }
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        ["val", "test"].iter().filter_map(|split| Some((split, self.figures.get(split)?))).try_for_each(
            |(split, figures)| write!(f, "\n  {split:<6} {}", listed(figures, self.hits_pool.get(*split).copied())),
        )
    }
}

/// Pairs with their scores, the rows of both ends.
pub struct Scored {
    pairs: PairRows,
    scores: Vec<f32>,
}

impl Embedded {
    /// Of all parts, whose nodes are called so.
    pub fn of((names, relations): (Names, Option<Relations>), predictions: &[Predictions]) -> Embedded {
        let (mut values, mut width) = (Vec::new(), 0);
        for part in predictions {
            width = part.inferred.logits.columns();
            values.extend_from_slice(part.inferred.logits.data());
        }
        Embedded { embeddings: Matrix::from_vec(names.len(), width, values), names, relations }
    }

    /// Scores what is asked for; `candidates` are what may be best.
    ///
    /// # Errors
    /// If the model is none of links.
    pub fn score(
        &self,
        (plan, weights): (&Plan, &Weights),
        wanted: Wanted,
        candidates: Option<&Candidates>,
    ) -> Result<Scored> {
        let links = plan.links.as_ref().context("the model is none of links")?;
        let stage = plan.stages.last().context("the model has no stages")?;
        let all = parameters(&plan.stages, weights)?;
        let p = &all[all.len() - 1][stage.network.tail()];
        let nothing = Matrix::default();
        let scoring = Scoring { decoder: &*links.decoder, p, rows: [&self.embeddings, &nothing] };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (mut compute, mut scorer) = (Compute::new(threads), PairScorer::default());
        let mut score = |pairs: &PairRows| {
            let mut scores = Vec::with_capacity(pairs.len());
            scorer.scores(&mut compute, scoring, pairs, |_, some| scores.extend_from_slice(some));
            scores
        };
        match wanted {
            Wanted::Pairs(pairs) => Ok(Scored { scores: score(&pairs), pairs }),
            Wanted::Best(count, sources, relation) => {
                let mut best = Scored { pairs: PairRows::default(), scores: Vec::new() };
                for source in sources {
                    let others = candidates.map_or_else(Vec::new, |candidates| candidates.for_row(source).to_vec());
                    let relations = relation.map_or_else(Vec::new, |relation| vec![relation; others.len()]);
                    let pairs = PairRows { sources: vec![source; others.len()], destinations: others, relations };
                    let mut ranked: Vec<(f32, u32)> = score(&pairs).into_iter().zip(pairs.destinations).collect();
                    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                    for (score, target) in ranked.into_iter().take(count) {
                        best.pairs.sources.push(source);
                        best.pairs.destinations.push(target);
                        best.pairs.relations.extend(relation);
                        best.scores.push(score);
                    }
                }
                Ok(best)
            }
        }
    }

    /// Writes a line a pair, as CSV or as JSON objects.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write(&self, scored: &Scored, file: &mut File, is_csv: bool) -> Result<()> {
        let mut file = BufWriter::new(file);
        let column = if self.relations.is_some() { "relation," } else { "" };
        if is_csv {
            writeln!(file, "source,target,{column}score,probability")?;
        }
        let ends = scored.pairs.sources.iter().zip(&scored.pairs.destinations);
        for (at, ((&source, &target), &score)) in ends.zip(&scored.scores).enumerate() {
            let [source, target] = [source, target].map(|row| self.names.name(row));
            let of = scored.pairs.relations.get(at);
            let relation = self.relations.as_ref().zip(of).map(|(relations, &number)| relations.name(number));
            let probability = 1.0 / (1.0 + (-f64::from(score)).exp());
            if is_csv {
                let quoted = |name: &str| super::text_file::quoted(name.to_owned());
                let relation = relation.map(|name| quoted(name) + ",").unwrap_or_default();
                let [source, target] = [source, target].map(quoted);
                writeln!(file, "{source},{target},{relation}{score},{}", probability as f32)?;
            } else {
                let mut line = serde_json::json!({
                    "source": source, "target": target, "score": score, "probability": probability as f32,
                });
                if let Some(relation) = relation {
                    line["relation"] = relation.into();
                }
                writeln!(file, "{line}")?;
            }
        }
        Ok(file.flush()?)
    }
}

impl Scored {
    /// The score of each pair.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.scores.len()
    }
}
