//! Laws that hold for every kind of layer.

use super::*;
use crate::kernels::Store;
use laconic_key::{Key, Purpose};

fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
    let key = Key::new(stream, Purpose::Test);
    let value = |i: usize| key.with(i as u64).normal() as f32 * 0.5;
    Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
}

/// A directed random graph over 60 nodes, node 7 without in-edges, cut into own (0..40) and halo (40..60) sources of the first
/// 40 nodes; and the same edges as one undivided block.
struct Case {
    own: Block,
    halo: Block,
    whole: Block,
    degree: Vec<f32>,
    root: Vec<f32>,
    ids: Vec<u64>,
}

fn case() -> Case {
    let key = Key::new(11, Purpose::Test);
    let mut parts = [(vec![0], vec![]), (vec![0], vec![]), (vec![0], vec![])];
    let mut counts = [0.0f32; 40];
    for v in 0..40u64 {
        for u in 0..60u64 {
            if v != 7 && key.with(v).with(u).unit() < 0.15 {
                parts[if u < 40 { 0 } else { 1 }].1.push(if u < 40 { u } else { u - 40 } as u32);
                parts[2].1.push(u as u32);
                counts[v as usize] += 1.0;
            }
        }
        for (offsets, columns) in &mut parts {
            offsets.push(columns.len());
        }
    }
    let [own, halo, whole] = parts;
    let inverse = |power: f32| counts.iter().map(|&d| if d > 0.0 { d.powf(-power) } else { 0.0 }).collect::<Vec<f32>>();
    Case {
        own: Block::new(40, own.0, own.1, None),
        halo: Block::new(20, halo.0, halo.1, None),
        whole: Block::new(60, whole.0, whole.1, None),
        degree: inverse(1.0),
        root: inverse(0.5),
        ids: (0..60).collect(),
    }
}

/// Some rows of a flat matrix of this width.
fn cut(data: &[f32], width: usize, rows: std::ops::Range<usize>) -> Matrix {
    Matrix::from_vec(rows.len(), width, data[rows.start * width..rows.end * width].to_vec())
}

/// Rows of all 60 nodes get degrees: the halo's owner would scale its messages by its own, here by 0.5.
fn run(
    layer: &dyn Layer,
    p: &[f32],
    x: &Matrix,
    case: &Case,
    split: bool,
    dz: Option<&Matrix>,
) -> (Matrix, Vec<f32>, Matrix) {
    let mut compute = Compute::new(2);
    let c = &mut compute;
    let mut degree = case.degree.clone();
    let mut root = case.root.clone();
    degree.resize(60, 0.5);
    root.resize(60, 0.5);
    let all = Nodes { ids: &case.ids, inverse_degree: &degree, inverse_root_degree: &root };
    let own = Nodes { ids: &case.ids[..40], inverse_degree: &degree[..40], inverse_root_degree: &root[..40] };
    let x_own = cut(x.data(), x.columns(), 0..40);
    let mut messages = Matrix::default();
    let (mut folded, mut z, mut state) = (Matrix::default(), Matrix::default(), State::default());
    let at = &mut At { compute: c, p, nodes: all, state: &mut state };
    layer.message(at, Rows::Dense(x), &mut messages);
    let w = messages.columns();
    let own_messages = cut(messages.data(), w, 0..40);
    let halo_messages = cut(messages.data(), w, 40..60);
    at.nodes = own;
    let (nothing, no_messages) = (Block::new(0, vec![0; 41], vec![], None), Matrix::zeros(0, w));
    let blocks: Vec<(Side, &Block, &Matrix)> = if split {
        vec![(Side::Own, &case.own, &own_messages), (Side::Halo, &case.halo, &halo_messages)]
    } else {
        vec![(Side::Own, &case.whole, &messages), (Side::Halo, &nothing, &no_messages)]
    };
    for (side, block, messages) in &blocks {
        layer.fold(at, Sources { side: *side, block, messages }, &mut folded);
    }
    layer.finish_fold(at, &mut folded);
    let input = Closing { x: Rows::Dense(&x_own), folded: Rows::Dense(&folded) };
    layer.close(at, input, &mut z);
    let mut g = vec![0.0; p.len()];
    let mut dx = Matrix::zeros(60, x.columns());
    if let Some(dz) = dz {
        let mut dz = dz.clone();
        let (mut dfolded, mut dx_own) = (Matrix::default(), Matrix::zeros(40, x.columns()));
        let wanted = Wanted { dfolded: Some(&mut dfolded), dx: Some(&mut dx_own) };
        layer.close_adjoint(at, &mut g, input, &mut dz, wanted);
        let mut dmessages = vec![0.0; 60 * w];
        for (side, block, messages) in blocks.iter().rev() {
            let mut part = Matrix::default();
            layer.fold_adjoint(at, &mut g, Sources { side: *side, block, messages }, &dfolded, &mut part);
            let start = if *side == Side::Halo && split { 40 * w } else { 0 };
            dmessages[start..start + part.data().len()].copy_from_slice(part.data());
        }
        let store = if layer.reads_own_row() { Store::Add } else { Store::Set };
        let mut dx_halo = Matrix::zeros(20, x.columns());
        let (mut dm_own, mut dm_halo) = (cut(&dmessages, w, 0..40), cut(&dmessages, w, 40..60));
        let own = Senders { side: Side::Own, x: Rows::Dense(&x_own), messages: &own_messages };
        layer.message_adjoint(at, &mut g, own, &mut dm_own, Some((&mut dx_own, store)));
        at.nodes = Nodes { ids: &case.ids[40..], inverse_degree: &degree[40..], inverse_root_degree: &root[40..] };
        let x_halo = cut(x.data(), x.columns(), 40..60);
        let halo = Senders { side: Side::Halo, x: Rows::Dense(&x_halo), messages: &halo_messages };
        layer.message_adjoint(at, &mut g, halo, &mut dm_halo, Some((&mut dx_halo, Store::Set)));
        dx.data_mut()[..40 * x.columns()].copy_from_slice(dx_own.data());
        dx.data_mut()[40 * x.columns()..].copy_from_slice(dx_halo.data());
    }
    (z, g, dx)
}

