//! Sums of labels, beside a plain program over the whole graph.

use super::*;

/// The columns of sums over so many training nodes at least, of workers with every `workers`-th node each, and how many
/// bytes each worker sent.
fn summed(dataset: &Dataset, known: impl Into<Known>, workers: u32, least: u32) -> Result<Vec<(Matrix, Vec<usize>)>> {
    let known = known.into();
    let assignment: Vec<u32> = (0..dataset.graph.nodes()).map(|node| owner(node, workers)).collect();
    let parts = cut(dataset, Some(0), &assignment, workers).expect("parts");
    let plans = plan_all(&parts, true).expect("plans");
    let ends = threads(workers as usize, Duration::from_secs(20));
    let one = |mut end, part: &Part, (links, topology): &(HaloPlan, Topology)| {
        let neighbours = &Neighbours::of_topology(topology);
        let own = |of: &[Option<u32>]| part.nodes.iter().map(|&node| of[node as usize]).collect::<Vec<_>>();
        let (labels, answers, response) = (&own(&known.labels), &own(&known.answers), known.response.as_ref());
        let features = &Operand::Dense(Matrix::zeros(part.rows(), 0));
        let (transport, tag): (&mut dyn Transport, _) = (&mut end, label_sums::KIND.tag());
        let (classes, sent) = (CLASSES, Vec::new());
        let mut telling =
            Telling { transport, tag, links, neighbours, labels, answers, least, response, features, classes, sent };
        let columns = (label_sums::KIND.tell)(&mut telling, &mut Heard::default())?;
        Ok((dense(columns), telling.sent))
    };
    std::thread::scope(|scope| {
        let tell = |((end, part), plan)| scope.spawn(move || one(end, part, plan));
        let works: Vec<_> = ends.into_iter().zip(&parts).zip(&plans).map(tell).collect();
        works.into_iter().map(|work| work.join().expect("no panic")).collect()
    })
}

/// By definition: own neighbours, and those of each other part where enough of them train.
#[test]
fn sums_of_labels_are_of_so_many_nodes_at_least_and_of_all_where_one_is_enough() {
    let dataset = graph(3);
    let labels = classes(&dataset);
    let weight = |node: usize| {
        let near: BTreeSet<u32> = dataset.graph.in_neighbours(node).iter().copied().collect();
        WEIGHTS[((near.len() - usize::from(near.contains(&(node as u32)))).max(1).ilog2() as usize).min(5)] as f32
    };
    let mut withheld = [0; 3];
    for (turn, least) in [1, 3, 100].into_iter().enumerate() {
        for workers in [1, 2, 4] {
            let found = summed(&dataset, &labels, workers, least).expect("sums");
            for (node, near) in (0..dataset.graph.nodes()).map(|node| (node, dataset.graph.in_neighbours(node))) {
                let mut counts = [0.0f32; CLASSES];
                for part in 0..workers {
                    let of_part = |other: &&u32| owner(**other as usize, workers) == part && **other as usize != node;
                    let near: BTreeSet<u32> = near.iter().filter(of_part).copied().collect();
                    let train: Vec<u32> = near.into_iter().filter(|&other| labels[other as usize].is_some()).collect();
                    if part != owner(node, workers) && train.len() < least as usize {
                        withheld[turn] += train.len();
                        continue;
                    }
                    let class = |other: u32| labels[other as usize].expect("it trains") as usize;
                    train.into_iter().for_each(|other| counts[class(other)] += weight(other as usize));
                }
                let mass = counts.iter().sum::<f32>() + EPSILON;
                let expected = counts.map(|count| count * (CLASSES as f32).sqrt() / mass);
                let place = (0..node).filter(|&other| owner(other, workers) == owner(node, workers)).count();
                let row = found[owner(node, workers) as usize].0.row(place);
                let near = row.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6);
                assert!(near, "{workers} workers, {least} at least, node {node}: {row:?}, not {expected:?}");
            }
        }
    }
    assert!(withheld[0] == 0 && withheld[1] > 0 && withheld[2] > withheld[1], "{withheld:?}");
}

#[test]
fn sums_of_answers_are_estimates_of_sums() {
    let dataset = graph(4);
    let labels = classes(&dataset);
    let columns = |known: Known| summed(&dataset, known, 3, 1).expect("sums");
    let (sure, known) = (Known::answered(&labels, 30.0), Known::from(&labels));
    let furthest = |a: &[(Matrix, Vec<usize>)], b: &[(Matrix, Vec<usize>)]| {
        let pairs = a.iter().zip(b).flat_map(|(a, b)| a.0.data().iter().zip(b.0.data()));
        pairs.fold(0.0f32, |most, (a, b)| most.max((a - b).abs()))
    };
    assert!(furthest(&columns(sure), &columns(known.clone())) < 1e-4);
    assert!(furthest(&columns(Known::answered(&labels, 1.0)), &columns(known)) > 0.1);
}

#[test]
fn sums_over_edges_that_lead_one_way_are_refused() {
    let dataset = directed(5);
    let error = summed(&dataset, &classes(&dataset), 3, 1).expect_err("one way").to_string();
    assert!(error.contains("data.symmetrise = true"), "{error}");
}
