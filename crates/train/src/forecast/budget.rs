//! A byte budget: of a ladder of ways to code messages, the best whose predicted bytes stay within it.
//!
//! Codecs that the configuration names itself stay as they are; those left at `exact` climb the ladder. Between two
//! widths the rungs are ramps that switch from one to the other after some share of the rounds, later rounds being the
//! finer ones (compress first, open up later), so little of the budget is left over. Every rung is predictable, so the
//! run stays within the budget whatever happens: patience and interrupts only send less. A ramp over bytes that states
//! no limit takes part as if it ran to the whole budget, and then gets the limit with which the run uses most of it.
//! The choice depends on configuration and shapes alone, and a resumed run keeps that of its checkpoint, with whatever
//! budget; it is refused where what is left does not suffice for starting again, after all that a killed run had
//! written down as sent.

use laconic_wire::codec::{Half, Masked, Options, Quantised};

use crate::config::ramp::{Controller, Law, Ramp};
use crate::config::{BitsChoice, CodecChoice, CodecConfig, Config, MessagesConfig};
use crate::error::{Result, TrainError};
use crate::plan::Plan;

/// Switches between two widths happen after so many eighths of the rounds.
const EIGHTHS: u32 = 8;

/// How rows, evaluations and parameters are coded.
struct Rung {
    rows: CodecChoice,
    evaluation: CodecChoice,
    parameters: CodecChoice,
}

/// The codec that rounds to any width.
const ROUNDED: &str = Quantised::KIND.name;

fn quantised(bits: Controller) -> CodecConfig {
    CodecConfig { bits: Some(BitsChoice::Same(bits)), ..CodecChoice::named(ROUNDED).config() }
}

fn fixed(bits: u8) -> CodecChoice {
    CodecChoice::Table(Box::new(quantised(Controller::Fixed(bits.into()))))
}

/// Whether masks may be chosen: not where messages stand in for those of another round, which had other columns.
fn admits_masks(config: &Config) -> bool {
    let smooths = config.schedule.smooth_features > 0.0 || config.schedule.smooth_gradients > 0.0;
    config.messages.skip.is_none() && !smooths
}

/// From the coarsest to the exact one.
fn ladder(masks: bool) -> Vec<Rung> {
    let mut rungs = Vec::new();
    let coarse = |rows: CodecConfig, bits: u8| Rung {
        rows: CodecChoice::Table(Box::new(rows)),
        evaluation: fixed(8),
        parameters: fixed(bits),
    };
    let one = quantised(Controller::Fixed(1.0));
    for ratio in [64.0, 32.0, 16.0, 8.0, 4.0, 2.0].into_iter().filter(|_| masks) {
        let (codec, options) = (Masked::KIND.name.to_owned(), Options::default().with("inner", ROUNDED));
        let ratio = Some(Controller::Fixed(ratio));
        rungs.push(coarse(CodecConfig { codec, options, ratio, ..one.clone() }, 4));
    }
    for (from, to) in [(1.0, 2.0), (2.0, 4.0), (4.0, 8.0)] {
        rungs.push(coarse(quantised(Controller::Fixed(from)), 8));
        for eighths in (1..EIGHTHS).rev() {
            let slope = f64::from(EIGHTHS) / f64::from(eighths);
            let ramp = Ramp { law: Law::Linear, from, to, slope, ..Ramp::default() };
            rungs.push(coarse(quantised(Controller::Ramp(ramp)), 8));
        }
    }
    let (half, exact) = (CodecChoice::named(Half::KIND.name), CodecChoice::exact());
    for (rows, evaluation, parameters) in [
        (fixed(8), fixed(8), fixed(8)),
        (fixed(8), fixed(8), half.clone()),
        (fixed(8), half.clone(), half.clone()),
        (half.clone(), half.clone(), half.clone()),
        (half.clone(), half, exact.clone()),
        (exact.clone(), exact.clone(), exact),
    ] {
        rungs.push(Rung { rows, evaluation, parameters });
    }
    rungs
}

