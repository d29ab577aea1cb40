//! The comparison as files for other programs: every run as CSV, the means as Markdown and LaTeX.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use laconic_train::record::aside::write_aside;

use super::outcome::{Comparison, Line, Spread};
use crate::bytes::human_bytes;

/// Writes `compare.csv`, `compare.md` and `compare.tex`.
pub fn write(folder: &Path, comparison: &Comparison) -> Result<()> {
    for (name, text) in
        [("compare.csv", csv(comparison)), ("compare.md", markdown(comparison)), ("compare.tex", latex(comparison))]
    {
        write_aside(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// One row a run; what is not known is empty, and a figure that is not defined a dash.
fn csv(comparison: &Comparison) -> String {
    let metric = comparison.metric.as_deref().unwrap_or("test");
    let mut text = format!(
        "method,seed,partition_seed,split_seed,{},boundary,parameters,evaluation,start_up,training,bytes,predicted,\
         skipped,rounds,seconds,memory,folder,simulated_seconds,convergence_seconds,starts,loss\n",
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
                "{},{},{partition},{split},{test},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
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
                number(run.loss)
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

const HEAD: [&str; 9] = ["runs", "", "boundary", "parameters", "evaluation", "start-up", "fewer", "seconds", "p"];

/// The cells of a method after its name, with `±` as it is written there.
fn cells(line: &Line, comparison: &Comparison, plus_minus: &str) -> [String; 9] {
    let known = |text: Option<String>| text.unwrap_or_default();
    let bytes = |bytes: Option<f64>| known(bytes.map(|bytes| human_bytes(bytes.round() as u64)));
    let spread = |spread: Spread| match spread.sd {
        Some(sd) => format!("{:.4} {plus_minus} {sd:.4}", spread.mean),
        None => format!("{:.4}", spread.mean),
    };
    let mut test = figure(line.test.map(spread), comparison);
    if let Some(loss) = line.loss.filter(|_| comparison.is_by_loss()) {
        test += &format!(", loss {}", spread(loss));
    }
    [
        line.runs.len().to_string(),
        test,
        bytes(line.boundary),
        bytes(line.parameters),
        bytes(line.evaluation),
        bytes(line.start_up),
        known(line.fewer.map(|fewer| format!("{fewer:.1}"))),
        known(line.seconds.map(|seconds| format!("{seconds:.2}"))),
        p(line),
    ]
}

/// The outcome of a method's test in a few letters.
pub fn p(line: &Line) -> String {
    match &line.against {
        None => String::new(),
        Some(against) if against.is_too_small() => "n too small".to_owned(),
        Some(against) if against.p < 0.0005 => "< 0.001".to_owned(),
        Some(against) => format!("{:.3}", against.p),
    }
}

/// What stands below every table.
fn foot(comparison: &Comparison) -> String {
    let mut text = format!(
        "Mean and standard deviation over runs; bytes of all workers, framing included; fewer: all but evaluation, \
         against {0}; p: sign-flip permutation test (exact up to 20 pairs) of paired differences to {0}, two-sided",
        comparison.baseline
    );
    if let Some(said) = comparison.fallback() {
        let _ = write!(text, "; {said}");
    }
    if let Some(link) = &comparison.link {
        let _ = write!(text, "; seconds on the clock of a model of the link {link}");
    }
    text + "."
}

fn markdown(comparison: &Comparison) -> String {
    let escaped = |text: &str| {
        let special = |c: char| if "\\`*_{}[]<>#|!".contains(c) { format!("\\{c}") } else { c.to_string() };
        text.chars().map(special).collect::<String>().replace(['\n', '\r'], " ")
    };
    let metric = comparison.metric.as_deref().unwrap_or("test");
    let head = HEAD.map(|name| if name.is_empty() { escaped(metric) } else { name.to_owned() });
    let mut text = format!("| method | {} |\n|---|{}\n", head.join(" | "), "--:|".repeat(HEAD.len()));
    for line in &comparison.methods {
        let _ = writeln!(text, "| {} | {} |", escaped(&line.name), cells(line, comparison, "±").join(" | "));
    }
    let _ = writeln!(text, "\n{}", escaped(&foot(comparison)));
    text
}

fn latex(comparison: &Comparison) -> String {
    let metric = comparison.metric.as_deref().unwrap_or("test");
    let head = HEAD.map(|name| if name.is_empty() { tex(metric) } else { name.to_owned() });
    let mut text = format!(
        "% \\usepackage{{booktabs}}\n\\begin{{tabular}}{{l{}}}\n\\toprule\nmethod & {} \\\\\n\\midrule\n",
        "r".repeat(HEAD.len()),
        head.join(" & ")
    );
    for line in &comparison.methods {
        let cells = cells(line, comparison, "$\\pm$").map(|cell| cell.replace('<', "$<$"));
        let _ = writeln!(text, "{} & {} \\\\", tex(&line.name), cells.join(" & "));
    }
    let _ = writeln!(text, "\\bottomrule\n\\end{{tabular}}\n% {}", foot(comparison).replace(['\n', '\r'], " "));
    text
}

/// Text as LaTeX takes it.
fn tex(text: &str) -> String {
    let letter = |c: char| match c {
        '\\' => "\\textbackslash{}".to_owned(),
        '^' => "\\textasciicircum{}".to_owned(),
        '~' => "\\textasciitilde{}".to_owned(),
        '<' | '>' | '|' => format!("${c}$"),
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{c}"),
        '\n' | '\r' => " ".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_a_table() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(tex("50 % & a_b \\x {1} <2>"), "50 \\% \\& a\\_b \\textbackslash{}x \\{1\\} $<$2$>$");
    }
}
