//! Random splits from a seed.

use crate::dataset::{Labels, Split};
use crate::error::{GraphError, Result};
use laconic_key::{Key, Purpose};

/// How many nodes get a role.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// A share of all labelled nodes, rounded to the nearest count.
    Fraction(f64),
    /// So many of each class; all of a class that has fewer. Not for multi-label sets.
    PerClass(usize),
    /// So many in total.
    Count(usize),
}

/// A split to draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplitSpec {
    /// Training nodes, drawn first.
    pub train: Amount,
    /// Validation nodes, drawn from the others.
    pub val: Amount,
    /// Test nodes, drawn from the rest; `None` for all of it.
    pub test: Option<Amount>,
}

/// Draws a split among the labelled nodes, the same for the same labels, amounts and seed. Nodes without a label
/// get no role.
///
/// More nodes than there are is an error for counts and fractions; for a class it means all of the class. A split
/// without training nodes is an error. Cora with 86 a class and 300 for validation is `SplitSpec { train:
/// Amount::PerClass(86), val: Amount::Count(300), test: None }`.
///
/// # Errors
///
/// If there are no labels, an amount asks for more nodes than are labelled, or none is left for training.
pub fn random_split(labels: &Labels, spec: &SplitSpec, seed: u64) -> Result<Split> {
    let nodes = match labels {
        Labels::None => return Err(GraphError::invalid("a split needs labels, and there are none")),
        Labels::Single { values, .. } => values.len(),
        Labels::Multi { classes, values } => values.len() / (*classes).max(1),
    };
    let labelled = |&node: &u32| labels.known(node as usize) > 0;
    let mut order: Vec<u32> = (0..nodes as u32).filter(labelled).collect();
    let all = order.len();
    Key::new(seed, Purpose::Split).shuffle(&mut order);

    let mut roles = vec![0; nodes];
    let train = take(&mut roles, &order, labels, (spec.train, all), ("training", Split::TRAIN))?;
    if train == 0 {
        return Err(GraphError::invalid(format!("{:?} of {all} labelled nodes leaves none for training", spec.train)));
    }
    take(&mut roles, &order, labels, (spec.val, all), ("validation", Split::VAL))?;
    let rest = order.iter().filter(|&&node| roles[node as usize] == 0).count();
    let test = spec.test.unwrap_or(Amount::Count(rest));
    take(&mut roles, &order, labels, (test, all), ("testing", Split::TEST))?;
    Ok(Split { roles })
}

/// Gives the role to the first nodes of `order` that have none, as many as the amount says; returns how many.
fn take(
    roles: &mut [u8],
    order: &[u32],
    labels: &Labels,
    (amount, all): (Amount, usize),
    (name, role): (&str, u8),
) -> Result<usize> {
    let free = order.iter().filter(|&&node| roles[node as usize] == 0).count();
    let wanted = match amount {
        Amount::Fraction(fraction) if (0.0..=1.0).contains(&fraction) => {
            // Two shares that add to 1 may both round up.
            let wanted = (fraction * all as f64).round() as usize;
            if wanted == free + 1 { free } else { wanted }
        }
        Amount::Fraction(fraction) => {
            return Err(GraphError::invalid(format!("{fraction} is not a share of the nodes; expected 0 to 1")));
        }
        Amount::Count(count) => count,
        Amount::PerClass(count) => return take_per_class(roles, order, labels, count, role),
    };
    if wanted > free {
        return Err(GraphError::invalid(format!(
            "{wanted} nodes wanted for {name}, but only {free} of {all} are left"
        )));
    }
    let mut taken = 0;
    for &node in order {
        if taken < wanted && roles[node as usize] == 0 {
            roles[node as usize] = role;
            taken += 1;
        }
    }
    Ok(taken)
}

