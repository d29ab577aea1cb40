use super::*;

const LAWS: [Law; 4] = [Law::Linear, Law::Exponential, Law::Staircase, Law::Columns];
const CLOCKS: [Clock; 4] = [Clock::Epoch, Clock::Elapsed, Clock::Bytes, Clock::GradientNorm];

fn ramp(law: Law, from: f64, to: f64, slope: f64) -> Ramp {
    Ramp { law, clock: Clock::Epoch, from, to, slope, steps: 8, limit: None }
}

fn round(done: u32, rounds: u32) -> Reading {
    Reading { done, rounds, elapsed: 0.0, bytes: 0.0, gradient: 1.0 }
}

/// A ramp on a clock that needs a limit of 100 where it needs one, and the clock's reading at a percentage.
fn on_clock(clock: Clock, percent: u32) -> (Controller, Reading) {
    let limit = matches!(clock, Clock::Elapsed | Clock::Bytes).then_some(100.0);
    let share = f64::from(percent);
    let reading = Reading { done: percent, rounds: 102, elapsed: share, bytes: share, gradient: 1.0 - share / 100.0 };
    (Controller::Ramp(Ramp { clock, limit, ..ramp(Law::Linear, 101.0, 1.0, 1.0) }), reading)
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Table {
    ratio: Controller,
}

fn parse(text: &str) -> Result<Controller, String> {
    toml::from_str(text).map(|table: Table| table.ratio).map_err(|error| error.to_string())
}

#[test]
fn linear_law_gives_the_published_ratios_and_columns() {
    // Of specs/varco_tma.md, A4: round, ratio, columns of 100, 128 and 256 before the clamp.
    let golden = [
        (0, 128.0, [0, 1, 2]),
        (1, 125.869128, [0, 1, 2]),
        (14, 98.167785, [1, 1, 2]),
        (20, 85.382550, [1, 1, 2]),
        (30, 64.073826, [1, 1, 3]),
        (40, 42.765101, [2, 2, 5]),
        (50, 21.456376, [4, 5, 11]),
        (55, 10.802013, [9, 11, 23]),
        (58, 4.409396, [22, 29, 58]),
        (59, 2.278523, [43, 56, 112]),
        (60, 1.0, [100, 128, 256]),
        (299, 1.0, [100, 128, 256]),
    ];
    let controller = Controller::Ramp(ramp(Law::Linear, 128.0, 1.0, 5.0));
    for (done, ratio, columns) in golden {
        let value = controller.at(&round(done, 300));
        assert!((value - ratio).abs() <= 1e-6, "round {done}: {value}, expected {ratio}");
        let kept = [100, 128, 256].map(|width| kept_columns(width, value));
        assert_eq!(kept, columns.map(|k| k.max(1)), "round {done}");
    }
}

#[test]
fn linear_law_stops_at_a_floor_above_one() {
    let controller = Controller::Ramp(ramp(Law::Linear, 128.0, 1.5, 5.0));
    let kept = |value: f64| [100, 128, 256].map(|width| kept_columns(width, value));
    let value = controller.at(&round(59, 300));
    assert!((value - 2.773490).abs() <= 1e-6, "{value}");
    assert_eq!(kept(value), [36, 46, 92]);
    for done in [60, 61, 200, 299] {
        assert_eq!(kept(controller.at(&round(done, 300))), [66, 85, 170]);
    }
}

#[test]
fn whole_run_traffic_is_the_published_share() {
    // Percent of full communication by slope, ending at ratio 1 and at 1.5, to the two decimals that are printed.
    let golden = [
        (1.0, 14.75, 14.33),
        (2.0, 57.31, 42.19),
        (3.0, 71.47, 51.46),
        (4.0, 78.56, 56.11),
        (5.0, 82.82, 58.89),
        (6.0, 85.66, 60.75),
        (7.0, 87.68, 62.08),
    ];
    for (slope, to_one, to_floor) in golden {
        for (to, percent) in [(1.0, to_one), (1.5, to_floor)] {
            let controller = Controller::Ramp(ramp(Law::Linear, 128.0, to, slope));
            // The widths of ogbn-arxiv: 128 forward only, 256 both ways, and the 40 classes both ways and whole.
            let columns = |ratio| kept_columns(128, ratio) + 2 * kept_columns(256, ratio) + 2 * 40;
            let sent: usize = (0..300).map(|done| columns(controller.at(&round(done, 300)))).sum();
            let share = sent as f64 / (300 * 720) as f64;
            assert!((share - percent / 100.0).abs() <= 5e-5 + 1e-12, "slope {slope} to {to}: {share}");
        }
    }
}

#[test]
fn every_law_runs_monotonically_from_start_to_end() {
    for law in LAWS {
        for (from, to) in [(128.0, 1.0), (128.0, 1.5), (2.0, 8.0), (1.0, 0.1), (3.0, 3.0)] {
            for slope in [1.0, 2.5, 7.0] {
                let controller = Controller::Ramp(ramp(law, from, to, slope));
                let values: Vec<f64> = (0..100).map(|done| controller.at(&round(done, 100))).collect();
                assert_eq!((values[0], values[98], values[99]), (from, to, to), "{law:?} slope {slope}");
                let downward = |pair: &[f64]| pair[0] >= pair[1];
                let upward = |pair: &[f64]| pair[0] <= pair[1];
                let monotone = if from > to { values.windows(2).all(downward) } else { values.windows(2).all(upward) };
                assert!(monotone, "{law:?} from {from} to {to}, slope {slope}: {values:?}");
                assert_eq!(controller.range(), (from.min(to), from.max(to)));
            }
        }
    }
}

#[test]
fn slope_below_one_stops_short_and_the_range_says_where() {
    let controller = Controller::Ramp(ramp(Law::Linear, 9.0, 1.0, 0.5));
    assert_eq!(controller.at(&round(99, 100)), 5.0);
    assert_eq!(controller.range(), (5.0, 9.0));
}

#[test]
fn laws_pass_through_their_middle() {
    let middle = |law| Controller::Ramp(ramp(law, 16.0, 1.0, 1.0)).at(&round(49, 100));
    assert!((middle(Law::Linear) - 8.5).abs() < 0.1);
    assert!((middle(Law::Exponential) - 4.0).abs() < 0.1);
    assert!((middle(Law::Columns) - 2.0 * 16.0 / 17.0).abs() < 0.03);
    assert_eq!(middle(Law::Fixed), 16.0);
}

#[test]
fn columns_law_raises_traffic_evenly() {
    let controller = Controller::Ramp(ramp(Law::Columns, 128.0, 1.0, 1.0));
    for done in 0..=254 {
        let share = 1.0 / controller.at(&round(done, 256));
        let line = 1.0 / 128.0 + f64::from(done) / 254.0 * (127.0 / 128.0);
        assert!((share - line).abs() < 1e-12, "round {done}: {share}, expected {line}");
    }
}

#[test]
fn staircase_takes_its_steps_and_no_others() {
    for steps in [1, 3, 8] {
        let staircase = Ramp { steps, ..ramp(Law::Staircase, 9.0, 1.0, 1.0) };
        let mut values: Vec<f64> = (0..100).map(|done| Controller::Ramp(staircase).at(&round(done, 100))).collect();
        let first = values.iter().take_while(|value| **value == 9.0).count();
        assert_eq!(first, 98_usize.div_ceil(steps as usize), "rounds before the first of {steps} steps");
        values.dedup();
        assert_eq!(values.len(), steps as usize + 1, "{values:?}");
        let stride = 8.0 / f64::from(steps);
        assert!(values.windows(2).all(|pair| (pair[0] - pair[1] - stride).abs() < 1e-12), "{values:?}");
    }
}

#[test]
fn bits_ramp_upwards() {
    let controller = Controller::Ramp(ramp(Law::Linear, 2.0, 8.0, 1.0));
    let bits = [0, 20, 40, 60, 99].map(|done| controller.at(&round(done, 62)));
    assert_eq!(bits, [2.0, 4.0, 6.0, 8.0, 8.0]);
    assert_eq!(controller.range(), (2.0, 8.0));
}

#[test]
fn runs_of_few_rounds_start_at_from_and_stay_finite() {
    for law in LAWS {
        let controller = Controller::Ramp(ramp(law, 128.0, 1.0, 5.0));
        for rounds in 0..=3 {
            assert_eq!(controller.at(&round(0, rounds)), 128.0, "{law:?}");
            for done in 1..5 {
                assert_eq!(controller.at(&round(done, rounds)), 1.0, "{law:?}, round {done} of {rounds}");
            }
        }
    }
}

#[test]
fn clocks_that_agree_on_the_phase_agree_on_the_value() {
    for clock in CLOCKS {
        for percent in [0, 25, 50, 100] {
            let (controller, reading) = on_clock(clock, percent);
            let value = controller.at(&reading);
            assert!((value - f64::from(101 - percent)).abs() < 1e-12, "{clock:?} at {percent} %: {value}");
            assert_eq!(controller.check("ratio", 1.0, 1000.0), Ok(()));
        }
        assert_eq!(on_clock(clock, 0).0.is_predictable(), matches!(clock, Clock::Epoch | Clock::Bytes));
    }
}

#[test]
fn broken_readings_keep_the_value_within_range() {
    for clock in CLOCKS {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300] {
            let (controller, _) = on_clock(clock, 0);
            let reading = Reading { done: u32::MAX, rounds: 1, elapsed: number, bytes: number, gradient: number };
            let value = controller.at(&reading);
            assert!((1.0..=101.0).contains(&value), "{clock:?} at {number}: {value}");
        }
    }
}

