//! Scores of pairs of nodes by a model of links: those of a file, or the best for some nodes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use laconic_graph::dataset::Ids;
use laconic_graph::limits::read_file;
use laconic_nn::links::{PairRows, PairScorer, Scoring};
use laconic_nn::{Compute, Matrix};
use laconic_train::Plan;
use laconic_train::record::weights::{Weights, parameters};
use laconic_train::run::predict::Predictions;

/// A file of pairs is no larger.
const BYTES_MAX: u64 = 4 << 30;

/// Every node's embedding and what it is called.
pub struct Embedded {
    names: Vec<String>,
    rows: HashMap<String, u32>,
    embeddings: Matrix,
}

/// Which pairs are asked for.
pub enum Asked<'a> {
    /// Those of a file.
    File(&'a Path),
    /// So many of the best targets for each of these nodes.
    Best(usize, &'a [String]),
}

/// Pairs with their scores, the rows of both ends.
pub struct Scored {
    pairs: PairRows,
    scores: Vec<f32>,
}

impl Embedded {
    /// Of all parts.
    ///
    /// # Errors
    /// If two nodes are called alike.
    pub fn of(predictions: &[Predictions]) -> Result<Embedded> {
        let (mut names, mut values, mut width) = (Vec::new(), Vec::new(), 0);
        for part in predictions {
            names.extend(part.nodes.iter().enumerate().map(|(row, node)| match &part.ids {
                Ids::Row => node.to_string(),
                Ids::Integers(ids) => ids[row].to_string(),
                Ids::Strings(ids) => ids[row].clone(),
            }));
            width = part.inferred.logits.columns();
            values.extend_from_slice(part.inferred.logits.data());
        }
        let rows: HashMap<String, u32> = names.iter().cloned().zip(0..).collect();
        if rows.len() != names.len() {
            bail!("{} nodes have {} names: pairs could not be told apart", names.len(), rows.len());
        }
        Ok(Embedded { embeddings: Matrix::from_vec(names.len(), width, values), names, rows })
    }

    fn row(&self, name: &str) -> Result<u32> {
        self.rows.get(name).copied().with_context(|| format!("no node is called {name:?}"))
    }

    /// The pairs of a file: a source and a target a line.
    fn read(&self, path: &Path) -> Result<PairRows> {
        let bytes = read_file(path, BYTES_MAX).with_context(|| path.display().to_string())?;
        let text = String::from_utf8(bytes).with_context(|| format!("{}: expected text in UTF-8", path.display()))?;
        let mut pairs = PairRows::default();
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let place = || format!("{}: line {}", path.display(), number + 1);
            let cells: Vec<&str> = line.split([',', '\t']).map(|cell| cell.trim().trim_matches('"')).collect();
            match cells[..] {
                [""] => {}
                [source, target] if number == 0 && is_heading(source, target) => {}
                [source, target] => {
                    pairs.sources.push(self.row(source).with_context(place)?);
                    pairs.destinations.push(self.row(target).with_context(place)?);
                }
                _ => bail!("{}: expected source,target, found {} cells", place(), cells.len()),
            }
        }
        Ok(pairs)
    }

    /// Scores what is asked for.
    ///
    /// # Errors
    /// If the file cannot be read, or a node is unknown.
    pub fn score(&self, plan: &Plan, weights: &Weights, asked: &Asked<'_>) -> Result<Scored> {
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
        match asked {
            Asked::File(path) => {
                let pairs = self.read(path)?;
                Ok(Scored { scores: score(&pairs), pairs })
            }
            Asked::Best(count, names) => {
                let mut best = Scored { pairs: PairRows::default(), scores: Vec::new() };
                for name in *names {
                    let source = self.row(name)?;
                    let others: Vec<u32> = (0..self.names.len() as u32).filter(|&row| row != source).collect();
                    let pairs =
                        PairRows { sources: vec![source; others.len()], destinations: others, relations: Vec::new() };
                    let mut ranked: Vec<(f32, u32)> = score(&pairs).into_iter().zip(pairs.destinations).collect();
                    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                    for (score, target) in ranked.into_iter().take(*count) {
                        best.pairs.sources.push(source);
                        best.pairs.destinations.push(target);
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
        if is_csv {
            writeln!(file, "source,target,score,probability")?;
        }
        let ends = scored.pairs.sources.iter().zip(&scored.pairs.destinations);
        for ((&source, &target), &score) in ends.zip(&scored.scores) {
            let [source, target] = [source, target].map(|row| &self.names[row as usize]);
            let probability = 1.0 / (1.0 + (-f64::from(score)).exp());
            if is_csv {
                let [source, target] = [source, target].map(|name| super::text_file::quoted(name.clone()));
                writeln!(file, "{source},{target},{score},{}", probability as f32)?;
            } else {
                let line = serde_json::json!({
                    "source": source, "target": target, "score": score, "probability": probability as f32,
                });
                writeln!(file, "{line}")?;
            }
        }
        Ok(file.flush()?)
    }
}

impl Scored {
    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.scores.len()
    }
}

/// Whether a first line names its columns.
fn is_heading(source: &str, target: &str) -> bool {
    let is_one_of = |name: &str, names: [&str; 4]| names.contains(&name.to_lowercase().as_str());
    is_one_of(source, ["source", "src", "from", "u"]) && is_one_of(target, ["target", "dst", "to", "v"])
}
