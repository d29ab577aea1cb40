//! Policies and gates.

use laconic_federation::{Crossing, Decision, Direction, Gate, Policy, RULES_MAX, Way};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::{NAMES, VOCABULARY, contract, policy, says};

fn crossing<'a>(way: Way, peer: &'a str, content: &'a str, bytes: u64) -> Crossing<'a> {
    Crossing { way, peer, content, purpose: "training", layer: 1, direction: Direction::Forward, bytes }
}

fn denied(decision: Decision, words: &[&str]) {
    match decision {
        Decision::Allowed { rule } => panic!("allowed by {rule}, but {words:?}"),
        Decision::Denied { why } => says(Err::<(), _>(why), words),
    }
}

#[test]
fn what_no_rule_allows_is_denied() {
    let nothing = policy("version = 1");
    for (content, _) in VOCABULARY.contents.iter().filter(|content| content.0 != "agreement") {
        for way in [Way::Out, Way::In] {
            denied(nothing.decide(&crossing(way, "south", content, 0)), &["no rule allows it", content, "south"]);
        }
    }
    for way in [Way::Out, Way::In] {
        assert_eq!(nothing.decide(&crossing(way, "south", "agreement", 1)), Decision::Allowed { rule: 0 });
    }
    let all = policy("version = 1\nallow = [{ content = \"*\" }]");
    assert_eq!(all.decide(&crossing(Way::Out, "south", "features", 1)), Decision::Allowed { rule: 1 });
    denied(all.decide(&crossing(Way::In, "south", "features", 1)), &["no rule"]);
    denied(all.decide(&crossing(Way::Out, "south", "secrets", 1)), &["knows no such"]);
    let other = Crossing { purpose: "leisure", ..crossing(Way::Out, "south", "features", 1) };
    denied(all.decide(&other), &["knows no such", "leisure"]);
}

#[test]
fn deny_beats_allow_and_names_rule_and_line() {
    let text = "version = 1\n[[allow]]\ncontent = \"*\"\n[[accept]]\ncontent = \"*\"\n[[deny]]\ncontent = \"rows\"\n\
        [[deny]]\ncontent = \"models\"\nto = \"west\"\n[[deny]]\ncontent = \"figures\"\nfrom = [\"west\"]\n";
    let policy = policy(text);
    for way in [Way::Out, Way::In] {
        denied(policy.decide(&crossing(way, "south", "features", 1)), &["rule 3 (deny, line 6)"]);
    }
    denied(policy.decide(&crossing(Way::Out, "west", "models", 1)), &["rule 4 (deny, line 8)", "to west"]);
    assert_eq!(policy.decide(&crossing(Way::In, "west", "models", 1)), Decision::Allowed { rule: 2 });
    assert_eq!(policy.decide(&crossing(Way::Out, "south", "models", 1)), Decision::Allowed { rule: 1 });
    denied(policy.decide(&crossing(Way::In, "west", "figures", 1)), &["rule 5", "from west"]);
    assert_eq!(policy.decide(&crossing(Way::Out, "west", "figures", 1)), Decision::Allowed { rule: 1 });
}

