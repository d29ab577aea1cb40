//! The right to write into a folder, which one process at a time has, and how the folder of a run begins.
//!
//! Whether a run can start shows only when all its workers are ready. So its folder is claimed first, and nothing in it
//! or beside it changes before [`Claim::begin`]: a run that cannot start leaves everything as it was.

use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use laconic_graph::aside::{Held, keep_rights, sweep};
use laconic_graph::limits::read_file;

use super::aside::write_aside;
use super::{checkpoint, weights};
use crate::error::{Result, TrainError};
use crate::plan::{Members, Plan};

/// The configuration in a run's folder.
pub const CONFIG: &str = "config.toml";
/// The file with a line a round.
pub const METRICS: &str = "metrics.jsonl";
/// The file with what each independent trainer did when.
pub const LANES: &str = "lanes.csv";
/// The file that whoever writes into a folder holds. It is there as long as somebody does.
const LOCK: &str = "lock";
const LEDGER: &str = "ledger.csv";
/// What a run writes besides.
const RESULTS: [&str; 8] =
    [checkpoint::FILE, METRICS, weights::FILE, "summary.json", LEDGER, "timeline.csv", LANES, "report.html"];
/// What other processes read of it at most, and of a configuration.
const BYTES_MAX: u64 = 1 << 20;

/// A folder into which no other process writes.
#[derive(Debug)]
pub struct Lock(Option<Held>);

impl Lock {
    /// Takes the right to write into a folder that is there.
    ///
    /// # Errors
    /// If another process has it; which one is said.
    pub fn take(folder: &Path) -> Result<Lock> {
        let path = folder.join(LOCK);
        let io = |source| TrainError::io(&path, source);
        let Some(mut held) = Held::take(&path).map_err(io)? else {
            let mut process = String::new();
            // Where the number cannot be read, it is not said.
            let _ = std::fs::File::open(&path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut process));
            let holder = Holder::read(&process);
            return Err(TrainError::Busy { folder: folder.to_owned(), process: holder.said(&path) });
        };
        let mut before = String::new();
        let foreign = Read::by_ref(&mut held.file).take(BYTES_MAX).read_to_string(&mut before).is_err();
        if foreign || !before.trim().is_empty() && Holder::read(&before).process.is_none() {
            return Err(TrainError::file(
                &path,
                "expected the number of a process, found something else; is it yours?",
            ));
        }
        held.file
            .set_len(0)
            .and_then(|()| held.file.rewind())
            .and_then(|()| write!(held.file, "{} {}", std::process::id(), this_machine()))
            .map_err(io)?;
        Ok(Lock(Some(held)))
    }

    /// Says that the folder was renamed.
    fn moved_to(&mut self, folder: &Path) {
        self.0.iter_mut().for_each(|held| held.moved_to(folder.join(LOCK)));
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Held::remove);
    }
}

/// Who holds a lock, as far as it can be read: the number of a process, and the machine that it is on.
struct Holder<'a> {
    process: Option<u32>,
    machine: &'a str,
}

impl Holder<'_> {
    fn read(text: &str) -> Holder<'_> {
        let (process, machine) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        Holder { process: process.parse().ok(), machine }
    }

    /// In words; what to do where it has died, since file systems of several machines may keep what a machine held.
    fn said(&self, lock: &Path) -> String {
        let Some(process) = self.process else { return String::new() };
        let gone = |who: &str| format!("{process} {who}, remove {} and start again", lock.display());
        match self.machine {
            "" => process.to_string(),
            other if other != this_machine() => gone(&format!("of {other}; if that process is no longer there")),
            _ if is_there(process) => process.to_string(),
            _ => gone("of this machine, which is no longer there; unless a process that it has started still writes"),
        }
    }
}

/// The name of this machine, where the system says it.
fn this_machine() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Whether a process of this machine is there, or nobody can say.
fn is_there(process: u32) -> bool {
    let all = Path::new("/proc");
    !all.join("self").exists() || all.join(process.to_string()).exists()
}

/// A run's claim to its folder.
pub struct Claim {
    folder: PathBuf,
    members: Members,
    /// The configuration to begin with; `None` for a run that goes on in its folder.
    config: Option<String>,
    /// `None` as long as there is no folder.
    lock: Option<Lock>,
}

impl Claim {
    /// Claims the folder for a run that starts anew, or goes on (`resume`) in it.
    ///
    /// # Errors
    /// If another process writes into it, or a run cannot begin or go on there.
    pub fn new(folder: &Path, plan: &Plan, resume: bool) -> Result<Claim> {
        let config = if resume { None } else { Some(plan.members.to_toml_of_run(&plan.config)?) };
        let lock = if resume || folder.is_dir() { Some(Lock::take(folder)?) } else { None };
        if resume {
            refuse_special(folder)?;
        }
        let claim = Claim { folder: folder.to_owned(), members: plan.members.clone(), config, lock };
        if claim.is_occupied() {
            claim.check_movable()?;
        }
        Ok(claim)
    }

    /// Begins, now that the run can: moves an earlier run aside, to the first free name `DIR.1`, `DIR.2`, …, which is
    /// returned, makes the folder and writes the configuration into it. In a folder where a run goes on it removes what
    /// a killed process has left.
    ///
    /// # Errors
    /// If the operating system refuses, or another process was faster.
    pub fn begin(&mut self) -> Result<Option<PathBuf>> {
        let folder = self.folder.clone();
        let io = |source| TrainError::io(&folder, source);
        let mut moved = None;
        if let Some(config) = self.config.clone() {
            std::fs::create_dir_all(&folder).map_err(io)?;
            if self.lock.is_none() {
                self.lock = Some(Lock::take(&folder)?);
            }
            if self.is_occupied() {
                self.check_movable()?;
                let before = self.move_aside()?;
                std::fs::create_dir_all(&folder).map_err(io)?;
                keep_rights(&folder, &before, CONFIG).map_err(io)?;
                moved = Some(before);
                // The old lock goes after the new one is taken.
                self.lock = Some(Lock::take(&folder)?);
            }
            sweep(&folder, is_of_a_run).map_err(io)?;
            write_aside(&folder.join(CONFIG), config.as_bytes())?;
        } else {
            sweep(&folder, is_of_a_run).map_err(io)?;
        }
        Ok(moved)
    }

