//! The means of a comparison as tables for a paper: one unit a column, shares in per cent, the best in bold, and a
//! caption that says on what and where.

use std::fmt::Write;

use laconic_train::record::account::{LETTERS, TRIPS};

use super::account::{saw, trips};
use super::outcome::{Comparison, Line, Spread};
use super::table::p;
use crate::bytes::{plural, separated};
use crate::visible::markdown as markdown_text;

/// How a kind of document writes what tables need.
struct Style {
    escape: fn(&str) -> String,
    bold: [&'static str; 2],
    plus_minus: &'static str,
}

const MARKDOWN: Style = Style { escape: markdown_text, bold: ["**", "**"], plus_minus: "±" };
const LATEX: Style = Style { escape: tex, bold: ["\\textbf{", "}"], plus_minus: "$\\pm$" };

/// A column: its name and the cell of each method.
type Column = (String, Vec<String>);

/// Decimal units of bytes.
const UNITS: [(&str, f64); 5] = [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];

/// The table in Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let columns = columns(comparison, &MARKDOWN);
    let head: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = format!("| method | {} |\n|---|{}\n", head.join(" | "), "--:|".repeat(columns.len()));
    for (index, line) in comparison.methods.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|(_, cells)| cells[index].as_str()).collect();
        let _ = writeln!(text, "| {} | {} |", markdown_text(&line.name), cells.join(" | "));
    }
    let _ = writeln!(text, "\n{}", markdown_text(&caption(comparison)));
    text
}

/// The table in LaTeX.
pub fn latex(comparison: &Comparison) -> String {
    let columns = columns(comparison, &LATEX);
    let head: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = format!(
        "% \\usepackage{{booktabs}}\n\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{l{}}}\n\
         \\toprule\nmethod & {} \\\\\n\\midrule\n",
        tex(&caption(comparison)),
        "r".repeat(columns.len()),
        head.join(" & ")
    );
    for (index, line) in comparison.methods.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|(_, cells)| cells[index].as_str()).collect();
        let _ = writeln!(text, "{} & {} \\\\", tex(&line.name), cells.join(" & "));
    }
    text + "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
}

/// All columns but the names of methods. What no method has something to say in is left out.
fn columns(comparison: &Comparison, style: &Style) -> Vec<Column> {
    let lines = &comparison.methods;
    let cells = |cell: &dyn Fn(&Line) -> Option<String>| -> Vec<String> {
        lines.iter().map(|line| cell(line).unwrap_or_default()).collect()
    };
    let metric = comparison.metric.as_deref().unwrap_or("test");
    let best = best(lines, &|line| comparison.worth(line));
    let figures = lines.iter().enumerate().map(|(index, line)| {
        let mut text = figure(line.test.map(|test| share(test, style)), comparison);
        if let Some(loss) = line.loss.filter(|_| comparison.is_by_loss()) {
            text += &format!(", loss {}", spread(loss, 4, style));
        }
        bold(text, best == Some(index), style)
    });
    let mut columns = vec![
        ("runs".to_owned(), cells(&|line| Some(line.runs.len().to_string()))),
        ((style.escape)(&format!("{metric} (%)")), figures.collect()),
    ];
    if comparison.has_cuts() {
        columns.push(("cut, edges".to_owned(), cells(&|line| Some((style.escape)(&line.cut())))));
    }
    if lines.iter().any(|line| line.whole_graph_at.is_some() && line.account.is_none()) {
        let holder = |line: &Line| Some(line.whole_graph_at.clone().unwrap_or_else(|| "nobody".to_owned()));
        columns.push(("whole graph at".to_owned(), cells(&holder)));
    }
    columns.push(("rounds".to_owned(), cells(&|line| line.rounds.map(significant))));
    let (unit, size) = unit(lines);
    let kinds = ["boundary", "parameters", "evaluation", "start-up"].into_iter().enumerate();
    columns.extend(kinds.map(|(at, name)| {
        let bytes = |line: &Line| [line.boundary, line.parameters, line.evaluation, line.start_up][at];
        (format!("{name} ({unit})"), cells(&|line| bytes(line).map(|bytes| significant(bytes / size))))
    }));
    let fewest = self::best(lines, &|line| line.fewer).map(|index| fewer(&lines[index]));
    let cell = |line: &Line| bold(fewer(line), !line.is_constant && fewest.as_ref() == Some(&fewer(line)), style);
    columns.push(("fewer".to_owned(), lines.iter().map(cell).collect()));
    if has_accounts(comparison) {
        columns.push(("saw".to_owned(), cells(&|line| Some((style.escape)(&saw(line))))));
        columns.push(("trips".to_owned(), cells(&|line| line.account.as_ref().map(trips))));
    }
    columns.push(("time (s)".to_owned(), cells(&|line| line.seconds.map(|seconds| format!("{seconds:.2}")))));
    if is_tested(comparison) {
        let tested = |line: &Line| Some(p(line).replace('<', if style.bold == MARKDOWN.bold { "<" } else { "$<$" }));
        columns.push(("p".to_owned(), cells(&tested)));
    }
    columns
}

