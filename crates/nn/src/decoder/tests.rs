//! Laws that hold for every kind of decoder, and figures of PyTorch's for ours.

use super::*;
use laconic_key::{Key, Purpose};

fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
    let key = Key::new(stream, Purpose::Test);
    Matrix::from_vec(rows, columns, (0..rows * columns).map(|i| key.with(i as u64).normal() as f32 * 0.5).collect())
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn len(decoder: &dyn Decoder) -> usize {
    decoder.parameters().iter().map(ParameterSpec::len).sum()
}

/// Scores and the gradients of both ends' rows and of the parameters.
struct Done {
    scores: Matrix,
    ends: [Matrix; 2],
    g: Vec<f32>,
}

fn run(decoder: &dyn Decoder, threads: usize, p: &[f32], [s, d]: [&Matrix; 2], relations: &[u32], dz: &Matrix) -> Done {
    let (mut compute, mut memory) = (Compute::new(threads), Slot::default());
    let pairs = Pairs { sources: s, destinations: d, relations };
    let mut at = Decoding { compute: &mut compute, p, memory: &mut memory };
    let (mut scores, mut g) = (Matrix::default(), vec![0.0; p.len()]);
    decoder.score(&mut at, pairs, &mut scores);
    let [mut ds, mut dd] = [Matrix::default(), Matrix::default()];
    decoder.score_adjoint(&mut at, &mut g, pairs, dz, [&mut ds, &mut dd]);
    Done { scores, ends: [ds, dd], g }
}

fn specs() -> impl Iterator<Item = (&'static DecoderKind, DecoderSpec)> {
    let spec = |layers, relations| DecoderSpec { width: 6, layers, relations };
    DECODERS.iter().flat_map(move |kind| [(kind, spec(1, 1)), (kind, spec(3, 4))])
}

#[test]
fn adjoints_agree_with_finite_differences() {
    for (kind, spec) in specs() {
        let decoder = (kind.build)(&spec);
        let (s, d, dz) = (random(40, 6, 1), random(40, 6, 2), random(40, 1, 3));
        let relations: Vec<u32> = (0..40).map(|pair| pair % spec.relations as u32).collect();
        let p = random(1, len(&*decoder), 4).into_vec();
        let done = run(&*decoder, 2, &p, [&s, &d], &relations, &dz);
        let value = |p: &[f32], s: &Matrix, d: &Matrix| {
            product(run(&*decoder, 1, p, [s, d], &relations, &dz).scores.data(), dz.data())
        };
        let moved =
            |base: &[f32], by: &[f32], e: f32| base.iter().zip(by).map(|(b, d)| b + e * d).collect::<Vec<f32>>();
        let compare = |what: &str, at: &dyn Fn(f32) -> f64, exact: f64| {
            let numeric = (at(1e-3) - at(-1e-3)) / 2e-3;
            let near = (numeric - exact).abs() < 1e-2 * (1.0 + exact.abs());
            assert!(near, "{} {spec:?}, {what}: {numeric} against {exact}", kind.name);
        };
        let by = random(40, 6, 5);
        let rows = |base: &Matrix, e| Matrix::from_vec(40, 6, moved(base.data(), by.data(), e));
        compare("sources", &|e| value(&p, &rows(&s, e), &d), product(done.ends[0].data(), by.data()));
        compare("destinations", &|e| value(&p, &s, &rows(&d, e)), product(done.ends[1].data(), by.data()));
        let mut start = 0;
        for parameter in decoder.parameters() {
            let mut by = vec![0.0; p.len()];
            by[start..start + parameter.len()].copy_from_slice(random(1, parameter.len(), 6).data());
            start += parameter.len();
            compare(&parameter.name, &|e| value(&moved(&p, &by, e), &s, &d), product(&done.g, &by));
        }
    }
}

#[test]
fn scores_and_gradients_have_the_same_bits_on_any_number_of_threads() {
    for (kind, spec) in specs() {
        let decoder = (kind.build)(&spec);
        let (s, d, dz) = (random(5000, 6, 1), random(5000, 6, 2), random(5000, 1, 3));
        let p = random(1, len(&*decoder), 4).into_vec();
        let bits = [1, 2, 3].map(|threads| {
            let Done { scores, ends: [ds, dd], g } = run(&*decoder, threads, &p, [&s, &d], &[], &dz);
            let all = [scores.into_vec(), ds.into_vec(), dd.into_vec(), g].concat();
            all.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        });
        assert!(bits.iter().all(|b| *b == bits[0]), "{}", kind.name);
    }
}