#[test]
fn ramp_over_bytes_takes_the_callers_budget_unless_it_has_its_own() {
    let open = Controller::Ramp(Ramp { clock: Clock::Bytes, ..ramp(Law::Linear, 3.0, 1.0, 1.0) });
    let half = Reading { bytes: 50.0, ..round(0, 10) };
    assert_eq!(open.check("ratio", 1.0, 10.0), Ok(()));
    assert_eq!(open.at(&half), 3.0);
    assert_eq!(open.with_limit(100.0).at(&half), 2.0);
    assert_eq!(open.with_limit(100.0).with_limit(50.0).at(&half), 2.0);
    assert_eq!(Controller::Fixed(2.0).with_limit(1.0), Controller::Fixed(2.0));
}

#[test]
fn kept_columns_are_at_least_one_and_at_most_all() {
    let cases = [(100, 128.0, 1), (100, 0.5, 100), (0, 4.0, 0), (7, 2.0, 3), (7, f64::INFINITY, 1), (7, 0.0, 7)];
    for (columns, ratio, kept) in cases {
        assert_eq!(kept_columns(columns, ratio), kept, "{columns} columns at ratio {ratio}");
    }
    assert_eq!(kept_columns(7, f64::NAN), 1);
}

#[test]
fn kept_columns_forgive_the_last_bit() {
    for columns in 1..=600 {
        for kept in 1..=columns {
            let ratio = columns as f64 / kept as f64;
            for near in [ratio.next_down(), ratio, ratio.next_up()] {
                assert_eq!(kept_columns(columns, near), kept, "{columns} columns at ratio {near}");
            }
        }
    }
}

