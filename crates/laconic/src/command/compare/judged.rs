//! What methods are judged by: the metric, or the loss where the metric is not defined in some run. One figure that is
//! missing would make the others means over fewer seeds, or leave a method out that nothing is wrong with.

use laconic_train::record::constant::{is_no_better, whose};

use super::outcome::{Comparison, Line, Run, Spread};

/// The name of the loss among figures.
const LOSS: &str = "loss";

impl Comparison {
    /// How many runs have no such figure as the metric names, and how many there are.
    fn undefined(&self) -> (usize, usize) {
        let runs = self.methods.iter().flat_map(|line| &line.runs);
        (runs.clone().filter(|run| run.test.is_none()).count(), runs.count())
    }

    /// Settles what methods are judged by.
    pub(super) fn choose_figure(&mut self) {
        let mut runs = self.methods.iter().flat_map(|line| &line.runs);
        let by_loss = self.undefined().0 > 0 && runs.all(|run| run.loss.is_some());
        self.judged_by = self.metric.clone().map(|metric| if by_loss { LOSS.to_owned() } else { metric });
    }

    /// Whether methods are judged by their loss.
    pub fn is_by_loss(&self) -> bool {
        self.judged_by.as_deref() == Some(LOSS)
    }

    /// What methods are judged by, in words.
    pub fn judged_by(&self) -> &str {
        self.judged_by.as_deref().or(self.metric.as_deref()).unwrap_or("metric")
    }

    /// The mean and spread of what a method is judged by.
    pub fn judged(&self, line: &Line) -> Option<Spread> {
        if self.is_by_loss() { line.loss } else { line.test }
    }

    /// What a run is judged by.
    pub(super) fn figure(&self, run: &Run) -> Option<f64> {
        if self.is_by_loss() { run.loss } else { run.test }
    }

    /// What a method is worth: more is better.
    pub(super) fn worth(&self, line: &Line) -> Option<f64> {
        let mean = self.judged(line)?.mean;
        Some(if self.is_by_loss() { -mean } else { mean })
    }

    /// What an answer that is the same for every node, or pair, reaches of what methods are judged by.
    pub fn fixed(&self) -> Option<f64> {
        if self.is_by_loss() { self.constant_loss } else { self.constant }
    }

    /// Whether a method is no better than such an answer.
    pub(super) fn is_constant(&self, line: &Line) -> bool {
        let fixed = self.fixed().map(|fixed| if self.is_by_loss() { -fixed } else { fixed });
        self.worth(line).zip(fixed).is_some_and(|(worth, fixed)| is_no_better(worth, fixed))
    }

    /// Says so where the loss stands in for the metric.
    pub fn fallback(&self) -> Option<String> {
        let metric = self.metric.as_deref().filter(|_| self.is_by_loss())?;
        let ((missing, all), noun) = (self.undefined(), self.task.words.noun);
        Some(format!(
            "{metric} of test {noun} is not defined in {missing} of {all} runs, so fronts, p and chance go by the test \
             loss: less is better"
        ))
    }

    /// Says what `chance` stands for, where a method has the word.
    pub fn chance(&self) -> Option<String> {
        let fixed = self.fixed().filter(|_| self.methods.iter().any(|line| line.is_constant))?;
        let what = whose(self.task.of_pairs);
        let loss = if self.is_by_loss() { "a loss of " } else { "" };
        Some(format!("no better than {loss}{fixed:.4}, {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Runs of a method by their test figures and losses.
    fn line(name: &str, bytes: u64, figures: &[(Value, f64)]) -> Value {
        let run = |(seed, (test, loss)): (usize, &(Value, f64))| {
            json!({
                "seed": seed, "folder": "runs/a", "test": test, "loss": loss, "bytes": bytes, "training": bytes,
                "predicted": bytes, "rounds": 1, "seconds": bytes
            })
        };
        let runs: Vec<Value> = figures.iter().enumerate().map(run).collect();
        json!({
            "name": name, "set": [], "runs": runs, "test": null, "bytes": null, "fewer": null, "seconds": null,
            "front": false, "front_by_seconds": false
        })
    }

    fn concluded(lines: &[Value]) -> Comparison {
        let mut comparison: Comparison = serde_json::from_value(json!({
            "version": "0", "metric": "roc_auc", "link": null, "constant": 0.5, "constant_loss": 0.6, "baseline": "a",
            "graph": { "dataset": "graph", "digest": "", "nodes": 1, "edges": 1, "parts": [1] }, "methods": lines
        }))
        .expect("a comparison");
        comparison.conclude();
        comparison
    }

    #[test]
    fn one_figure_that_is_missing_leaves_fronts_tests_and_chance_to_the_losses_of_all() {
        let seeds = |figure: fn(usize) -> (Value, f64)| (0..6).map(figure).collect::<Vec<_>>();
        // By the metric the first is the best; by the loss the second, and the last is no better than a fixed answer.
        let all = [
            line("a", 30, &seeds(|seed| (json!(0.9), 0.5 + 0.01 * seed as f64))),
            line("b", 20, &seeds(|seed| (json!(0.8), 0.3 + 0.02 * seed as f64))),
            line("c", 10, &seeds(|_| (json!(0.7), 0.7))),
        ];
        let by_metric = concluded(&all);
        let fronts = |comparison: &Comparison| comparison.methods.iter().map(|line| line.front).collect::<Vec<_>>();
        assert_eq!((fronts(&by_metric), by_metric.judged_by()), (vec![true; 3], "roc_auc"));
        assert_eq!((by_metric.fallback(), by_metric.chance()), (None, None));
        let mut missing = all.clone();
        missing[2]["runs"][4]["test"] = Value::Null;
        let by_loss = concluded(&missing);
        assert_eq!((fronts(&by_loss), by_loss.judged_by()), (vec![false, true, false], "loss"));
        assert!(by_loss.methods[2].is_constant && by_loss.methods[2].test.is_none());
        let against = by_loss.methods[1].against.expect("six seeds");
        // Every difference is -0.2 + 0.01 * seed: all one way.
        assert!((against.difference + 0.175).abs() < 1e-12 && against.p == 2.0 / 64.0, "{against:?}");
        let said = by_loss.fallback().expect("a sentence");
        assert!(said.starts_with("roc_auc of test nodes is not defined in 1 of 18 runs, so fronts"), "{said}");
        let chance = by_loss.chance().expect("a sentence");
        assert_eq!(chance, "no better than a loss of 0.6000, the best answer that is the same for every node");
    }
}
