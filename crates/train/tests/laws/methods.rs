//! The ways to send less that the laws are held against: each is a few keys on top of any schedule and model.

/// Every way to exchange rows, by its schedule.
pub const SCHEDULES: [&[&str]; 8] = [
    &["schedule.kind=synchronous"],
    &["schedule.kind=synchronous", "schedule.cache_inputs=false"],
    &["schedule.kind=pipelined"],
    &[
        "schedule.kind=pipelined",
        "schedule.late=products",
        "schedule.smooth_features=0.9",
        "schedule.smooth_gradients=0.5",
    ],
    &["schedule.kind=lazy", "schedule.start=features"],
    &["schedule.kind=lazy", "schedule.start=mlp"],
    &["schedule.kind=lazy", "schedule.start=features", "schedule.hand_on=scores"],
    &["schedule.kind=lazy", "schedule.start=mlp", "schedule.hand_on={columns=3}"],
];

pub const ARCHS: [&[&str]; 5] = [
    &["model.arch=gcn"],
    &["model.arch=sage"],
    &["model.arch=sage", "model.aggregator=max", "model.layers=3"],
    &["model.arch=gin", "model.layers=3"],
    &["model.arch=gat"],
];

/// Coders of rows whose bytes follow from shapes and rounds.
pub const CODECS: [&[&str]; 21] = [
    &[r#"messages.forward={codec="quantised",bits=1}"#, r#"messages.backward={codec="quantised",bits=2}"#],
    &[r#"messages.forward={codec="quantised",bits=4}"#, r#"messages.backward={codec="quantised",bits=8}"#],
    &[r#"messages.forward={codec="quantised",bits=16}"#, r#"messages.backward={codec="quantised",bits=32}"#],
    &[
        r#"messages.forward={codec="quantised",bits="random",period=2}"#,
        r#"messages.backward={codec="quantised",bits="random",period=3,menu=[1,16,32]}"#,
    ],
    // Inputs that never change arrive coarsely and are refined.
    &[r#"messages.forward={codec="quantised",bits={from=1,to=8}}"#, "messages.backward=half"],
    &[r#"messages.forward={codec="quantised",bits={law="staircase",from=2,to=32,steps=3},reveal=false}"#],
    // Inputs that never change arrive column by column.
    &[
        r#"messages.forward={codec="masked",ratio={from=6,slope=1.5}}"#,
        r#"messages.backward={codec="masked",ratio={from=6,slope=1.5}}"#,
    ],
    &[r#"messages.forward={codec="masked",ratio={law="columns",from=6},reveal=false}"#],
    &[
        r#"messages.forward={codec="masked",ratio=3,rescale=true,whole_last=false}"#,
        r#"messages.backward={codec="masked",ratio=3,rescale=true,whole_last=false}"#,
    ],
    &[r#"messages.forward={codec="masked",ratio=2.5,columns="prefix",inner="half",whole_last=false}"#],
    &[r#"messages.forward={codec="masked",ratio=2,inner="quantised",bits=2,whole_last=false,reveal=false}"#],
    // Both at once: new columns, and finer bits of old ones.
    &[r#"messages.forward={codec="masked",ratio={from=4},inner="quantised",bits={from=2,to=8}}"#],
    &[r#"messages.forward={codec="masked",ratio=2,inner="quantised",bits="random",period=1,whole_last=false}"#],
    &[r#"messages.layers.0.forward={codec="quantised",bits=2}"#, "messages.layers.1.forward=half"],
    &[r#"messages.layers.1.backward={codec="masked",ratio=4,whole_last=false}"#, "messages.backward=half"],
    &["messages.forward=half", "messages.backward=half", "messages.evaluation=half"],
    &[r#"messages.forward={codec="codewords",pieces=3}"#, "messages.backward=codewords"],
    &[r#"messages.forward={codec="top",keep=2,bits=4}"#, r#"messages.backward={codec="top",keep=3,bits=8}"#],
    &[
        r#"messages.forward={codec="grouped",rows=8,inner="quantised",bits=2}"#,
        r#"messages.backward={codec="grouped",inner="quantised",bits=4}"#,
    ],
    &[
        r#"messages.forward={codec="largest",share=0.3,sizes=4}"#,
        "messages.backward=largest",
        r#"messages.parameters={codec="largest",share=0.1}"#,
    ],
    &[
        r#"messages.forward={codec="low_rank",rank=2}"#,
        r#"messages.backward={codec="low_rank",rank="classes",inner="half"}"#,
        r#"messages.parameters={codec="low_rank",rank="classes",inner="quantised",bits=8}"#,
    ],
];

/// Everything else whose bytes follow from shapes and rounds.
pub const OTHERS: [&[&str]; 21] = [
    &[r#"messages.selection={kind="boundary_sample",rate=0.3}"#],
    &[r#"messages.selection={kind="boundary_sample",rate=0}"#],
    &[r#"messages.selection={kind="boundary_sample",rate=1}"#],
    &[
        r#"messages.selection={kind="boundary_sample",rate=0.5}"#,
        r#"messages.forward={codec="masked",ratio={from=3},inner="quantised",bits="random",period=2}"#,
    ],
    &[
        r#"messages.selection={kind="boundary_sample",rate=0.2}"#,
        r#"messages.forward={codec="quantised",bits={from=1,to=4}}"#,
        "messages.evaluation_inputs=training",
    ],
    &["messages.selection=none"],
    &[r#"messages.selection={kind="none",degrees="global"}"#, "messages.evaluation=none"],
    &["messages.evaluation=none"],
    &[r#"messages.evaluation={codec="quantised",bits=8}"#, "messages.parameters=half"],
    &[r#"messages.parameters={codec="quantised",bits=4}"#],
    &[r#"messages.parameters={codec="quantised",bits=2}"#, "messages.error_feedback=false"],
    &["train.power_sgd={rank=1}"],
    &["train.power_sgd={rank=\"classes\"}", "messages.forward=half", "model.hidden=24"],
    &["train.sync_every=3"],
    &["train.sync_every=3", "messages.parameters=largest"],
    &["train.sync_every=2", "train.correction=scaffold", r#"messages.parameters={codec="quantised",bits=8}"#],
    &["train.sync_every=2", "train.outer={}", r#"messages.parameters={codec="quantised",bits=8}"#],
    &["train.sync_every=3", r#"messages.parameters={codec="quantised",bits=8}"#, "messages.forward=half"],
    &["train.sync_every=2", r#"messages.forward={codec="masked",ratio={from=4}}"#],
    &[
        r#"messages.forward={codec="masked",ratio={clock="bytes",from=8,limit=600000},whole_last=false}"#,
        r#"messages.backward={codec="masked",ratio={clock="bytes",from=8,limit=600000},whole_last=false}"#,
    ],
    &[r#"messages.forward={codec="quantised",bits={clock="bytes",from=1,to=16,limit=400000}}"#, "train.sync_every=2"],
];

/// Methods that decide while they run how much they send: their prediction is a bound.
pub const BOUNDED: [&[&str]; 11] = [
    &[
        r#"messages.forward={codec="entropy",inner="quantised",bits=4}"#,
        r#"messages.backward={codec="entropy",inner="grouped/quantised",bits=4}"#,
        r#"messages.parameters={codec="entropy",inner="low_rank/quantised",rank=2,bits=8}"#,
    ],
    &[
        r#"messages.forward={codec="quantised",bits="adaptive",period=2,menu=[1,2,4,8,16,32]}"#,
        r#"messages.backward={codec="quantised",bits="adaptive",period=1,menu=[4,16],lambda=0.9}"#,
    ],
    &[
        r#"messages.forward={codec="quantised",bits="adaptive",period=2}"#,
        r#"messages.backward={codec="quantised",bits="adaptive",period=3}"#,
    ],
    &[
        r#"messages.forward={codec="masked",ratio=2,inner="quantised",bits="adaptive",period=1,whole_last=false}"#,
        r#"messages.selection={kind="boundary_sample",rate=0.5}"#,
    ],
    &["messages.skip={change=0.3,staleness=3}"],
    &["messages.skip={change=0.5,staleness=2}", r#"messages.forward={codec="quantised",bits=4}"#],
    &[
        r#"messages.forward={codec="masked",ratio={clock="bytes",from=8,limit=600000},whole_last=false}"#,
        r#"messages.backward={codec="quantised",bits="adaptive",period=2}"#,
    ],
    &[r#"messages.backward={codec="masked",ratio={clock="gradient_norm",from=4},whole_last=false}"#],
    &[
        r#"messages.forward={codec="quantised",bits="adaptive",period=2}"#,
        "messages.skip={change=0.2,staleness=4}",
        "train.sync_every=2",
    ],
    &["train.sync_every=4", "train.sync_drift=0.1"],
    &[
        "train.sync_every=6",
        "train.sync_drift=0.12",
        "train.sync_least=2",
        r#"messages.parameters={codec="quantised",bits=4}"#,
        "messages.forward=half",
    ],
];

/// A method and a clock that no second run reads alike.
pub const TIMED: [&[&str]; 2] = [
    &[r#"messages.forward={codec="masked",ratio={clock="elapsed",from=8,limit=0.02},whole_last=false,reveal=false}"#],
    &[r#"messages.forward={codec="quantised",bits="adaptive",period=2}"#, r#"messages.costs="measured""#],
];

/// Whether these keys go together: an average over rows or columns that are drawn anew in every round is refused, and
/// so is to reveal inputs that cross in every round.
pub fn go_together(keys: &[&str]) -> bool {
    let has = |what: &str| keys.iter().any(|key| key.contains(what));
    let random_columns = keys.iter().any(|key| key.contains("masked") && !key.contains("prefix"));
    !(has("smooth") && (has("boundary_sample") || random_columns) || has("reveal=") && has("cache_inputs=false"))
}
