use super::*;
use crate::config::{CodecChoice, KEYS, KeyDoc, serialised_keys};
use proptest::prelude::*;

fn parse(text: &str, set: &[&str]) -> Result<Config> {
    Config::parse(text, &set.iter().map(|s| s.to_string()).collect::<Vec<_>>())
}

/// Keys that are written down only where somebody has set them.
const OPTIONAL: &[&str] = &[
    "data.part",
    "data.features_path",
    "data.nodes_path",
    "data.source",
    "data.target",
    "data.weight",
    "data.relation",
    "data.bipartite",
    "data.unknown",
    "data.id",
    "data.label",
    "data.label_separator",
    "data.split_column",
    "data.features_columns",
    "data.ignore",
    "data.missing",
    "data.dates",
    "data.categories",
    "data.header",
    "data.duplicates",
    "data.keep_self_loops",
    "data.typed",
    "partition.balance_edges",
    "partition.column",
    "partition.file",
    "data.features_in",
    "partition.order",
    "model.self_loops",
    "model.inputs",
    "train.class_weights",
    "train.horizon",
    "train.part_figures",
    "train.sync_drift",
    "train.outer",
    "train.correction",
    "train.power_sgd",
    "schedule.hand_on",
    "schedule.limit",
    "schedule.evaluator",
    "averaging.drop",
    "transport.fault",
    "transport.speeds",
    "transport.faults",
    "messages.auto",
    "messages.target",
    "messages.skip",
    "policy.deny",
    "policy.allow",
    "policy.label_epsilon",
    "policy.label_group",
    "policy.label_secret",
];

#[test]
fn every_key_is_documented_and_every_documented_key_exists() {
    for key in serialised_keys() {
        assert!(KEYS.iter().any(|k| k.key == key), "{key} is not in KEYS");
    }
    for KeyDoc { key, .. } in KEYS.iter() {
        let known = serialised_keys().iter().any(|k| k == key) || OPTIONAL.contains(key);
        assert!(known, "{key} is documented but does not exist");
    }
}

#[test]
fn overrides_win_and_need_no_quotes() {
    let config = parse(
        "[model]\narch = \"gcn\"\n[train]\nlr = 0.1",
        &[
            "model.arch=gat",
            "train.lr=0.5",
            "schedule.kind=lazy",
            "schedule.rounds=[3, 4]",
            "messages.layers.1.forward=half",
        ],
    )
    .expect("valid");
    assert_eq!(
        (config.model.arch.as_str(), config.train.lr, config.rounds_of(1), config.rounds_of(2)),
        ("gat", 0.5, 4, 200)
    );
    assert_eq!(config.messages.layers["1"].forward, Some(CodecChoice::named("half")));
}

