//! The comparison as files for other programs: every run as CSV; the means as Markdown and LaTeX are in
//! [`super::paper`].

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use laconic_train::record::aside::write_aside;

use super::account;
use super::outcome::Comparison;
use super::paper;

/// Writes `compare.csv`, `compare.md` and `compare.tex`.
pub fn write(folder: &Path, comparison: &Comparison) -> Result<()> {
    let (markdown, latex) = (paper::markdown(comparison), paper::latex(comparison));
    for (name, text) in [("compare.csv", csv(comparison)), ("compare.md", markdown), ("compare.tex", latex)] {
        write_aside(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// One row a run; what is not known is empty, and a figure that is not defined a dash.
fn csv(comparison: &Comparison) -> String {
    let metric = comparison.metric.as_deref().unwrap_or("test");
    let mut text = format!(
        "method,seed,partition_seed,split_seed,{},boundary,parameters,evaluation,start_up,training,bytes,predicted,\
         skipped,rounds,seconds,memory,folder,simulated_seconds,convergence_seconds,starts,loss,partition,edge_cut,\
         whole_graph_at,saw_labels,saw_features,saw_scores,saw_models,round_trips\n",
        quoted(metric)
    );
    let known = |seed: Option<u64>| seed.map(|seed| seed.to_string()).unwrap_or_default();
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    for line in &comparison.methods {
        for run in &line.runs {
            let test = figure(run.test.map(|test| test.to_string()), comparison);
            let (partition, split, purposes) = (known(run.partition_seed), known(run.split_seed), &run.purposes);
            let _ = writeln!(
                text,
                "{},{},{partition},{split},{test},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                quoted(&line.name),
                run.seed,
                purposes.boundary,
                purposes.parameters,
                purposes.evaluation,
                purposes.start_up,
                run.training,
                run.bytes,
                run.predicted.map(|predicted| predicted.to_string()).unwrap_or_default(),
                run.skipped,
                run.rounds,
                run.seconds,
                run.memory,
                quoted(&run.folder),
                number(run.simulated_seconds),
                number(run.convergence_seconds),
                run.starts,
                number(run.loss),
                quoted(line.partition.as_deref().unwrap_or_default()),
                number(run.edge_cut),
                line.whole_graph_at.as_deref().unwrap_or_default(),
                account::fields(line)
            );
        }
    }
    text
}

/// A figure of the metric, or a dash where it is not defined; nothing where nothing was tested.
fn figure(figure: Option<String>, comparison: &Comparison) -> String {
    figure.unwrap_or_else(|| if comparison.metric.is_some() { "-".to_owned() } else { String::new() })
}

/// A field of CSV.
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_a_field() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("plain"), "plain");
    }
}