fn specs() -> Vec<(&'static str, LayerSpec)> {
    let base = LayerSpec::new(6, 4);
    let wide = LayerSpec::new(4, 6);
    vec![
        ("gcn", base.clone()),
        ("gcn", wide.clone()),
        ("gcn", LayerSpec { aggregate_first: true, ..base.clone() }),
        ("sage", base.clone()),
        ("sage", wide.clone()),
        ("sage", LayerSpec { aggregator: Aggregator::Max, ..base.clone() }),
        ("gin", LayerSpec { inner: 5, ..base.clone() }),
        ("gin", LayerSpec { learn_epsilon: false, ..wide }),
        ("gat", LayerSpec { heads: 2, ..base.clone() }),
        ("gat", LayerSpec { heads: 3, concatenate: false, ..base.clone() }),
        ("mlp", base),
    ]
}

fn layers() -> Vec<(String, Box<dyn Layer>, Matrix)> {
    let build = |(name, spec): (&str, LayerSpec)| {
        let layer = (layer_kind(name).expect("listed").build)(&spec);
        let len = layer.parameters().iter().map(ParameterSpec::len).sum();
        (format!("{name} {spec:?}"), layer, random(1, len, 5))
    };
    specs().into_iter().map(build).collect()
}

#[test]
fn folding_two_blocks_equals_folding_one() {
    let case = case();
    for (name, layer, p) in layers() {
        let x = random(60, layer.inputs(), 1);
        let dz = random(40, layer.outputs(), 2);
        let (z1, g1, dx1) = run(layer.as_ref(), p.data(), &x, &case, true, Some(&dz));
        let (z2, g2, dx2) = run(layer.as_ref(), p.data(), &x, &case, false, Some(&dz));
        let pairs = z1.data().iter().zip(z2.data()).chain(g1.iter().zip(&g2)).chain(dx1.data().iter().zip(dx2.data()));
        for (a, b) in pairs {
            assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{name}: {a} against {b}");
        }
    }
}

/// ⟨dz, f(x + εd) − f(x − εd)⟩ / 2ε against ⟨f'ᵀ dz, d⟩, for inputs and for each parameter, with blocks folded apart.
#[test]
fn adjoints_agree_with_finite_differences() {
    let case = case();
    for (name, layer, p) in layers() {
        let x = random(60, layer.inputs(), 1);
        let dz = random(40, layer.outputs(), 2);
        let (_, g, dx) = run(layer.as_ref(), p.data(), &x, &case, true, Some(&dz));
        let value = |p: &[f32], x: &Matrix| {
            let (z, ..) = run(layer.as_ref(), p, x, &case, true, None);
            z.data().iter().zip(dz.data()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        };
        // A maximum has kinks: a shorter step crosses fewer of them and costs digits.
        let (step, tolerance) = if name.contains("Max") { (1e-4f32, 4e-2) } else { (1e-3, 1e-2) };
        let moved = |base: &[f32], d: &[f32], e: f32| base.iter().zip(d).map(|(b, d)| b + e * d).collect::<Vec<f32>>();
        let along = |gradient: &[f32], d: &[f32]| {
            gradient.iter().zip(d).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        };
        let check = |what: &str, numeric: f64, exact: f64| {
            assert!(
                (numeric - exact).abs() < tolerance * (1.0 + exact.abs()),
                "{name}, {what}: {numeric} against {exact}"
            );
        };
        let d = random(60, layer.inputs(), 3);
        let at = |e: f32| value(p.data(), &Matrix::from_vec(60, layer.inputs(), moved(x.data(), d.data(), e)));
        check("input", (at(step) - at(-step)) / f64::from(2.0 * step), along(dx.data(), d.data()));
        let mut start = 0;
        for spec in layer.parameters() {
            let mut d = vec![0.0; p.data().len()];
            d[start..start + spec.len()].copy_from_slice(random(1, spec.len(), 4).data());
            start += spec.len();
            let at = |e: f32| value(&moved(p.data(), &d, e), &x);
            check(&spec.name, (at(step) - at(-step)) / f64::from(2.0 * step), along(&g, &d));
        }
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