#[test]
fn toml_takes_a_number_or_a_table() {
    assert_eq!(parse("ratio = 4"), Ok(Controller::Fixed(4.0)));
    assert_eq!(parse("ratio = 1.5"), Ok(Controller::Fixed(1.5)));
    let published = Controller::Ramp(ramp(Law::Linear, 128.0, 1.0, 5.0));
    assert_eq!(parse("ratio = { law = \"linear\", from = 128, to = 1, slope = 5 }"), Ok(published));
    assert_eq!(parse("[ratio]\nfrom = 128\nslope = 5.0"), Ok(published));
}

#[test]
fn toml_round_trips() {
    let laws = LAWS.into_iter().chain([Law::Fixed]);
    let ramps =
        laws.flat_map(|law| CLOCKS.map(|clock| Ramp { clock, limit: Some(1e9), steps: 3, ..ramp(law, 0.1, 7.5, 2.0) }));
    let open = Ramp { clock: Clock::Bytes, ..ramp(Law::Columns, 3.0, 1.0, 1.0) };
    for controller in ramps.chain([open]).map(Controller::Ramp).chain([Controller::Fixed(0.1)]) {
        let text = toml::to_string(&Table { ratio: controller }).expect("a table of numbers is TOML");
        assert_eq!(parse(&text), Ok(controller), "{text}");
    }
    let text = toml::to_string(&Table { ratio: on_clock(Clock::GradientNorm, 0).0 }).expect("as above");
    assert!(text.contains("clock = \"gradient_norm\""), "{text}");
}

