//! In which order own rows stand, such that what layers put out are the first ones: for rounds, which are read from
//! training nodes on, and for evaluations, which are read from nodes of all splits on.

use laconic_graph::dataset::Split;
use laconic_graph::narrow::Steps;
use laconic_graph::part::Part;
use laconic_graph::plan::{HaloPlan, Topology};

use crate::plan::{Plan, Reader};

/// For each number of edges from 0 on, the first own rows that have all that are read over so many at most. Nothing
/// where no layer leaves out any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Within {
    /// Of training nodes.
    pub training: Vec<usize>,
    /// Of nodes of all splits.
    pub evaluation: Vec<usize>,
}

impl Within {
    /// The order of a part's rows in which least is put out, and how many rows stand where; training sees `seen` of the
    /// `whole` graph. `None` where no order leaves out any.
    pub fn of(
        plan: &Plan,
        part: &Part,
        whole: &(HaloPlan, Topology),
        seen: &(HaloPlan, Topology),
    ) -> (Option<Steps>, Within) {
        let is_in =
            |row: usize, roles: u8| part.roles.get(row).is_some_and(|r| r & roles != 0) && part.labels.known(row) > 0;
        let is_judged = |row: usize| is_in(row, Split::TRAIN | Split::VAL | Split::TEST);
        let over = |(links, topology): &(HaloPlan, Topology), wanted: &dyn Fn(usize) -> bool, most: u16| {
            Steps::to(wanted, &topology.own, links, most)
        };
        let mut orders = vec![(None, Within::default())];
        let training = plan.steps_to(Reader::Loss).map(|most| over(seen, &|row| is_in(row, Split::TRAIN), most));
        let most = plan.steps_to(Reader::Figures);
        if let Some(steps) = &training {
            let within = Within { training: steps.within(), evaluation: Vec::new() };
            orders.push((Some(steps.clone()), within));
        }
        if let Some(most) = most {
            let steps = over(whole, &is_judged, most);
            orders.push((Some(steps.clone()), Within { training: Vec::new(), evaluation: steps.within() }));
            orders.extend(training.as_ref().map(|training| {
                // What rounds read at any time is read by evaluations at once.
                let after = over(whole, &|row| is_judged(row) || training.reach(row), most);
                let both = training.then(&after);
                let mut within = both.within();
                let evaluation = within.split_off(training.within().len());
                (Some(both), Within { training: within, evaluation })
            }));
            orders.extend(training.as_ref().map(|training| {
                let both = training.in_turn(&steps);
                let within = both.within();
                let each = |first: usize| within.iter().skip(first).step_by(2).copied();
                let of_training = each(0).take(training.within().len()).collect();
                (Some(both), Within { training: of_training, evaluation: each(1).collect() })
            }));
        }
        let least = orders.into_iter().min_by_key(|(_, within)| within.cost(plan, part.rows()));
        least.unwrap_or_default()
    }

    /// Rows that layers put out for an evaluation and in the rounds for each, the latter three times: products of the
    /// way back are twice as many.
    fn cost(&self, plan: &Plan, rows: usize) -> u64 {
        let of_stage = |stage| {
            let sum = |reader, within: &[usize]| plan.rows_put_out(stage, reader, rows, within).iter().sum::<usize>();
            let rounds = u64::from(plan.cadence.rounds_an_evaluation());
            3 * rounds * sum(Reader::Loss, &self.training) as u64 + sum(Reader::Figures, &self.evaluation) as u64
        };
        plan.stages.iter().map(of_stage).sum()
    }
}