#[test]
fn names_that_there_are_not_are_refused_with_the_nearest_one() {
    let wrong = |rule: &str, words: &[&str]| {
        says(Policy::parse(&format!("version = 1\n[[allow]]\n{rule}\n"), &VOCABULARY), words);
    };
    wrong("content = \"feature\"", &["rule 1 (allow, line 2): content", "did you mean \"features\"", "rows"]);
    wrong("content = [\"ids\", \"lables\"]", &["did you mean \"labels\"", "training_labels"]);
    wrong("content = \"ids:trainin\"", &["did you mean \"training\"", "evaluation"]);
    wrong("content = \"agreement\"", &["always passes"]);
    wrong("content = \"*:evaluation\"\nfrom = \"*\"", &["from", "`to`"]);
    wrong("content = []", &["content", "one or more"]);
    wrong("content = 3", &["content"]);
    wrong("contents = \"ids\"", &["line 3", "contents", "`content`", "`max_bytes`"]);
    wrong("content = \"ids\"\nto = \"South\"", &["to", "a to z"]);
    wrong("content = \"ids\"\nto = [\"*\", \"south\"]", &["to", "alone"]);
    wrong("content = \"ids\"\nlayers = [65536]", &["layers", "65535"]);
    wrong("content = \"ids\"\ndirection = \"up\"", &["line 4", "forward", "reverse"]);
    wrong("content = \"ids\"\nmax_bytes = \"50 mb\"", &["max_bytes", "50 MB"]);
    wrong("content = \"ids\"\nmax_bytes = -1", &["max_bytes"]);
    let whole = |text: &str, words: &[&str]| says(Policy::parse(text, &VOCABULARY), words);
    whole("", &["version"]);
    whole("version = 2", &["version", "2", "1"]);
    whole("version = 1\n[limit]", &["limit", "`limits`"]);
    whole("version = 1\n[limits]\nuntil = \"soon\"", &["limits.until", "2027-03-31"]);
    whole("version = 1\n[limits]\nruns = [\"Stroke\"]", &["limits.runs", "*"]);
    whole("version = 1\n[[deny]]\ncontent = \"ids\"\nmax_bytes = 1", &["max_bytes"]);
    whole("version = 1\n[[deny]]\ncontent = \"ids\"\nto = \"south\"\nfrom = \"south\"", &["from", "a rule for each"]);
    whole("version = 1\n[[accept]]\ncontent = \"ids\"\nto = \"south\"", &["to", "`from`"]);
    let many = "[[allow]]\ncontent = \"ids\"\n".repeat(RULES_MAX + 1);
    whole(&format!("version = 1\n{many}"), &["257", "256"]);
    whole(&format!("version = 1\n# {}", "\"".repeat(40_000)), &["audit log", "shorten"]);
}

#[test]
fn a_policy_admits_runs_by_name_and_until_a_day() {
    let open = policy("version = 1");
    let day = |text: &str| text.parse().unwrap();
    open.admits("stroke-3", day("2999-01-01")).unwrap();
    let limited = policy("version = 1\n[limits]\nruns = [\"stroke-*\", \"test\"]\nuntil = 2027-03-31");
    limited.admits("stroke-3", day("2027-03-31")).unwrap();
    limited.admits("test", day("2026-03-31")).unwrap();
    says(limited.admits("test-2", day("2026-03-31")), &["limits.runs", "test-2", "stroke-*"]);
    says(limited.admits("test", day("2027-04-01")), &["limits.until", "2027-03-31", "2027-04-01"]);
}

#[test]
fn a_template_allows_what_a_first_policy_should_and_explains_the_rest() {
    let text = Policy::template(&VOCABULARY);
    let first = policy(&text);
    for (content, what) in VOCABULARY.contents {
        assert!(text.contains(what), "{content}");
        let fine = VOCABULARY.first.contains(content) || VOCABULARY.always.contains(content);
        for way in [Way::Out, Way::In] {
            assert_eq!(first.decide(&crossing(way, "south", content, 1)).is_allowed(), fine, "{content}");
        }
    }
    // Without the signs that hide them, the other lines are rules too.
    let all = policy(&text.replace("    # \"", "    \"").replace("# [limits]", "[limits]").replace("# until", "until"));
    assert!(all.decide(&crossing(Way::Out, "south", "features", 1)).is_allowed());
    says(all.admits("any", "2027-04-01".parse().unwrap()), &["until"]);
    let text = text.replace("# max_bytes", "max_bytes").replace("# [limits]", "[limits]");
    denied(policy(&text).decide(&crossing(Way::Out, "south", "models", 2_000_000_001)), &["limits.max_bytes"]);
}

#[test]
fn sites_that_the_contract_does_not_have_are_named() {
    let text = "version = 1\n[[allow]]\ncontent = \"*\"\nto = [\"south\", \"suoth\"]\n\
        [[deny]]\ncontent = \"rows\"\nto = \"esat\"";
    assert_eq!(policy(text).strangers(&contract()), ["esat", "suoth"]);
}

