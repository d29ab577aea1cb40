//! What is asked once, before any worker of a run works.

use laconic_graph::part::Part;

use crate::error::Result;
use crate::forecast::memory::{self, Memory};
use crate::plan::Plan;
use crate::record::observer::Observer;

/// What the workers of these parts will take, in bytes, unless that is more than there is and they are not `forced` to
/// start. Each stands for `alike` workers on this machine.
pub(super) fn admit(
    plan: &Plan,
    parts: &[Part],
    alike: usize,
    keeps_accounts: bool,
    forced: bool,
    observer: &mut dyn Observer,
) -> Result<u64> {
    let mut all = Memory::default();
    for part in parts {
        all.add_all(&memory::outlined(part, plan, keeps_accounts));
    }
    if let Some(warning) = memory::admit(&all, (parts.len(), alike), forced)? {
        observer.warned(&warning);
    }
    Ok(all.total())
}
