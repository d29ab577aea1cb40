//! A worker's exchanges: along the edges that training sees, and along those that evaluations do.

use laconic_graph::plan::{Covered, HaloPlan, Topology};
use laconic_wire::Transport;

use super::local::Local;
use crate::error::Result;
use crate::exchange::cover::cover;
use crate::exchange::halo::Halo;
use crate::messages::coders::Coders;
use crate::plan::Plan;

/// An exchange, and own rows with the edges from what comes with it.
type Along = (Halo, Local);

/// What crosses in the place of rows, where sums may.
///
/// # Errors
/// As [`cover`].
pub(super) fn covered(
    plan: &Plan,
    transport: &mut dyn Transport,
    whole: (&HaloPlan, &Topology),
    ids: &[u64],
) -> Result<Option<Covered>> {
    plan.covers.then(|| cover(transport, whole, ids)).transpose()
}

/// The exchange in training along these links, or those of the graph that training sees; and that of evaluations where
/// they see another.
pub(super) fn of(
    plan: &Plan,
    links: HaloPlan,
    local: Local,
    (seen, covered): (Option<(HaloPlan, Topology)>, Option<Covered>),
) -> (Halo, Local, Option<Box<(Local, Halo)>>) {
    let Some((training_links, topology)) = seen else {
        let (halo, local) = along(plan, links, local, covered);
        return (halo, local, None);
    };
    let (training, whole) = (local.over(topology), exchange(plan, links, &local));
    let halo = exchange(plan, training_links, &training);
    (halo, training, plan.evaluates_whole_graph().then(|| Box::new((local, whole))))
}

fn along(plan: &Plan, links: HaloPlan, local: Local, covered: Option<Covered>) -> Along {
    let Some(Covered { links: covered, outgoing, halo, halo_ids }) = covered else {
        return (exchange(plan, links, &local), local);
    };
    let links = HaloPlan { links: covered, ..links };
    (exchange(plan, links, &local).with_sums(outgoing), local.covered(halo, halo_ids))
}

/// The exchange along these links between own rows and others'.
fn exchange(plan: &Plan, links: HaloPlan, local: &Local) -> Halo {
    let (seed, rows) = (plan.config.train.seed, local.ids.len());
    Halo::new(links, rows, Coders::new(&plan.messages, seed), seed, plan.selection.clone())
}
