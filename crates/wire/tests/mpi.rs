//! Runs `crates/wire/examples/mpi_suite.rs` under `mpirun`.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn mpirun(ranks: u32, scenario: &str) -> Output {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("tests lie in target/profile/deps");
    let program: PathBuf = profile.join("examples").join("mpi_suite");
    let ranks = ranks.to_string();
    Command::new("mpirun")
        .args(["--allow-run-as-root", "--oversubscribe", "-n", &ranks])
        .arg(program)
        .arg(scenario)
        .output()
        .expect("mpirun must be installed to test the MPI transport")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

// One test, because the scenarios measure time and the ranks of one alone fill a small machine.
#[test]
fn the_suite_holds_under_mpi_and_bad_peers_are_named() {
    for ranks in [1, 2, 3] {
        for scenario in ["suite", "cut", "shaped"] {
            let output = mpirun(ranks, scenario);
            assert!(output.status.success(), "{scenario} on {ranks} ranks: {}", text(&output));
            let words = format!("{scenario} on {ranks} ranks: every law held");
            assert!(text(&output).contains(&words), "{}", text(&output));
        }
    }
    for scenario in ["late", "stopped", "gone", "interrupted"] {
        let start = Instant::now();
        let output = mpirun(3, scenario);
        assert_eq!(output.status.code(), Some(3), "{scenario}: {}", text(&output));
        for rank in [1, 2] {
            let parts = [&*format!("rank {rank} "), "rank 0", "activations of layer 1, forward, round 17, step 1"];
            let named = text(&output).lines().any(|line| parts.iter().all(|part| line.contains(part)));
            assert!(named, "{scenario}, rank {rank}: {}", text(&output));
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{scenario} took {:?}", start.elapsed());
    }
}
