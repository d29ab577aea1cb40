//! Which edges pass messages in a model of links, and which are held out to be judged.

use anyhow::{Result, bail};
use clap::ValueEnum;
use laconic_graph::given::GivenCounts;
use laconic_train::Config;
use laconic_train::config::{EvalNegatives, LinkSplit, LinkSplitChoice, NamedSplit, TaskConfig};
use laconic_train::run::source::Source;

use crate::output::Output;

/// Which edges pass messages.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Passing {
    /// All that there are
    All,
    /// Those that the run's split leaves to training
    Training,
    /// Those that the data do not hold out to be predicted
    Given,
}

/// Has the edges pass messages that were asked for, or the usual ones. The split by which training held some out says
/// nothing of other data.
pub fn choose(
    (asked, is_other): (Option<Passing>, bool),
    config: &mut Config,
    (source, output): (&Source, &Output),
) -> Result<()> {
    let global = source.global();
    let held = global.and_then(|global| global.held).unwrap_or_default();
    let holds_out = held.iter().any(|&count| count > 0);
    let usual = match (is_other, holds_out) {
        (false, _) => Passing::Training,
        (true, true) => Passing::Given,
        (true, false) => Passing::All,
    };
    match asked.unwrap_or(usual) {
        Passing::All => {
            let none = LinkSplit { val: 0.0, test: 0.0, ..LinkSplit::default() };
            config.task.split = LinkSplitChoice::Drawn(none);
            config.task.eval_negatives = EvalNegatives::Drawn(1);
            output.say("all edges pass messages");
        }
        Passing::Training => {
            output.say("edges that task.split holds out pass no messages (--edges all: all of them do)");
        }
        Passing::Given if !holds_out => {
            bail!("--edges given: these data hold out no edges (val_edge_index and test_edge_index of an npz)")
        }
        Passing::Given => {
            config.task.split = LinkSplitChoice::Named(NamedSplit::Given);
            let pairs = global.and_then(|global| global.negatives).unwrap_or_default();
            judge_among(pairs, held, &mut config.task, output);
            let [val, test] = held;
            let what = format!("the {val} and {test} edges that the data hold out for validation and testing");
            output.say(format!("{what} pass no messages and are judged (--edges all: all edges pass messages)"));
        }
    }
    Ok(())
}

/// Has held-out edges judged among pairs that are drawn, where the run's were among given ones and these data give
/// none.
fn judge_among(pairs: [GivenCounts; 2], held: [u64; 2], task: &mut TaskConfig, output: &Output) {
    let lacks = pairs.iter().zip(held).any(|(pairs, held)| held > 0 && pairs.pairs == 0);
    if lacks && matches!(task.eval_negatives, EvalNegatives::Named(_)) {
        task.eval_negatives = TaskConfig::default().eval_negatives;
        if let EvalNegatives::Drawn(number) = task.eval_negatives {
            output.say(format!(
                "note: these data give no pairs that are no edges, as the run's did: each held-out edge is judged \
                 among {number} that are drawn"
            ));
        }
    }
}
