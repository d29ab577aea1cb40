//! What MPI does beside messages: what its processes first say to each other, which library this is, and what it is
//! told before it starts.

use super::{MpiTransport, check, ffi, library};
use crate::{Result, Transport};
use std::ffi::c_int;
use std::path::PathBuf;

/// The key of Open MPI that says up to which size a message over TCP is sent at once. Its own value is 64 KiB, and what
/// is longer begins with a question and its answer, which costs two more latencies a message.
pub const EAGER_LIMIT: &str = "OMPI_MCA_btl_tcp_eager_limit";

/// What it is set to, in bytes: beyond it a message takes longer than the question on most links.
pub const EAGER_BYTES: u32 = 4 << 20;

/// Sets [`EAGER_LIMIT`] for this process unless the user has, in the environment or in a file of Open MPI's; whether it
/// was set. It has to be the first thing that a program does: nothing happens where there is a second thread already,
/// or the system does not say whether there is, or MPI has begun. Libraries other than Open MPI do not read it.
pub fn raise_eager_limit() -> bool {
    let alone = std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    if !alone || is_begun() || std::env::var_os(EAGER_LIMIT).is_some() || is_in_a_file() {
        return false;
    }
    // SAFETY: this is the only thread of the process, so nobody reads the environment meanwhile.
    unsafe { std::env::set_var(EAGER_LIMIT, EAGER_BYTES.to_string()) };
    true
}

fn is_begun() -> bool {
    let mut begun = 0;
    // SAFETY: it may be called at any time, with a pointer to a live local.
    unsafe { ffi::MPI_Initialized(&mut begun) };
    begun != 0
}

/// Whether one of the files in which Open MPI looks for its keys has it.
fn is_in_a_file() -> bool {
    let at = |variable: &str, rest: &str| std::env::var_os(variable).map(|folder| PathBuf::from(folder).join(rest));
    let files = [
        at("HOME", ".openmpi/mca-params.conf"),
        at("OPAL_PREFIX", "etc/openmpi-mca-params.conf"),
        Some(PathBuf::from("/etc/openmpi/openmpi-mca-params.conf")),
    ];
    let key = EAGER_LIMIT.trim_start_matches("OMPI_MCA_");
    let has = |text: String| text.lines().any(|line| line.trim_start().starts_with(key));
    files.into_iter().flatten().filter_map(|file| std::fs::read_to_string(file).ok()).any(has)
}

/// The name and version of the MPI library, such as `Open MPI v4.1.4`; `MPI` where it does not say.
pub fn library_version() -> String {
    let mut text = [0u8; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize];
    let mut len = 0;
    // SAFETY: it may be called at any time; the text has the room that MPI asks for.
    let told = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &mut len) };
    if told != ffi::MPI_SUCCESS as c_int {
        return "MPI".to_owned();
    }
    let text = String::from_utf8_lossy(&text[..len.clamp(0, text.len() as c_int) as usize]).into_owned();
    named(&text)
}

/// The name and version alone: libraries go on with how they were built.
fn named(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim_end_matches('\0');
    let words = line.split([',', '\t']).next().unwrap_or_default().trim();
    // MPICH has them on a line of their own: "MPICH Version:	4.0.2".
    match line.split_once("Version:") {
        Some((name, version)) => format!("{} {}", name.trim(), version.trim()),
        None if words.is_empty() => "MPI".to_owned(),
        None => words.to_owned(),
    }
}

impl MpiTransport {
    /// What every process of the job says, by rank; this one says `said`. All of them call it, and MPI waits for all
    /// without a deadline. It is the first that they hear of each other, so that connections begin with it.
    ///
    /// # Errors
    ///
    /// What MPI refuses.
    pub fn told_by_all<const N: usize>(&mut self, said: &[u8; N]) -> Result<Vec<[u8; N]>> {
        let rank = self.rank();
        let count = c_int::try_from(N).map_err(|_| library(rank, "MPI_Allgather", "too much to say"))?;
        let mut all = vec![[0u8; N]; self.size()];
        // SAFETY: MPI is initialised; `said` has `count` bytes and `all` as many for each process of the job.
        unsafe {
            let (byte, world, own) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD, said.as_ptr().cast());
            let code = ffi::MPI_Allgather(own, count, byte, all.as_mut_ptr().cast(), count, byte, world);
            check(rank, "MPI_Allgather", code)?;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_named_with_their_version_alone() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
        assert_eq!(named(open), "Open MPI v4.1.4");
        assert_eq!(named("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 2022\n"), "MPICH 4.0.2");
        assert_eq!(named("Intel(R) MPI Library 2021.9 for Linux* OS\n"), "Intel(R) MPI Library 2021.9 for Linux* OS");
        assert_eq!(named(""), "MPI");
    }
}