    /// Whether a run that starts anew finds another in its folder, or files of its own names.
    fn is_occupied(&self) -> bool {
        let holds = |name: &&str| self.folder.join(name).exists();
        self.config.is_some() && RESULTS.iter().chain([&CONFIG]).any(holds)
    }

    fn check_movable(&self) -> Result<()> {
        refuse_foreign(&self.folder, &self.members)?;
        refuse_current(&self.folder)
    }

    fn move_aside(&mut self) -> Result<PathBuf> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let free = (1..).map(|n| self.folder.with_file_name(format!("{name}.{n}"))).find(|path| !path.exists());
        let free = free.expect("there are infinitely many numbers");
        std::fs::rename(&self.folder, &free).map_err(|source| TrainError::io(&self.folder, source))?;
        self.lock.iter_mut().for_each(|lock| lock.moved_to(&free));
        Ok(free)
    }

    /// Checks that the folder is still where it was, so that nothing is written into another in its place.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self) -> Result<()> {
        match &self.lock {
            Some(Lock(Some(held))) if !held.is_in_place() => {
                Err(TrainError::file(&self.folder, "the folder of this run is no longer there"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a run writes files of this name.
fn is_of_a_run(name: &str) -> bool {
    let numbered = |start: &str, end: &str| {
        let number = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
    };
    let of_workers = [("ledger.", ".csv"), ("timeline.", ".csv"), ("state-", ".safetensors")];
    name == CONFIG || RESULTS.contains(&name) || of_workers.iter().any(|(start, end)| numbered(start, end))
}

/// Refuses what is no file in a folder where a run goes on: reading a pipe or a device would not end.
fn refuse_special(folder: &Path) -> Result<()> {
    let io = |source| TrainError::io(folder, source);
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let ours = entry.file_name().to_str().is_some_and(is_of_a_run);
        if ours && std::fs::metadata(entry.path()).is_ok_and(|found| !found.is_file()) {
            return Err(TrainError::file(entry.path(), "expected a file, found a folder, a pipe or a device"));
        }
    }
    Ok(())
}

/// Refuses to move a folder aside that is somebody else's.
fn refuse_foreign(folder: &Path, members: &Members) -> Result<()> {
    let has = |name: &str| folder.join(name).is_file();
    let is_ours = || {
        let text = String::from_utf8(read_file(&folder.join(CONFIG), BYTES_MAX).ok()?).ok()?;
        let keys = text.parse::<toml::Table>().ok()?;
        (!keys.is_empty() && members.parse(&text, &[]).is_ok()).then_some(())
    };
    let is_run = [checkpoint::FILE, METRICS, LEDGER].into_iter().any(has);
    if is_run || is_ours().is_some() {
        return Ok(());
    }
    let found = RESULTS.iter().chain([&CONFIG]).find(|name| has(name)).unwrap_or(&CONFIG);
    let what = format!("{found} there is not that of a run, so the folder is left alone; name another with --out");
    Err(TrainError::config(format!("{}: {what}", folder.display())))
}

/// Refuses to move the folder aside that this process is in, or one around it.
fn refuse_current(folder: &Path) -> Result<()> {
    let canonical = |path: &Path| std::fs::canonicalize(path).ok();
    match (canonical(folder), canonical(Path::new("."))) {
        (Some(folder_path), Some(current)) if current.starts_with(&folder_path) => {
            let what = "holds an earlier run, and is or holds the current folder, so that it cannot be moved aside";
            Err(TrainError::config(format!("{} {what}; name another with --out", folder.display())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a folder whose lock somebody holds and has written this into.
    fn said(text: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let mut held = Held::take(&folder.path().join(LOCK)).expect("a lock").expect("nobody holds it");
        held.file.write_all(text.as_bytes()).expect("written");
        Lock::take(folder.path()).expect_err("it is held").to_string()
    }

    #[test]
    fn a_lock_whose_process_has_died_is_named_with_what_to_do() {
        let (own, here) = (std::process::id(), this_machine());
        let busy = format!("is being written by process {own}");
        assert!(said(&own.to_string()).ends_with(&busy) && said(&format!("{own} {here}")).ends_with(&busy));
        let elsewhere = said(&format!("{own} elsewhere"));
        assert!(
            elsewhere.contains(&format!("{busy} of elsewhere; if ")) && elsewhere.contains("/lock and"),
            "{elsewhere}"
        );
        #[cfg(target_os = "linux")]
        {
            let dead = said(&format!("4000000000 {here}"));
            assert!(dead.contains("process 4000000000 of this machine, which is no longer there"), "{dead}");
            assert!(dead.contains("remove ") && dead.contains("/lock"), "{dead}");
        }
        assert!(said("").ends_with("is being written by another process"));
    }

    #[test]
    fn a_lock_that_a_dead_process_has_left_is_taken() {
        for left in ["", "123", "4000000000 elsewhere"] {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join(LOCK), left).expect("written");
            let lock = Lock::take(folder.path()).expect("nobody holds it");
            let text = std::fs::read_to_string(folder.path().join(LOCK)).expect("read");
            assert_eq!(text.split(' ').next(), Some(&*std::process::id().to_string()));
            drop(lock);
            assert!(!folder.path().join(LOCK).exists());
        }
    }
}