#[test]
fn errors_in_toml_name_what_is_wrong() {
    let cases = [
        ("ratio = { from = 128, slop = 5 }", "unknown field `slop`"),
        ("ratio = { from = 128, law = \"cubic\" }", "unknown variant `cubic`"),
        ("ratio = { to = 1 }", "missing field `from`"),
        ("ratio = \"fast\"", "a number or a table"),
        ("ratio = { from = 2, steps = -1 }", "u32"),
    ];
    for (text, expected) in cases {
        let error = parse(text).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn check_names_the_key_and_what_was_expected() {
    let good = ramp(Law::Linear, 128.0, 1.0, 5.0);
    let cases = [
        (Ramp { from: f64::NAN, ..good }, "ratio.from: expected a number from 1 to 1000, found NaN"),
        (Ramp { from: 2000.0, ..good }, "ratio.from: expected a number from 1 to 1000, found 2000"),
        (Ramp { to: 0.5, ..good }, "ratio.to: expected a number from 1 to 1000, found 0.5"),
        (Ramp { slope: 0.0, ..good }, "ratio.slope: expected a number above 0, found 0"),
        (Ramp { slope: f64::INFINITY, ..good }, "ratio.slope: expected a number above 0, found inf"),
        (Ramp { steps: 0, ..good }, "ratio.steps: expected at least 1, found 0"),
        (Ramp { clock: Clock::Elapsed, ..good }, "ratio.limit: expected seconds"),
        (Ramp { clock: Clock::Bytes, limit: Some(-1.0), ..good }, "ratio.limit: expected a number above 0, found -1"),
        (Ramp { limit: Some(1.0), ..good }, "ratio.limit: expected only with the clocks"),
    ];
    assert_eq!(Controller::Ramp(good).check("ratio", 1.0, 1000.0), Ok(()));
    for (ramp, expected) in cases {
        let error = Controller::Ramp(ramp).check("ratio", 1.0, 1000.0).expect_err(expected);
        assert!(error.starts_with(expected), "{error}");
    }
    let error = Controller::Fixed(0.5).check("ratio", 1.0, f64::INFINITY).expect_err("below 1");
    assert_eq!(error, "ratio: expected a number from 1 to inf, found 0.5");
    let zero = Controller::Ramp(ramp(Law::Exponential, 0.0, 1.0, 1.0)).check("x", 0.0, 1.0);
    assert_eq!(zero, Err("x.from: expected a number above 0, found 0".to_owned()));
}

#[test]
fn fixed_law_ignores_its_clock_and_its_end() {
    let fixed = Ramp { clock: Clock::GradientNorm, ..ramp(Law::Fixed, 4.0, 1.0, 1.0) };
    let controller = Controller::Ramp(fixed);
    assert_eq!(controller.check("bits", 2.0, 8.0), Ok(()));
    assert!(controller.is_predictable());
    assert_eq!(controller.range(), (4.0, 4.0));
    assert_eq!(controller.at(&Reading { gradient: 0.0, ..round(9, 10) }), 4.0);
}