#[test]
fn mistakes_are_named_with_the_nearest_right_word() {
    for (text, words) in [
        ("[train]\nepoch = 3", "did you mean \"train.epochs\"?"),
        ("[trian]\nepochs = 3", "did you mean \"train\"?"),
        ("[model]\narch = \"gatt\"", "did you mean \"gat\"?"),
        ("[model]\ndropout = 1.0", "model.dropout = 1"),
        ("[train]\nlr = -1", "train.lr"),
        ("[train]\nepsilon = 0", "train.epsilon = 0"),
        ("[train]\nlr = \"fast\"", "lr"),
        ("[data]\nsplit = { train = 2.0, val = 3 }", "data.split.train"),
        ("[transport]\nshape = \"warp\"", "transport.shape"),
        ("schedule = { kind = 'lazy', hand_on = { columns = 0 } }", "schedule.hand_on.columns = 0: expected 1 to 255"),
        (
            "schedule = { kind = 'lazy', hand_on = { columns = 16 } }\nmodel = { hidden = 16 }",
            "schedule.hand_on.columns = 16: expected 1 to 15, fewer than hidden rows have",
        ),
        ("schedule = { kind = 'lazy', hand_on = 'columns' }", "or { columns = k }, found \"columns\""),
        ("schedule = { kind = 'lazy', hand_on = { columns = -1 } }", "or { columns = k }, found { columns = -1 }"),
        ("schedule = { kind = 'lazy', hand_on = { columns = 2, rows = 3 } }", "schedule.hand_on"),
        ("model = 3", "expected a section"),
    ] {
        let error = parse(text, &[]).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_resolved_configuration_reads_back_as_itself() {
    let text = "
        data = { split = { train = 20, val = 500, seed = 1 } }
        transport = { fault = { rank = 1, round = 2, kind = 'stall' } }
    ";
    let config = parse(text, &[]).expect("valid");
    assert_eq!(parse(&config.to_toml().expect("plain values"), &[]).expect("its own text"), config);
}

#[test]
fn a_resolved_configuration_has_the_digits_that_were_typed_and_no_key_that_nothing_reads() {
    let text =
        parse("train = { lr = 0.003 }\nmodel = { dropout = 0.3 }", &[]).expect("valid").to_toml().expect("plain");
    assert!(text.contains("lr = 0.003\n") && text.contains("dropout = 0.3\n"), "{text}");
    assert!(!text.contains("heads") && !text.contains("start =") && !text.contains("momentum"), "{text}");
}

#[test]
fn an_option_that_the_chosen_member_does_not_read_is_refused_with_who_does() {
    for (text, words) in [
        ("model = { heads = 8 }", "model.heads: model.arch = \"sage\" does not read it; \"gat\" does"),
        ("schedule = { start = 'mlp' }", "\"lazy\" and \"averaging\" do"),
        ("schedule = { hand_on = 'scores' }", "schedule.hand_on: schedule.kind = \"synchronous\" does not read it"),
        ("schedule = { kind = 'pipelined', hand_on = { columns = 4 } }", "\"lazy\" and \"averaging\" do"),
        ("schedule = { kind = 'averaging', corrections = 3 }", "\"llcg\" does"),
        ("schedule = { kind = 'psgd_pa', mean = 'rows' }", "\"averaging\" and \"llcg\" do"),
        ("train = { momentum = 0.5 }", "\"sgd\" does"),
        ("train = { optimiser = 'sgd', epsilon = 1e-6 }", "\"adam\" and \"adamw\" do"),
        ("partition = { objective = 'volume' }", "\"multilevel\" does"),
        ("partition = { imbalance = 0.1 }", "\"multilevel\" and \"super_node\" and \"streaming\" do"),
        ("partition = { method = 'streaming', clusters = 5 }", "\"super_node\" does"),
        ("messages = { selection = { kind = 'all', rate = 0.5 } }", "\"boundary_sample\" does"),
        ("messages = { forward = { codec = 'half', bits = 4 } }", "\"quantised\" does"),
        ("messages = { forward = { codec = 'quantised', ratio = 4 } }", "\"masked\" does"),
        ("messages = { forward = { codec = 'quantised', bits = 4, period = 2 } }", "\"random\" and \"adaptive\""),
        ("messages = { forward = { codec = 'masked', spread = 2 } }", "it reads ratio"),
        ("messages = { forward = { codec = 'quantised', bits = 4, lambda = 1 } }", "only bits = \"adaptive\" does"),
        ("messages = { forward = { codec = 'quantised', bits = 'random', lambda = 1 } }", "\"adaptive\" does"),
        ("messages = { forward = { codec = 'masked', lambda = 1 } }", "\"quantised\" does"),
        ("messages = { forward = { codec = 'quantised', bits = 4, reveal = false } }", "only bits that are a ramp do"),
        ("messages = { forward = { codec = 'half', reveal = false } }", "\"half\" does not read it"),
    ] {
        let error = parse(text, &[]).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    assert!(parse("model = { arch = 'gat', heads = 8 }", &[]).is_ok());
}

/// A file that is for one kind of training serves another where its keys are taken back.
#[test]
fn keys_of_a_file_can_be_taken_back_where_nothing_reads_them_any_more() {
    let file = "model = { layers = 2 }\nbatch = { size = 64, fanouts = [5, 5], cache = '1 MB', ahead = 1 }";
    let all = ["batch.fanouts=[]", "batch.cache=256 MB", "batch.ahead=2"];
    for set in ["batch.size=0", "batch.kind=clusters"] {
        let error = parse(file, &[set]).expect_err(set).to_string();
        assert!(error.contains("batch.ahead"), "{set}: {error}");
        let config = parse(file, &[&[set][..], &all].concat()).expect(set);
        assert!(config.batch.fanouts.is_empty() && config.batch.ahead == 2, "{set}");
    }
    let error = parse(file, &["batch.size=0", "batch.cache=256 MB"]).expect_err("two are left").to_string();
    let are_named = ["batch.ahead", "batch.fanouts", "batch.cache"].map(|key| error.contains(key));
    assert_eq!(are_named, [true, true, false], "{error}");
    assert!(parse("batch = { size = 64, kind = 'clusters', fanouts = [] }", &[]).is_ok());
    for idle in ["fanouts = [2, 2]", "cache = '1 MB'", "redraw = 2", "ahead = 3"] {
        let error = parse(&format!("batch = {{ size = 64, kind = 'clusters', {idle} }}"), &[]).expect_err(idle);
        assert!(error.to_string().contains("\"neighbours\" does"), "{idle}: {error}");
    }
    for (text, words) in [
        ("batch = { size = 64, cache = -1 }", "batch.cache = -1: expected bytes, such as 256 MB"),
        ("batch = { size = 64, cache = [1] }", "batch.cache = [1]: expected bytes, such as 256 MB"),
        ("batch = { size = 64, ahead = 100000 }", "batch.ahead = 100000: expected at most 64"),
        ("task = { split = 0.1 }", "task.split = 0.1: expected \"given\", or shares in braces, such as { val"),
    ] {
        let error = parse(text, &[]).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

/// Only what goes forward into a layer whose inputs cross once is revealed; which layers these are, stages tell.
#[test]
fn reveal_is_refused_where_nothing_crosses_once() {
    const MASK: &str = "{ codec = 'masked', reveal = false }";
    let plan = |text: &str, more: &str| {
        let more: Vec<&str> = more.split_whitespace().collect();
        let config = parse(&text.replace("MASK", MASK), &more).expect("valid without stages");
        Plan::for_model(&Members::default(), &config, [12, 4]).map(drop).map_err(|error| error.to_string())
    };
    for (text, more) in [
        ("messages = { forward = MASK }", "schedule.cache_inputs=false"),
        ("messages = { forward = MASK }", "model.arch=mlp"),
        ("messages = { backward = MASK }", ""),
        ("messages = { layers = { 1 = { forward = MASK } } }", ""),
        ("messages = { layers = { 0 = { backward = MASK } } }", ""),
        ("messages = { forward = MASK, layers = { 0 = { forward = 'half' } } }", ""),
    ] {
        let error = plan(text, more).expect_err(text);
        assert!(error.contains(".reveal: nothing reads it"), "{text} {more}: {error}");
    }
    for (text, more) in [
        ("messages = { forward = MASK }", ""),
        ("messages = { forward = MASK }", "schedule.kind=lazy"),
        ("messages = { layers = { 0 = { forward = MASK } } }", "schedule.kind=pipelined"),
        ("messages = { layers = { 1 = { forward = MASK } } }", "schedule.kind=lazy"),
    ] {
        assert_eq!(plan(text, more), Ok(()), "{text} {more}");
    }
}

/// A mask that leaves every message of a round whole is said to, with what would change it.
#[test]
fn masks_that_cannot_act_are_noted_before_anything_runs() {
    let both = "messages = { forward = MASK, backward = MASK }";
    let notes = |text: &str, more: &str, mask: &str| {
        let more: Vec<&str> = more.split_whitespace().collect();
        let config = parse(&text.replace("MASK", mask), &more).expect("valid");
        Plan::for_model(&Members::default(), &config, [12, 4]).expect("a plan").notes()
    };
    let (masked, all) = ("{ codec = 'masked', ratio = 4 }", "{ codec = 'masked', ratio = 4, whole_last = false }");
    let forward = "messages.forward: no message of a round is masked: \
        the last layer travels whole (whole_last = false masks it); only inputs that cross once are";
    let backward = "messages.backward: no message of a round is masked: \
        the last layer travels whole (whole_last = false masks it); inputs that cross once send no gradients back";
    assert_eq!(notes(both, "model.layers=2", masked), [forward, backward]);
    let whole = "the last layer travels whole (whole_last = false masks it)";
    for (text, more, mask, expected) in [
        (both, "model.layers=3", masked, vec![]),
        (both, "model.layers=2", all, vec![]),
        ("messages = { backward = MASK }", "model.layers=2", masked, vec![backward.to_owned()]),
        ("messages = { layers = { 1 = { backward = MASK } } }", "model.layers=2", masked, vec![backward.to_owned()]),
        (
            both,
            "model.layers=2 schedule.cache_inputs=false",
            masked,
            vec![format!("messages.backward: no message of a round is masked: {whole}")],
        ),
        ("", "model.layers=2", masked, vec![]),
    ] {
        assert_eq!(notes(text, more, mask), expected, "{text} {more} {mask}");
    }
    let lazy = notes(both, "schedule.kind=lazy", masked);
    assert!(lazy[0].ends_with("masked: only inputs that cross once are"), "{lazy:?}");
    assert!(lazy[1].ends_with("masked: inputs that cross once send no gradients back"), "{lazy:?}");
}

/// Gradients that come back in other columns than rows went out in are said to.
#[test]
fn masks_of_one_way_alone_are_noted_before_anything_runs() {
    let notes = |keys: &[&str]| {
        let config = parse("", &[&["model.layers=3"], keys].concat()).expect("valid");
        Plan::for_model(&Members::default(), &config, [12, 4]).expect("a plan").notes()
    };
    let mask = |way: &str, more: &str| format!("messages.{way}={{codec=\"masked\",ratio=4{more}}}");
    let forward = mask("forward", "");
    for back in [
        "messages.backward=exact",
        &mask("backward", ",columns=\"prefix\""),
        &mask("backward", ",rescale=true"),
        "messages.backward={codec=\"masked\",ratio=2}",
        &mask("layers.2.backward", ",whole_last=false"),
    ] {
        let found = notes(&[&forward, back]);
        assert!(found.len() == 1 && found[0].starts_with("layer 1: gradients do not come back"), "{back}: {found:?}");
    }
    for keys in [
        vec![forward.clone(), mask("backward", "")],
        vec![forward.clone(), mask("backward", ",inner=\"quantised\",bits=4")],
        vec![mask("backward", "")],
        vec![mask("layers.0.forward", "")],
        vec![forward, "schedule.kind=lazy".to_owned()],
    ] {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        assert!(notes(&keys).iter().all(|note| !note.contains("come back")), "{keys:?}");
    }
}

/// Edges that the data hold out are edges like all others where a split is drawn, which nobody would guess.
#[test]
fn edges_that_the_data_hold_out_and_a_drawn_split_does_not_are_noted() {
    let counts = GlobalCounts { nodes: 40, edges: 90, columns: 12, held: Some([4, 7]), ..GlobalCounts::default() };
    let notes = |split: &str, counts: &GlobalCounts| {
        let config = parse("", &["task.kind=link_prediction", split]).expect("valid");
        Plan::with(&Members::default(), &config, counts).expect("a plan").notes()
    };
    let found = notes("task.split={ val = 0.1, test = 0.2 }", &counts);
    assert!(found.len() == 1 && found[0].contains("the 11 that the data hold out"), "{found:?}");
    assert_eq!(notes("task.split=given", &counts), Vec::<String>::new());
    let none = GlobalCounts { held: None, ..counts };
    assert_eq!(notes("task.split={ val = 0.1, test = 0.2 }", &none), Vec::<String>::new());
}

/// A key that another key leaves without a reader is said to, and not where it has one.
#[test]
fn keys_that_nothing_reads_are_noted_before_anything_runs() {
    let counts = GlobalCounts { nodes: 40, edges: 90, train: 20, columns: 12, classes: 4, ..GlobalCounts::default() };
    let notes = |keys: &str| {
        let keys: Vec<&str> = keys.split_whitespace().collect();
        let config = parse("", &keys).expect("valid");
        let notes = Plan::with(&Members::default(), &config, &counts).expect("a plan").notes();
        notes.into_iter().filter(|note| !note.contains("reads no edges")).collect::<Vec<String>>()
    };
    let adaptive = "messages.backward={codec=\"quantised\",bits=\"adaptive\"}";
    let eight = "messages.parameters={codec=\"quantised\",bits=8}";
    for (keys, key, reader) in [
        ("messages.forward=half messages.selection=none", "messages.forward and ", "messages.selection=all"),
        ("messages.forward=half model.arch=mlp", "messages.forward and ", "model.arch=gcn"),
        ("messages.backward=half schedule.kind=lazy", "messages.backward: ", "schedule.kind=synchronous"),
        ("messages.costs=measured", "messages.costs = \"measured\": ", adaptive),
        ("messages.error_feedback=false", "messages.error_feedback = false: ", eight),
        ("transport.shape_sleeps=true", "transport.shape_sleeps = true: ", "transport.shape=20mbit,80ms"),
        ("train.patience=5 train.eval_every=0", "train.patience: ", "train.eval_every=2"),
        ("messages.skip={staleness=1}", "messages.skip.staleness: ", "messages.skip={staleness=2}"),
        ("messages.skip={} schedule.kind=lazy", "messages.skip: ", "schedule.kind=synchronous"),
        // Batches fetch what their first layer reads, and send no gradients back.
        ("messages.backward=half batch.size=4", "messages.backward: ", "batch.size=0"),
        ("messages.backward=half batch.size=4 task.kind=link_prediction", "messages.backward: ", "batch.size=0"),
        ("messages.layers.1.forward=half batch.size=4", "messages.layers: ", "batch.size=0"),
        ("messages.evaluation_inputs=training batch.size=4", "messages.evaluation_inputs = ", "batch.size=0"),
        ("batch.size=4 messages.forward=half batch.kind=clusters", "messages.forward and ", "batch.kind=neighbours"),
        ("batch.size=4 batch.fanouts=[3,3] schedule.kind=lazy", "batch.fanouts, ", "schedule.kind=synchronous"),
        ("batch.size=4 batch.cache=1MB messages.selection=none", "batch.cache: ", "messages.selection=all"),
    ] {
        let found = notes(keys);
        assert!(found.len() == 1 && found[0].starts_with(key), "{keys}: {found:?}");
        assert_eq!(notes(&format!("{keys} {reader}")), Vec::<String>::new(), "{keys} {reader}");
    }
    // Embeddings of pairs' ends cross in every round, and their gradients, whatever layers read.
    for keys in ["messages.forward=half model.arch=mlp", "messages.backward=half model.layers=1"] {
        assert_eq!(notes(&format!("task.kind=link_prediction {keys}")), Vec::<String>::new(), "{keys}");
    }
}

/// What the data say of edges and a model does not read is said once, with who reads it; each member says what it
/// reads.
#[test]
fn data_that_a_model_does_not_read_are_noted_with_who_reads_them() {
    let notes = |keys: &str, weighted: bool, relations: usize| {
        let keys: Vec<&str> = keys.split_whitespace().collect();
        let sizes =
            GlobalCounts { nodes: 40, edges: 90, train: 20, columns: 12, classes: 4, ..GlobalCounts::default() };
        let counts = GlobalCounts { weighted, relations, ..sizes };
        Plan::with(&Members::default(), &parse("", &keys).expect("valid"), &counts).expect("a plan").notes()
    };
    let (max, links) = ("model.arch=sage model.aggregator=max", "task.kind=link_prediction");
    for arch in ["model.arch=gat", max] {
        let found = notes(arch, true, 0);
        assert!(found.len() == 1 && found[0].contains("reads no weights of edges"), "{found:?}");
        assert!(found[0].ends_with("gcn, sage, gin and rgcn read them"), "{found:?}");
        assert_eq!(notes(arch, false, 0), Vec::<String>::new());
        let found = notes(&format!("{links} {arch}"), true, 0);
        assert!(found.len() == 1 && found[0].contains("reads no weights of edges"), "{found:?}");
    }
    assert!(notes(max, true, 0)[0].starts_with("model.arch = \"sage\" with this model.aggregator reads"));
    for arch in ["gcn", "sage", "gin"] {
        assert_eq!(notes(&format!("model.arch={arch}"), true, 0), Vec::<String>::new(), "{arch}");
    }
    for arch in ["gcn", "sage", "gin", "gat"] {
        let found = notes(&format!("model.arch={arch}"), false, 3);
        assert!(found.len() == 1 && found[0].contains("reads no relations"), "{found:?}");
        assert!(found[0].contains("are of 3") && found[0].ends_with("rgcn tells them apart"), "{found:?}");
        assert_eq!(notes(&format!("model.arch={arch}"), false, 1), Vec::<String>::new(), "{arch}");
    }
    assert_eq!(notes("model.arch=rgcn", false, 3), Vec::<String>::new());
    let found = notes("model.arch=rgcn", true, 3);
    assert!(found.len() == 1 && found[0].contains("by the weights of edges"), "{found:?}");
    let found = notes("model.arch=mlp", true, 3);
    assert!(
        found.len() == 1 && found[0].contains("the 90 edges of these data, with their weights and their relations,")
    );
    assert!(found[0].ends_with("gcn, sage, gin, gat and rgcn read them"), "{found:?}");
    for (decoder, relational) in [("dot", false), ("mlp", false), ("distmult", true)] {
        let found = notes(&format!("{links} model.arch=rgcn task.decoder={decoder}"), false, 3);
        let says = |found: &[String]| found.len() == 1 && found[0].ends_with("distmult tells them apart");
        assert!(if relational { found.is_empty() } else { says(&found) }, "{decoder}: {found:?}");
    }
    // Both, of which the decoder reads relations and the layer does not.
    let found = notes(&format!("{links} task.decoder=distmult"), false, 3);
    assert!(found.len() == 1 && found[0].contains("all pass messages alike"), "{found:?}");
}

#[test]
fn a_clock_of_gradients_is_refused_where_models_are_averaged() {
    let ramp = "messages = { backward = { codec = 'masked', ratio = { clock = 'gradient_norm', from = 4 } } }";
    assert!(parse(ramp, &[]).is_ok());
    let error = parse(ramp, &["train.sync_every=2"]).expect_err("no gradient is summed").to_string();
    assert!(error.contains("gradient_norm") && error.contains("train.sync_every = 2"), "{error}");
}

/// What is skipped, averaged or late stands for the same rows and columns, or is refused.
#[test]
fn what_cannot_stand_in_for_other_columns_is_refused() {
    let mask = |columns: &str| format!("messages.forward={{codec=\"masked\",ratio=4,columns=\"{columns}\"}}");
    let (random, prefix) = (mask("random"), mask("prefix"));
    let (pipelined, skip) = ("schedule.kind=pipelined", "messages.skip={change=0.1}");
    for smooth in ["schedule.smooth_features=0.5", "schedule.smooth_gradients=0.5"] {
        let error = parse("", &[pipelined, smooth, &random]).expect_err(smooth).to_string();
        assert!(error.contains("columns that are drawn anew"), "{error}");
        assert!(parse("", &[pipelined, smooth, &prefix]).is_ok());
    }
    for mask in [&random, &prefix] {
        let error = parse("", &[skip, mask]).expect_err(skip).to_string();
        assert!(error.contains("messages.skip with a mask"), "{error}");
        assert!(parse("", &[pipelined, mask]).is_ok());
    }
}

/// Editors complete what the schema lists.
#[test]
fn the_schema_lists_every_member_that_a_closed_list_stands_for() {
    let schema = crate::config::schema();
    let members = Members::default();
    let tasks: Vec<&str> = members.tasks.names().collect();
    let batchings: Vec<&str> = members.batchings.names().collect();
    for (list, names) in [("TaskChoice", tasks), ("BatchKind", batchings)] {
        let choices = schema.pointer(&format!("/$defs/{list}/oneOf")).and_then(|choices| choices.as_array());
        let choices = choices.unwrap_or_else(|| panic!("no {list} in the schema"));
        let listed: Vec<&str> = choices.iter().filter_map(|choice| choice["const"].as_str()).collect();
        assert_eq!(listed, names, "{list}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*", set in "\\PC*") {
        let _ = parse(&text, &[&set]);
    }

    #[test]
    fn no_value_of_a_real_key_makes_the_parser_panic(key in 0..KEYS.len(), value in "\\PC{0,12}") {
        let _ = parse("", &[&format!("{}={value}", KEYS[key].key)]);
    }
}