fn take_per_class(roles: &mut [u8], order: &[u32], labels: &Labels, count: usize, role: u8) -> Result<usize> {
    let Labels::Single { classes, values } = labels else {
        return Err(GraphError::invalid("so many nodes a class need one class a node; these labels are multi-label"));
    };
    let mut of_class = vec![0; *classes];
    let mut taken = 0;
    for &node in order {
        let class = values[node as usize] as usize;
        if roles[node as usize] == 0 && of_class[class] < count {
            roles[node as usize] = role;
            of_class[class] += 1;
            taken += 1;
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 300 nodes: 150 of class 0, 120 of class 1, 10 of class 2, 20 without a label.
    fn labels() -> Labels {
        let class = |node| match node {
            0..150 => 0,
            150..270 => 1,
            270..280 => 2,
            _ => -1,
        };
        Labels::Single { classes: 3, values: (0..300).map(class).collect() }
    }

    fn counts(split: &Split) -> [usize; 3] {
        [split.count(Split::TRAIN), split.count(Split::VAL), split.count(Split::TEST)]
    }

    #[test]
    fn fractions_are_of_the_labelled_nodes_and_roles_never_overlap() {
        let spec = SplitSpec { train: Amount::Fraction(0.5), val: Amount::Fraction(0.25), test: None };
        let split = random_split(&labels(), &spec, 1).unwrap();
        assert_eq!(counts(&split), [140, 70, 70]);
        assert!(split.roles[280..].iter().all(|&role| role == 0));
        assert!(split.roles[..280].iter().all(|role| role.count_ones() == 1));
    }

    #[test]
    fn so_many_a_class_takes_all_of_a_small_class() {
        let spec = SplitSpec { train: Amount::PerClass(20), val: Amount::Count(30), test: None };
        let split = random_split(&labels(), &spec, 1).unwrap();
        assert_eq!(counts(&split), [50, 30, 200]);
        let of_class =
            |range: std::ops::Range<usize>| split.roles[range].iter().filter(|&&r| r == Split::TRAIN).count();
        assert_eq!([of_class(0..150), of_class(150..270), of_class(270..280)], [20, 20, 10]);
    }

    #[test]
    fn so_many_test_and_what_is_left_has_no_role() {
        let test = |test| SplitSpec { train: Amount::PerClass(20), val: Amount::Count(30), test: Some(test) };
        let [some, rest] =
            [Amount::Count(100), Amount::Count(200)].map(|amount| random_split(&labels(), &test(amount), 1));
        let (some, rest) = (some.unwrap(), rest.unwrap());
        assert_eq!((counts(&some), counts(&rest)), ([50, 30, 100], [50, 30, 200]));
        // Nobody else trains for it.
        let but_for_tests = |split: &Split| split.roles.iter().map(|role| role & !Split::TEST).collect::<Vec<_>>();
        assert_eq!(but_for_tests(&some), but_for_tests(&rest));
        assert_eq!(counts(&random_split(&labels(), &test(Amount::Fraction(0.25)), 1).unwrap()), [50, 30, 70]);
        assert!(random_split(&labels(), &test(Amount::Count(201)), 1).is_err());
    }

    #[test]
    fn the_seed_and_nothing_else_decides() {
        let spec = SplitSpec { train: Amount::Fraction(0.6), val: Amount::Fraction(0.2), test: None };
        let split = random_split(&labels(), &spec, 7).unwrap();
        assert_eq!(split, random_split(&labels(), &spec, 7).unwrap());
        assert_ne!(split, random_split(&labels(), &spec, 8).unwrap());
    }

    #[test]
    fn shares_that_add_to_one_leave_nothing_over() {
        let labels = Labels::Multi { classes: 2, values: vec![0; 2 * 5] };
        let spec = SplitSpec { train: Amount::Fraction(0.5), val: Amount::Fraction(0.5), test: None };
        assert_eq!(counts(&random_split(&labels, &spec, 1).unwrap()), [3, 2, 0]);
    }

    #[test]
    fn a_node_gets_a_role_where_at_least_one_of_its_labels_is_known() {
        const U: u8 = Labels::UNKNOWN;
        let labels = Labels::Multi { classes: 2, values: vec![U, U, 0, U, U, 1, 0, 0] };
        let spec = SplitSpec { train: Amount::Fraction(1.0), val: Amount::Count(0), test: None };
        let split = random_split(&labels, &spec, 1).unwrap();
        assert_eq!(split.roles, [0, Split::TRAIN, Split::TRAIN, Split::TRAIN]);
    }

    #[test]
    fn impossible_splits_are_errors() {
        let refused = |train, val| random_split(&labels(), &SplitSpec { train, val, test: None }, 1).is_err();
        assert!(refused(Amount::Count(0), Amount::Count(1)));
        assert!(refused(Amount::Fraction(0.0), Amount::Count(1)));
        assert!(refused(Amount::Fraction(f64::NAN), Amount::Count(1)));
        assert!(refused(Amount::Fraction(0.9), Amount::Fraction(0.2)));
        assert!(refused(Amount::Count(281), Amount::Count(0)));
        let multi = Labels::Multi { classes: 1, values: vec![1] };
        let spec = SplitSpec { train: Amount::PerClass(1), val: Amount::Count(0), test: None };
        assert!(random_split(&multi, &spec, 1).is_err() && random_split(&Labels::None, &spec, 1).is_err());
    }
}