fn fewer(line: &Line) -> String {
    line.fewer.map(|fewer| format!("{fewer:.1}")).unwrap_or_default()
}

/// Whether it is known of a method who saw what.
fn has_accounts(comparison: &Comparison) -> bool {
    comparison.methods.iter().any(|line| line.account.is_some())
}

/// Whether there are enough pairs of seeds somewhere for a test.
fn is_tested(comparison: &Comparison) -> bool {
    comparison.methods.iter().filter_map(|line| line.against.as_ref()).any(|against| !against.is_too_small())
}

/// The method of which there is most, of those that learned something; none where all are alike.
fn best(lines: &[Line], worth: &dyn Fn(&Line) -> Option<f64>) -> Option<usize> {
    let known = lines.iter().enumerate().filter(|(_, line)| !line.is_constant);
    let known: Vec<(usize, f64)> = known.filter_map(|(index, line)| Some((index, worth(line)?))).collect();
    let (index, most) = known.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    known.iter().any(|(_, worth)| *worth < most).then_some(index)
}

fn bold(text: String, is_best: bool, style: &Style) -> String {
    if is_best && !text.is_empty() { format!("{}{text}{}", style.bold[0], style.bold[1]) } else { text }
}

/// A figure of the metric, or a dash where it is not defined; nothing where nothing was tested.
fn figure(figure: Option<String>, comparison: &Comparison) -> String {
    figure.unwrap_or_else(|| if comparison.metric.is_some() { "-".to_owned() } else { String::new() })
}

/// A mean of shares in per cent.
fn share(share: Spread, style: &Style) -> String {
    spread(Spread { mean: 100.0 * share.mean, sd: share.sd.map(|sd| 100.0 * sd) }, 2, style)
}

fn spread(spread: Spread, places: usize, style: &Style) -> String {
    match spread.sd {
        Some(sd) => format!("{:.places$} {} {sd:.places$}", spread.mean, style.plus_minus),
        None => format!("{:.places$}", spread.mean),
    }
}

/// The unit of all bytes: the one that suits the most that a method sends.
fn unit(lines: &[Line]) -> (&'static str, f64) {
    let most = lines.iter().filter_map(|line| line.bytes).fold(0.0, f64::max);
    UNITS.into_iter().rev().find(|(_, size)| most >= *size).unwrap_or(UNITS[0])
}

/// A number with three significant digits, whole numbers with all of theirs.
fn significant(number: f64) -> String {
    if number == number.round() {
        return format!("{number:.0}");
    }
    let before = number.abs().max(1e-9).log10().floor() as i32 + 1;
    let places = (3 - before).clamp(0, 6) as usize;
    format!("{number:.places$}")
}

/// On what and where, and what the columns mean.
fn caption(comparison: &Comparison) -> String {
    let graph = &comparison.graph;
    let mut text = graph.dataset.clone();
    if graph.nodes > 0 {
        let _ = write!(text, " ({} nodes, {} edges)", separated(graph.nodes), separated(graph.edges));
    }
    if let Some(line) = comparison.methods.first().filter(|_| !comparison.has_cuts()) {
        let _ = write!(text, ", {} of edges between parts", line.cut());
    }
    let runs = comparison.methods.iter().map(|line| line.runs.len()).max().unwrap_or(0);
    if runs > 1 {
        let _ = write!(text, "; mean and standard deviation over {}", plural(runs as u64, "run"));
    }
    let _ = write!(
        text,
        ". Bytes of all workers, framing included; fewer: all but evaluation, against {}",
        comparison.baseline
    );
    if has_accounts(comparison) {
        let _ = write!(text, "; saw: {LETTERS}; {TRIPS}");
    }
    if is_tested(comparison) {
        let _ = write!(
            text,
            "; p: sign-flip permutation test (exact up to 20 pairs) of paired differences to {}, two-sided",
            comparison.baseline
        );
    }
    if let Some(said) = comparison.fallback() {
        let _ = write!(text, "; {said}");
    }
    match &comparison.link {
        Some(link) => {
            let _ = write!(text, "; time on the clock of a model of the link {link}");
        }
        None => {
            let _ = write!(text, "; time on {}", machine());
        }
    }
    let _ = write!(text, "; laconic {}", comparison.version);
    text + "."
}

/// The processor, as the system calls it, and how many of its threads there are.
fn machine() -> String {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let name = named.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    format!("{}, {}", plural(threads, "thread"), name.split_whitespace().collect::<Vec<_>>().join(" "))
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
        assert_eq!(tex("50 % & a_b \\x {1} <2>"), "50 \\% \\& a\\_b \\textbackslash{}x \\{1\\} $<$2$>$");
        assert_eq!(markdown_text("a|b\n*c*"), "a\\|b \\*c\\*");
    }

    #[test]
    fn numbers_of_a_column_keep_three_digits_whatever_their_size() {
        let texts = [668.123, 36.94, 4.0, 0.09214, 12345.6, 0.0].map(significant);
        assert_eq!(texts, ["668", "36.9", "4", "0.0921", "12346", "0"]);
    }
}
