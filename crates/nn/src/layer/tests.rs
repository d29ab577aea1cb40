//! Laws that hold for every kind of layer in the registry, and the names of ours.

use super::*;
use crate::laws;

#[test]
fn folding_two_blocks_equals_folding_one() {
    for kind in LayerRegistry::default().iter() {
        laws::specs(kind).iter().for_each(|spec| laws::folding_two_blocks_equals_folding_one(kind, spec));
    }
}

#[test]
fn outputs_that_are_folds_are_these_to_the_bit() {
    let mut of_which = Vec::new();
    for kind in LayerRegistry::default().iter() {
        let specs = laws::specs(kind);
        of_which.extend(specs.iter().any(|spec| kind.layer(spec).facts().outputs_are_folds).then_some(kind.name));
        specs.iter().for_each(|spec| laws::outputs_that_are_folds_are_these_to_the_bit(kind, spec));
    }
    assert_eq!(of_which, ["gat"]);
}

#[test]
fn one_function_is_what_it_stands_for() {
    let mut of_which = Vec::new();
    for kind in LayerRegistry::default().iter() {
        let specs = laws::specs(kind);
        of_which.extend(specs.iter().any(|spec| kind.layer(spec).undivided().is_some()).then_some(kind.name));
        specs.iter().for_each(|spec| laws::one_function_is_what_it_stands_for(kind, spec));
    }
    assert_eq!(of_which, ["gcn", "sage"]);
}

#[test]
fn adjoints_agree_with_finite_differences() {
    for kind in LayerRegistry::default().iter() {
        laws::specs(kind).iter().for_each(|spec| laws::adjoints_agree_with_finite_differences(kind, spec));
    }
}

#[test]
fn weights_of_edges_are_read_as_a_layer_says() {
    for kind in LayerRegistry::default().iter() {
        laws::specs(kind).iter().for_each(|spec| laws::weights_of_edges_are_read_as_a_layer_says(kind, spec));
    }
}

#[test]
fn what_a_layer_adds_to_every_row_it_adds() {
    for kind in LayerRegistry::default().iter() {
        assert!(kind.layer(&LayerSpec::new(3, 2)).facts().shift.is_some(), "{}: all of ours have a bias", kind.name);
        laws::specs(kind).iter().for_each(|spec| laws::what_a_layer_adds_to_every_row_it_adds(kind, spec));
    }
}

/// What a layer says that it multiplies rows by on their way into messages is what it does, and its adjoint too.
#[test]
fn messages_and_their_gradients_are_weighted_as_a_layer_says() {
    let values = |stream: u64| (0..12).map(|i| (i as f32 + stream as f32).sin()).collect::<Vec<f32>>();
    let (x, g) = (Matrix::from_vec(3, 4, values(1)), Matrix::from_vec(3, 4, values(2)));
    let nodes = Nodes { ids: &[0, 1, 2], inverse_degree: &[0.2, 1.0, 0.25], inverse_root_degree: &[0.4, 1.0, 0.5] };
    for kind in LayerRegistry::default().iter() {
        let layer = kind.layer(&LayerSpec { aggregate_first: true, ..LayerSpec::new(4, 4) });
        if layer.facts().message_width == 0 || layer.facts().message_has_parameters {
            continue;
        }
        let ones = [1.0; 3];
        let weights = layer.facts().sender_weight.of(&nodes).unwrap_or(&ones);
        let (mut out, mut back, mut dm) = (Matrix::default(), Matrix::default(), g.clone());
        let (mut compute, mut state) = (Compute::new(1), State::default());
        let p = vec![0.0; layer.facts().parameters.iter().map(|p| p.shape.iter().product::<usize>()).sum()];
        let mut unused = p.clone();
        let at = &mut At { compute: &mut compute, p: &p, nodes, state: &mut state };
        layer.message(at, Rows::Dense(&x), &mut out);
        let senders = Senders { side: Side::Own, x: Rows::Dense(&x), messages: &out };
        layer.message_adjoint(at, &mut unused, senders, &mut dm, Some((&mut back, Store::Set)));
        for (row, weight) in weights.iter().enumerate().take(3) {
            for column in 0..4 {
                assert_eq!(out.row(row)[column], weight * x.row(row)[column], "{}", kind.name);
                assert_eq!(back.row(row)[column], weight * g.row(row)[column], "{}", kind.name);
            }
        }
    }
}

#[test]
fn names_and_shapes_are_those_of_pytorch_geometric() {
    let names = |name: &str, spec: LayerSpec| {
        let layer = layer_kind(name).expect("listed").layer(&spec);
        layer.facts().parameters.iter().map(|p| format!("{}{:?}", p.name, p.shape)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("gcn", LayerSpec::new(3, 2)), "lin.weight[2, 3] bias[2]");
    assert_eq!(names("sage", LayerSpec::new(3, 2)), "lin_l.weight[2, 3] lin_l.bias[2] lin_r.weight[2, 3]");
    let gin = LayerSpec { inner: 5, ..LayerSpec::new(3, 2) };
    assert_eq!(names("gin", gin), "nn.0.weight[5, 3] nn.0.bias[5] nn.2.weight[2, 5] nn.2.bias[2] eps[1]");
    let gat = LayerSpec { heads: 2, ..LayerSpec::new(3, 8) };
    assert_eq!(names("gat", gat), "lin.weight[8, 3] att_src[1, 2, 4] att_dst[1, 2, 4] bias[8]");
    let residual = |outputs| LayerSpec { residual: true, ..LayerSpec::new(3, outputs) };
    assert_eq!(names("gcn", residual(2)), "lin.weight[2, 3] bias[2] residual.weight[2, 3]");
    assert_eq!(names("gcn", residual(3)), "lin.weight[3, 3] bias[3]");
}