/// How many rungs there are.
pub fn rungs(config: &Config) -> usize {
    ladder(admits_masks(config)).len()
}

/// The messages on every rung, coarsest first.
pub fn candidates(config: &Config) -> Vec<MessagesConfig> {
    let messages = &config.messages;
    let climb = |mine: &CodecChoice, rung: CodecChoice| if *mine == CodecChoice::exact() { rung } else { mine.clone() };
    // Factors of gradients are added up as they are.
    let factors = config.train.power_sgd.is_some();
    let on = |rung: Rung| MessagesConfig {
        forward: climb(&messages.forward, rung.rows.clone()),
        backward: climb(&messages.backward, rung.rows),
        evaluation: climb(&messages.evaluation, rung.evaluation),
        parameters: if factors { CodecChoice::exact() } else { climb(&messages.parameters, rung.parameters) },
        ..messages.clone()
    };
    ladder(admits_masks(config)).into_iter().map(on).collect()
}

/// The run on this rung.
///
/// # Errors
/// If a codec cannot be made.
pub fn on_rung(plan: &Plan, rung: usize) -> Result<Plan> {
    plan.with_messages(&candidates(&plan.config).swap_remove(rung))
}

/// Limits that are tried for ramps over bytes which leave theirs to the budget.
const LIMITS: u32 = 64;

/// The run with each limit that its ramps over bytes may have, none above the budget; itself where they have theirs.
///
/// # Errors
/// If a codec cannot be made.
pub fn paces(plan: &Plan, budget: u64) -> Result<Vec<Plan>> {
    if !plan.messages.lack_limit() {
        return Ok(Vec::new());
    }
    let limits = (1..=LIMITS).map(|part| budget as f64 * f64::from(part) / f64::from(LIMITS));
    limits.map(|limit| plan.with_messages(&plan.config.messages.with_limit(limit))).collect()
}

/// The best rung whose bytes (of all workers, as predicted) stay within the budget. An error says how much would be
/// needed.
///
/// # Errors
/// If no rung fits; the text says how much would be needed.
pub fn choose(bytes: &[f64], budget: u64) -> Result<usize> {
    let fits = |bytes: &f64| *bytes <= budget as f64;
    bytes.iter().rposition(fits).ok_or_else(|| {
        let least = bytes.iter().copied().fold(f64::INFINITY, f64::min);
        let advice = "raise it, or lower train.epochs, evaluate less often (train.eval_every) or reduce less often \
                      (train.sync_every)";
        TrainError::config(format!(
            "messages.budget: {budget} bytes are not enough; the coarsest messages need {least:.0}: {advice}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Messages;

    #[test]
    fn the_ladder_ends_with_exact_messages_and_every_rung_is_predictable() {
        let candidates = candidates(&Config::default());
        assert_eq!(candidates.len(), rungs(&Config::default()));
        assert_eq!(candidates.last().expect("rungs"), &MessagesConfig::default());
        for messages in candidates {
            Config { messages: messages.clone(), ..Config::default() }
                .check()
                .expect("a rung is a valid configuration");
            let messages = Messages::of(&messages, &Default::default(), &[]).expect("valid messages");
            assert!(messages.are_predictable());
        }
    }

    #[test]
    fn what_the_user_names_stays() {
        let config = Config::parse("[messages]\nforward = \"half\"", &[]).expect("valid");
        let candidates = candidates(&config);
        assert!(candidates.iter().all(|c| c.forward == CodecChoice::named("half")));
        assert_ne!(candidates[0].backward, CodecChoice::exact());
    }

    #[test]
    fn the_best_rung_that_fits_is_chosen_and_an_impossible_budget_says_what_is_needed() {
        assert_eq!(choose(&[1.0, 5.0, 4.0, 9.0], 6).expect("fits"), 2);
        let error = choose(&[7.0, 5.0], 4).expect_err("too small").to_string();
        assert!(error.contains("need 5"), "{error}");
    }
}
