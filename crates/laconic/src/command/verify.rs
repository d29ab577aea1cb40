//! `laconic verify`: one worker against K.

use anyhow::Result;
use clap::Args;
use laconic_train::config::Stored;
use laconic_train::run::verify::{Difference, TIMES_ROUNDING, Verification};
use laconic_train::{Members, verify};

use super::train::RunFile;
use crate::output::Output;

/// Arguments of `verify`.
#[derive(Args)]
#[command(
    after_help = "Adam steps as far for a gradient of nothing but rounding as for any other. So both train with a \
                        train.epsilon of 0.001 at least, which they can be compared by.\n\n\
                        Example: laconic verify run.toml --set partition.parts=7 --rounds 10"
)]
pub struct Verify {
    #[command(flatten)]
    run: RunFile,
    /// Rounds of each stage; batches go on to the end of that epoch
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Largest relative difference of a parameter that passes [default: 1e-4; with rows as bf16 (train.precision)
    /// 0.031, since workers round sums of neighbours apart, to 8 bits, or what one worker makes of such rounding]
    #[arg(long)]
    tolerance: Option<f64>,
    /// Start even if the workers may need more memory than there is
    #[arg(long)]
    force: bool,
}

/// Compares; 1 if something differs.
pub fn run(arguments: Verify, output: &Output) -> Result<u8> {
    let config = arguments.run.load(output)?;
    let found = verify(&Members::default(), &config, arguments.rounds, arguments.tolerance, arguments.force)?;
    output.result(describe(&found), &found)?;
    Ok(if found.passes() { 0 } else { 1 })
}

fn describe(found: &Verification) -> String {
    use std::fmt::Write;
    let epsilon = found.epsilon.map(|epsilon| format!(" with train.epsilon = {epsilon}")).unwrap_or_default();
    let mut text = format!(
        "1 worker against {}, {} rounds a stage{epsilon}; relative differences of parameters:\n",
        found.workers, found.rounds
    );
    let is_of_each = found.differences.iter().any(|difference| difference.rounding.is_some());
    let more = if is_of_each { "  of rounding" } else { "" };
    let _ = writeln!(text, "  stage   {:<26} {:>8} {:>8}{more}", "parameter", "by norm", "at most");
    for difference in &found.differences {
        let Difference { stage, name, relative, largest, rounding } = difference;
        let rounding = rounding.map(|rounding| format!("     {rounding:>8.2e}")).unwrap_or_default();
        let differs = if *relative > difference.bound(found.tolerance) { "  DIFFERS" } else { "" };
        let _ = writeln!(text, "  {stage:<7} {name:<26} {relative:>8.2e} {largest:>8.2e}{rounding}{differs}");
    }
    let ledger = if found.ledger_is_exact { "the ledger is as predicted" } else { "THE LEDGER IS NOT AS PREDICTED" };
    let agrees = if found.agrees { "agrees" } else { "DIFFERS" };
    let of = if found.precision == Stored::Bf16 { " (rows are bf16)" } else { "" };
    let _ = write!(text, "largest {:.2e}, tolerance {:.0e}{of}: {agrees}; {ledger}", found.worst, found.tolerance);
    if let Some(rounding) = found.rounding.filter(|_| is_of_each) {
        let _ = write!(
            text,
            "\none worker on features whose last bit of 8 differs ends up to {rounding:.2e} from itself (of \
             rounding): a parameter agrees within {TIMES_ROUNDING} times that"
        );
    } else if let Some(rounding) = found.rounding {
        let _ = write!(
            text,
            "\none worker with its rows in another order, on features that differ in the last bits, ends \
             {rounding:.2e} from itself; where that is more than a tenth of the tolerance, fewer rounds are compared"
        );
    }
    if found.is_lossy && !found.agrees {
        let _ = write!(
            text,
            "\nworkers of this configuration do without something that one worker has, so it trains another model"
        );
    }
    text
}
