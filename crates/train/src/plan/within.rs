//! In which order own rows stand, such that what layers output are the first ones: for rounds, which are read from
//! training nodes on, and for evaluations, which are read from nodes of all splits on.

use laconic_graph::dataset::Split;
use laconic_graph::narrow::Steps;
use laconic_graph::part::Part;
use laconic_graph::plan::{HaloPlan, Topology};

use super::{Plan, Reader};

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
    /// The order of a part's rows in which least is output, and how many rows stand where; training sees `seen` of the
    /// `whole` graph. `None` where no order leaves out any.
    pub fn of(
        plan: &Plan,
        part: &Part,
        whole: (&HaloPlan, &Topology),
        seen: (&HaloPlan, &Topology),
    ) -> (Option<Steps>, Within) {
        let is_in =
            |row: usize, roles: u8| part.roles.get(row).is_some_and(|r| r & roles != 0) && part.labels.known(row) > 0;
        let is_judged = |row: usize| is_in(row, Split::TRAIN | Split::VAL | Split::TEST);
        let over = |(links, topology): (&HaloPlan, &Topology), wanted: &dyn Fn(usize) -> bool, most: u16| {
            Steps::to(wanted, &topology.own, links, most)
        };
        let leaves_out = |reader: Reader, steps: &Steps| plan.leaves_out(reader, part.rows(), &steps.within());
        let training = plan.steps_to(Reader::Loss).map(|most| over(seen, &|row| is_in(row, Split::TRAIN), most));
        let training = training.filter(|steps| leaves_out(Reader::Loss, steps));
        let evaluation = plan.steps_to(Reader::Figures).map(|most| (over(whole, &is_judged, most), most));
        let evaluation = evaluation.filter(|(steps, _)| leaves_out(Reader::Figures, steps));
        let (training, (steps, most)) = match (training, evaluation) {
            (None, None) => return (None, Within::default()),
            (Some(steps), None) => {
                let training = steps.within();
                return (Some(steps), Within { training, evaluation: Vec::new() });
            }
            (None, Some((steps, _))) => {
                let evaluation = steps.within();
                return (Some(steps), Within { training: Vec::new(), evaluation });
            }
            (Some(training), Some(evaluation)) => (training, evaluation),
        };
        let counts = training.within().len();
        // What rounds read at any time is read by evaluations at once.
        let after = training.then(&over(whole, &|row| is_judged(row) || training.reach(row), most));
        let mut of_training = after.within();
        let evaluation = of_training.split_off(counts);
        let after = (after, Within { training: of_training, evaluation });
        let in_turn = training.in_turn(&steps);
        let within = in_turn.within();
        let each = |first: usize| within.iter().skip(first).step_by(2).copied();
        let within = Within { training: each(0).take(counts).collect(), evaluation: each(1).collect() };
        let cost = |(_, within): &(Steps, Within)| within.cost(plan, part.rows());
        let (steps, within) = std::cmp::min_by_key(after, (in_turn, within), cost);
        (Some(steps), within)
    }

    /// Rows that layers output for an evaluation and in the rounds for each, the latter three times: products of the
    /// backward pass are twice as many.
    fn cost(&self, plan: &Plan, rows: usize) -> u64 {
        let of_stage = |stage| {
            let sum = |reader, within: &[usize]| plan.rows_put_out(stage, reader, rows, within).iter().sum::<usize>();
            let rounds = u64::from(plan.cadence.rounds_an_evaluation());
            3 * rounds * sum(Reader::Loss, &self.training) as u64 + sum(Reader::Figures, &self.evaluation) as u64
        };
        plan.stages.iter().map(of_stage).sum()
    }
}
