//! With error feedback parameters may travel in any number of bits: what rounding drops is made up for.

use crate::fixture::{config, graph, run};

/// One bit a value learns what exact gradients learn, whether gradients are summed or models averaged.
#[test]
fn one_bit_with_feedback_learns_beside_the_exact_run() {
    let dataset = graph(400, 4);
    for every in ["train.sync_every=1", "train.sync_every=5"] {
        let keys = ["train.epochs=200", "train.eval_every=10", "model.dropout=0.0", every];
        let accuracy = |more: &[&str]| {
            let outcomes = run(&config(&[&keys[..], more].concat()), &dataset, 3);
            outcomes[0].trained.scores.val["accuracy"].expect("a figure")
        };
        let exact = accuracy(&[]);
        for bits in [1, 2] {
            let coded = format!("messages.parameters={{codec=\"quantised\",bits={bits}}}");
            let found = accuracy(&[coded.as_str()]);
            assert!(exact > 0.5 && found > exact - 0.08, "{every}, {bits} bits: {found} against {exact}");
        }
    }
}
