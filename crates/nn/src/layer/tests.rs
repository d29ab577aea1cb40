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
fn adjoints_agree_with_finite_differences() {
    for kind in LayerRegistry::default().iter() {
        laws::specs(kind).iter().for_each(|spec| laws::adjoints_agree_with_finite_differences(kind, spec));
    }
}

#[test]
fn names_and_shapes_are_those_of_pytorch_geometric() {
    let names = |name: &str, spec: LayerSpec| {
        let layer = (layer_kind(name).expect("listed").build)(&spec);
        layer.parameters().iter().map(|p| format!("{}{:?}", p.name, p.shape)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("gcn", LayerSpec::new(3, 2)), "lin.weight[2, 3] bias[2]");
    assert_eq!(names("sage", LayerSpec::new(3, 2)), "lin_l.weight[2, 3] lin_l.bias[2] lin_r.weight[2, 3]");
    let gin = LayerSpec { inner: 5, ..LayerSpec::new(3, 2) };
    assert_eq!(names("gin", gin), "nn.0.weight[5, 3] nn.0.bias[5] nn.2.weight[2, 5] nn.2.bias[2] eps[1]");
    let gat = LayerSpec { heads: 2, ..LayerSpec::new(3, 8) };
    assert_eq!(names("gat", gat), "lin.weight[8, 3] att_src[1, 2, 4] att_dst[1, 2, 4] bias[8]");
}
