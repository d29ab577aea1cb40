//! One part of a folder alone: a graph of its nodes and the edges between them, whatever the others are.

use std::path::Path;

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_graph::part::{Provenance, write_parts};
use laconic_train::config::Config;
use laconic_train::plan::Members;
use laconic_train::run::source::Source;
use laconic_train::run::{Data, plan};

use crate::fixture::{config, folder, graph, losses, losses_on, parts, weighted};

const PARTS: u32 = 3;

/// Writes the folder of parts and returns which nodes each has.
fn cut(dataset: &Dataset, dir: &Path) -> Vec<Vec<usize>> {
    let parts = parts(&config(&[]), dataset, PARTS);
    let provenance = Provenance { method: "random".to_owned(), seed: 0 };
    write_parts(dir, &parts, &provenance, false).expect("a folder");
    parts.iter().map(|part| part.nodes.iter().map(|&node| node as usize).collect()).collect()
}

/// These nodes of a graph with the edges between them, put together from lists of arcs.
fn among(dataset: &Dataset, kept: &[usize]) -> Dataset {
    let (mut sources, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let place = |node: usize| kept.iter().position(|&other| other == node).map(|place| place as u32);
    for &target in kept {
        for edge in dataset.graph.in_edges(target) {
            if let Some(source) = place(dataset.graph.sources[edge] as usize) {
                sources.push(source);
                targets.extend(place(target));
                weights.extend(dataset.graph.data.weights.as_ref().map(|weights| weights[edge]));
            }
        }
    }
    let weights = dataset.graph.data.weights.as_ref().map(|_| weights);
    let (graph, _) = build_graph(kept.len(), sources, targets, weights, BuildOptions::default()).expect("edges");
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    let Labels::Single { classes, values: labels } = &dataset.labels else { panic!("classes") };
    let rows = kept.iter().flat_map(|&node| values[node * columns..][..*columns].to_vec());
    Dataset {
        graph,
        features: Features::Dense { columns: *columns, values: rows.collect() },
        labels: Labels::Single { classes: *classes, values: kept.iter().map(|&node| labels[node]).collect() },
        splits: vec![Split { roles: kept.iter().map(|&node| dataset.splits[0].roles[node]).collect() }],
        ..dataset.clone()
    }
}

fn alone(keys: &[&str], dir: &Path, part: u32) -> Config {
    let (path, part) = (format!("data.path={}", dir.display()), format!("data.part={part}"));
    config(&[keys, &[path.as_str(), part.as_str()]].concat())
}

fn losses_alone(keys: &[&str], dir: &Path, part: u32) -> Vec<f64> {
    let config = alone(keys, dir, part);
    losses_on(&config, Source::open(&Members::default(), &config, None).expect("a part"))
}

#[test]
fn training_on_a_part_alone_is_training_on_the_graph_of_its_nodes_and_the_edges_between_them() {
    let of_links = ["task.kind=link_prediction", "task.eval_negatives=9"];
    let links_in_batches = [&of_links[..], &["batch.size=20", "batch.fanouts=[3, 2]"]].concat();
    for (dataset, archs) in [(graph(180, 4), ["gcn", "gat"]), (weighted(180, 4), ["sage", "gin"])] {
        let place = folder();
        let dir = place.path().join("parts");
        let nodes = cut(&dataset, &dir);
        for part in [0, 1] {
            let plain = among(&dataset, &nodes[part]);
            for arch in archs {
                let arch = format!("model.arch={arch}");
                for more in [
                    &[][..],
                    &["messages.selection=none", "train.class_weights=balanced"],
                    &["batch.size=10", "batch.fanouts=[3, 2]"],
                    &["schedule.kind=lazy", "batch.size=10"],
                    &["data.inductive=true"],
                    &of_links,
                    &links_in_batches,
                ] {
                    let keys = [&[arch.as_str()], more].concat();
                    let (found, expected) = (losses_alone(&keys, &dir, part as u32), losses(&keys, &plain, 1));
                    assert_eq!(found.len(), expected.len());
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * b.abs();
                    assert!(found.iter().zip(&expected).all(near), "{keys:?}: {found:?} {expected:?}");
                }
            }
        }
    }
}

/// The loss of workers who exchange nothing is the mean over all training nodes, so those of parts alone add up to it,
/// with degrees of either kind.
#[test]
fn first_losses_of_parts_alone_add_up_to_that_of_workers_who_exchange_nothing() {
    for (dataset, archs) in [(graph(180, 4), ["gcn", "sage"]), (weighted(180, 4), ["sage", "gcn"])] {
        let place = folder();
        let dir = place.path().join("parts");
        let nodes = cut(&dataset, &dir);
        let Labels::Single { values: labels, .. } = &dataset.labels else { panic!("classes") };
        let learns = |&&node: &&usize| dataset.splits[0].roles[node] & Split::TRAIN != 0 && labels[node] >= 0;
        let counts: Vec<usize> = nodes.iter().map(|nodes| nodes.iter().filter(learns).count()).collect();
        let mut of_degrees = Vec::new();
        for arch in archs {
            for degrees in ["local", "global"] {
                let selection = format!("messages.selection={{kind=\"none\",degrees=\"{degrees}\"}}");
                let arch = format!("model.arch={arch}");
                let keys = [&arch, &selection, "model.dropout=0.0", "train.epochs=1"];
                let together = losses(&keys, &dataset, PARTS)[0];
                let each = (0..PARTS).zip(&counts).filter(|(_, count)| **count > 0);
                let sum: f64 = each.map(|(part, &count)| losses_alone(&keys, &dir, part)[0] * count as f64).sum();
                let mean = sum / counts.iter().sum::<usize>() as f64;
                assert!((mean - together).abs() <= 1e-6 * together, "{keys:?}: {mean} {together}");
                of_degrees.push(mean);
            }
        }
        assert!(of_degrees.chunks(2).all(|pair| (pair[0] - pair[1]).abs() > 1e-4), "degrees matter: {of_degrees:?}");
    }
}

#[test]
fn what_is_planned_for_a_part_alone_is_planned_for_its_graph() {
    let (dataset, place) = (graph(180, 4), folder());
    let dir = place.path().join("parts");
    let nodes = cut(&dataset, &dir);
    for keys in [&["model.arch=gcn"][..], &["batch.size=10", "batch.fanouts=[3, 2]"]] {
        let members = Members::default();
        let of = |config: &Config, data: Data| plan(&members, config, data).expect("a plan").workers;
        let found = of(&alone(keys, &dir, 1), Data::Configured);
        let one = config(&[keys, &["partition.parts=1"]].concat());
        let expected = of(&one, Data::from(among(&dataset, &nodes[1])));
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].0, found[0].2), (&expected[0].0, expected[0].2));
    }
}