#[test]
fn a_gate_counts_by_rule_and_in_all() {
    let text = "version = 1\n[[allow]]\ncontent = \"ids\"\nmax_bytes = 10\n[[allow]]\ncontent = [\"ids\", \"models\"]\n\
        to = \"south\"\nmax_bytes = 10\n[[accept]]\ncontent = \"*\"\n[limits]\nmax_bytes = 25";
    let mut gate = Gate::new(policy(text));
    let mut pass = |way, peer, content, bytes| gate.pass(&crossing(way, peer, content, bytes));
    assert_eq!(pass(Way::Out, "south", "ids", 7), Decision::Allowed { rule: 1 });
    // No more room in the first rule, but in the second.
    assert_eq!(pass(Way::Out, "south", "ids", 7), Decision::Allowed { rule: 2 });
    denied(pass(Way::Out, "west", "ids", 7), &["rule 1 (allow, line 2)", "only 3"]);
    assert_eq!(pass(Way::Out, "west", "ids", 3), Decision::Allowed { rule: 1 });
    assert_eq!(pass(Way::In, "west", "models", 1000), Decision::Allowed { rule: 3 });
    // What always passes counts, but is not kept back.
    assert_eq!(pass(Way::Out, "west", "agreement", 6), Decision::Allowed { rule: 0 });
    denied(pass(Way::Out, "south", "models", 3), &["limits.max_bytes", "only 2"]);
    assert_eq!(pass(Way::Out, "west", "agreement", 600), Decision::Allowed { rule: 0 });
    denied(pass(Way::Out, "south", "models", 1), &["limits.max_bytes", "only 0"]);
    assert_eq!(
        (gate.bytes_out(), gate.bytes_by_rule(1), gate.bytes_by_rule(2), gate.bytes_by_rule(3)),
        (623, 10, 7, 1000)
    );
}

/// A rule as a person would say it.
#[derive(Debug, Clone)]
struct Plain {
    kind: &'static str,
    contents: Vec<&'static str>,
    peers: Option<Vec<&'static str>>,
    /// Of a denying rule, whether its peers are those that get something.
    to: bool,
    layers: Option<Vec<u16>>,
    direction: Option<Direction>,
    max_bytes: Option<u64>,
}

const ENTRIES: [&str; 8] =
    ["*", "rows", "labels", "features", "ids", "models:training", "rows:evaluation", "*:start_up"];

fn rules() -> impl Strategy<Value = Vec<Plain>> {
    let contents = proptest::sample::subsequence(ENTRIES.to_vec(), 1..=2);
    let peers = proptest::option::of(proptest::sample::subsequence(NAMES.to_vec(), 1..=2));
    let layers = proptest::option::of(proptest::sample::subsequence(vec![0, 1, 2], 1..=2));
    let direction = proptest::option::of(proptest::sample::select(vec![Direction::Forward, Direction::Reverse]));
    let kind = proptest::sample::select(vec!["allow", "allow", "accept", "deny"]);
    let rule = (kind, contents, peers, any::<bool>(), layers, direction, proptest::option::of(0_u64..60));
    let rule = rule.prop_map(|(kind, contents, peers, to, layers, direction, max_bytes)| Plain {
        kind,
        contents,
        peers,
        to: if kind == "deny" { to } else { kind == "allow" },
        layers,
        direction,
        max_bytes: max_bytes.filter(|_| kind != "deny"),
    });
    proptest::collection::vec(rule, 0..6)
}

fn text(rules: &[Plain], limit: Option<u64>) -> String {
    let mut text = "version = 1\n".to_owned();
    for rule in rules {
        text += &format!("[[{}]]\ncontent = {:?}\n", rule.kind, rule.contents);
        let key = if rule.to { "to" } else { "from" };
        text += &rule.peers.iter().map(|peers| format!("{key} = {peers:?}\n")).collect::<String>();
        text += &rule.layers.iter().map(|layers| format!("layers = {layers:?}\n")).collect::<String>();
        text += &rule.direction.iter().map(|one| format!("direction = \"{}\"\n", one.name())).collect::<String>();
        text += &rule.max_bytes.iter().map(|bytes| format!("max_bytes = {bytes}\n")).collect::<String>();
    }
    text + &limit.map_or(String::new(), |limit| format!("[limits]\nmax_bytes = \"{limit} B\"\n"))
}