const SOURCES: [f32; 8] = [0.5, -1.0, 1.5, 0.25, -0.75, 2.0, 0.1, -0.3];
const DESTINATIONS: [f32; 8] = [-1.25, 0.5, 0.75, 1.0, 1.0, -0.5, 2.0, 0.4];
const GRADIENT: [f32; 4] = [1.0, -0.5, 2.0, 0.25];

/// What torch 2 gives for the same numbers: scores, gradients of sources, destinations and parameters.
struct Figures {
    scores: [f32; 4],
    sources: [f32; 8],
    destinations: [f32; 8],
    parameters: Vec<f32>,
}

fn compare(name: &str, spec: DecoderSpec, p: &[f32], relations: &[u32], expected: &Figures) {
    let decoder = (DecoderRegistry::default().get(name).expect("ours").build)(&spec);
    assert_eq!(len(&*decoder), p.len());
    let (s, d) = (Matrix::from_vec(4, 2, SOURCES.to_vec()), Matrix::from_vec(4, 2, DESTINATIONS.to_vec()));
    let done = run(&*decoder, 1, p, [&s, &d], relations, &Matrix::from_vec(4, 1, GRADIENT.to_vec()));
    let found = [done.scores.data(), done.ends[0].data(), done.ends[1].data(), &done.g].concat();
    let expected =
        [&expected.scores[..], &expected.sources[..], &expected.destinations[..], &expected.parameters[..]].concat();
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!((found - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{name} {i}: {found} against {expected}");
    }
}

#[test]
fn a_perceptron_scores_as_linear_maps_and_prelu_of_pytorch_do() {
    let p = [0.5, -0.25, 1.0, 0.75, 0.1, -0.2, 0.25, -0.5, 0.3, 0.2, 1.1, 0.05, 0.4, 0.5, 1.5, -0.6, 0.3];
    let expected = Figures {
        scores: [0.238_828_14, -0.620_624_96, 0.264_843_76, -0.006_562_501],
        sources: [0.213_281_24, -0.025_312_502, 0.241_875, -0.03, -0.161_25, -0.0075, -0.178_125, 0.004_218_75],
        destinations: [-0.085_312_5, 0.050_625, 0.483_75, -0.0075, 0.120_937_5, 0.03, -0.008_906_25, -0.003_164_062_5],
        parameters: vec![
            0.705_093_74,
            0.402_975,
            0.220_031_26,
            0.136_387_51,
            -0.03,
            -0.083_437_5,
            0.953_85,
            -0.432_656_26,
            -1.701_093_7,
            0.162_375,
            0.772_125_07,
            1.6875,
            -1.05,
            -0.211_125_02,
            -0.139_750_02,
            -0.769_687_5,
            2.75,
        ],
    };
    compare("mlp", DecoderSpec { width: 2, layers: 2, relations: 1 }, &p, &[], &expected);
}

#[test]
fn relations_weigh_columns_as_distmult_defines_it() {
    let expected = Figures {
        scores: [0.6875, 1.875, -1.875, 0.34],
        sources: [-0.625, -1.0, -0.5625, -0.375, 3.0, -0.75, 0.25, -0.2],
        destinations: [0.25, 2.0, -1.125, -0.09375, -2.25, 3.0, 0.0125, 0.15],
        parameters: vec![-0.575, -0.53, -2.0625, -2.125],
    };
    let spec = DecoderSpec { width: 2, layers: 1, relations: 2 };
    compare("distmult", spec, &[0.5, -2.0, 1.5, 0.75], &[0, 1, 1, 0], &expected);
}

#[test]
fn names_and_shapes_are_those_of_lists_of_modules() {
    let names = |name: &str, spec: &DecoderSpec| {
        let decoder = (DecoderRegistry::default().get(name).expect("ours").build)(spec);
        decoder.parameters().iter().map(|p| format!("{}{:?}", p.name, p.shape)).collect::<Vec<_>>().join(" ")
    };
    let mlp = "lins.0.weight[3, 3] lins.0.bias[3] acts.0.weight[1] lins.1.weight[1, 3] lins.1.bias[1]";
    assert_eq!(names("mlp", &DecoderSpec::new(3)), mlp);
    assert_eq!(names("dot", &DecoderSpec::new(3)), "");
    assert_eq!(names("distmult", &DecoderSpec { relations: 5, ..DecoderSpec::new(3) }), "relations[5, 3]");
}
