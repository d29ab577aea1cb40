//! What happens once, before any worker of a run works.

use std::path::Path;

use laconic_graph::part::Part;

use crate::error::Result;
use crate::exchange::shapes::Shapes;
use crate::forecast::memory::{self, Memory};
use crate::plan::Plan;
use crate::record::folder::prepare_folder;
use crate::record::observer::Observer;

/// What the workers of these parts will take, in bytes, unless that is more than there is and they are not `forced` to
/// start. Each stands for `alike` workers on this machine.
pub(super) fn admit(
    plan: &Plan,
    (parts, alike): (&[Part], usize),
    keeps_accounts: bool,
    forced: bool,
    observer: &mut dyn Observer,
) -> Result<u64> {
    let mut all = Memory::default();
    for part in parts {
        all.add_all(&memory::forecast(&Shapes::outline(part, plan.self_loops), plan, keeps_accounts));
    }
    if let Some(warning) = memory::admit(&all.times(alike as u64), parts.len() * alike, forced)? {
        observer.warned(&warning);
    }
    Ok(all.total())
}

/// Makes the folder of a run that starts anew and says that it starts.
pub(super) fn start_folder(plan: &Plan, out: Option<&Path>, workers: usize, observer: &mut dyn Observer) -> Result<()> {
    let moved = out.map(|out| prepare_folder(out, plan)).transpose()?.flatten();
    observer.started(&plan.config, workers, moved.as_deref());
    plan.notes().iter().for_each(|note| observer.noted(note));
    Ok(())
}
