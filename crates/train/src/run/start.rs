//! What happens once, before any worker of a run works.

use std::path::Path;

use crate::error::Result;
use crate::plan::Plan;
use crate::record::folder::prepare_folder;
use crate::record::observer::Observer;

/// Makes the folder of a run that starts anew and says that it starts.
pub(super) fn start_folder(plan: &Plan, out: Option<&Path>, workers: usize, observer: &mut dyn Observer) -> Result<()> {
    let moved = out.map(|out| prepare_folder(out, plan)).transpose()?.flatten();
    observer.started(&plan.config, workers, moved.as_deref());
    Ok(())
}