fn crossings() -> impl Strategy<Value = Crossing<'static>> {
    let contents: Vec<&str> = VOCABULARY.contents.iter().map(|content| content.0).collect();
    (
        proptest::sample::select(vec![Way::Out, Way::In]),
        proptest::sample::select(NAMES.to_vec()),
        proptest::sample::select(contents),
        proptest::sample::select(VOCABULARY.purposes.to_vec()),
        0_u16..4,
        proptest::sample::select(vec![Direction::Forward, Direction::Reverse]),
        0_u64..40,
    )
        .prop_map(|(way, peer, content, purpose, layer, direction, bytes)| Crossing {
            way,
            peer,
            content,
            purpose,
            layer,
            direction,
            bytes,
        })
}

/// Whether an entry of a rule speaks of a content for a purpose.
fn speaks(entry: &str, content: &str, purpose: &str) -> bool {
    let (name, only) = entry.split_once(':').unwrap_or((entry, purpose));
    let named = match name {
        "*" => true,
        "rows" => content == "features" || content == "hidden_rows",
        "labels" => content == "training_labels",
        name => name == content,
    };
    named && only == purpose
}

/// Whether a rule speaks of a crossing; bytes aside.
fn matches(rule: &Plain, crossing: &Crossing) -> bool {
    let way = match rule.kind {
        "allow" => crossing.way == Way::Out,
        "accept" => crossing.way == Way::In,
        _ => rule.peers.is_none() || (crossing.way == Way::Out) == rule.to,
    };
    way && rule.contents.iter().any(|entry| speaks(entry, crossing.content, crossing.purpose))
        && rule.peers.as_ref().is_none_or(|peers| peers.contains(&crossing.peer))
        && rule.layers.as_ref().is_none_or(|layers| layers.contains(&crossing.layer))
        && rule.direction.is_none_or(|direction| direction == crossing.direction)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn decisions_are_those_of_the_rules_one_by_one(
        rules in rules(),
        limit in proptest::option::of(0_u64..60),
        crossings in proptest::collection::vec(crossings(), 20),
    ) {
        let policy = policy(&text(&rules, limit));
        for crossing in &crossings {
            let denies = |rule: &&Plain| rule.kind == "deny" && matches(rule, crossing);
            let fits = |most: Option<u64>| most.is_none_or(|most| crossing.bytes <= most);
            let opens = |rule: &Plain| rule.kind != "deny" && matches(rule, crossing) && fits(rule.max_bytes);
            let expected = if crossing.content == "agreement" {
                Some(0)
            } else if rules.iter().any(|rule| denies(&rule)) || (crossing.way == Way::Out && !fits(limit)) {
                None
            } else {
                rules.iter().position(opens).map(|at| at + 1)
            };
            let rule = match policy.decide(crossing) {
                Decision::Allowed { rule } => Some(rule),
                Decision::Denied { .. } => None,
            };
            prop_assert_eq!(rule, expected, "{:?}\n{}", crossing, text(&rules, limit));
        }
    }

    #[test]
    fn a_gate_never_lets_more_through_than_it_may(
        rules in rules(),
        limit in proptest::option::of(0_u64..300),
        crossings in proptest::collection::vec(crossings(), 60),
    ) {
        let policy = policy(&text(&rules, limit));
        let mut gate = Gate::new(policy.clone());
        let (mut by_rule, mut out) = (vec![0; rules.len() + 1], 0);
        for crossing in &crossings {
            let Decision::Allowed { rule } = gate.pass(crossing) else { continue };
            // What has passed a gate would pass an empty one.
            prop_assert!(policy.decide(crossing).is_allowed());
            by_rule[rule] += crossing.bytes;
            out += if crossing.way == Way::Out { crossing.bytes } else { 0 };
            if rule > 0 {
                prop_assert!(matches(&rules[rule - 1], crossing) && rules[rule - 1].kind != "deny");
                prop_assert!(rules[rule - 1].max_bytes.is_none_or(|most| by_rule[rule] <= most));
                prop_assert!(crossing.way == Way::In || limit.is_none_or(|limit| out <= limit));
            }
        }
        let counted: Vec<u64> = (1..=rules.len()).map(|rule| gate.bytes_by_rule(rule)).collect();
        prop_assert_eq!((counted.as_slice(), gate.bytes_out()), (&by_rule[1..], out));
    }
}
