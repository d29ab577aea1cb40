//! Randomised response (Warner, 1965) of one of several classes: what an owner tells in place of the class of a node
//! that trains.
//!
//! With probability p = e^ε / (e^ε + C − 1) it is the class, else each of the C − 1 others with q = 1 / (e^ε + C − 1).
//! p / q = e^ε, so no answer is more than e^ε times as likely from one class as from another: local differential
//! privacy of a label. Whether a node trains is told as it is.
//!
//! An answer is a function of node, class, ε, and a secret of the owner that never leaves it: the same to every peer,
//! in every use, run and prediction, or many answers would average out. The seed of a run would not do in place of it:
//! peers know that. Answers with another ε do not depend on each other, and what they cost adds up.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use laconic_graph::limits::read_file;

use crate::error::{Result, TrainError};

/// How owners answer for the labels of their nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// By how much, as a logarithm, one class may make an answer likelier than another.
    pub epsilon: f64,
    /// The file with the owner's secret; it is made where there is none.
    pub secret: PathBuf,
}

/// Turns weights of answers into unbiased estimates of weights of classes: (answered − all · q) / (p − q).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unbiased {
    /// 1 / (p − q).
    pub scale: f32,
    /// q / (p − q).
    pub each: f32,
}

impl Unbiased {
    /// For answers that are always true.
    pub const TRUE: Unbiased = Unbiased { scale: 1.0, each: 0.0 };
}

const DIGITS: usize = 2 * blake3::KEY_LEN;

impl Response {
    /// The probabilities of the true class and of each other one, among so many.
    pub fn odds(&self, classes: usize) -> [f64; 2] {
        // 1 / e^ε is a number for any ε, and e^ε is not.
        let other = (-self.epsilon).exp();
        let all = 1.0 + other * classes.saturating_sub(1) as f64;
        [1.0 / all, other / all]
    }

    pub(super) fn unbiased(&self, classes: usize) -> Unbiased {
        let [kept, other] = self.odds(classes);
        Unbiased { scale: (1.0 / (kept - other)) as f32, each: (other / (kept - other)) as f32 }
    }

    /// What is told of each of these nodes in place of its class.
    ///
    /// # Errors
    /// If there is a file with something else than a secret, or none can be made.
    pub fn answers(&self, nodes: &[u64], labels: &[Option<u32>], classes: usize) -> Result<Vec<Option<u32>>> {
        let secret = secret(&self.secret)?;
        let answer =
            |(&node, class): (&u64, &Option<u32>)| class.map(|class| self.answer(&secret, (node, class), classes));
        Ok(nodes.iter().zip(labels).map(answer).collect())
    }

    /// Whether there is a secret, so that answers are what they will be in a run.
    pub fn has_secret(&self) -> bool {
        self.secret.exists()
    }

    fn answer(&self, secret: &[u8; blake3::KEY_LEN], (node, class): (u64, u32), classes: usize) -> u32 {
        let about = [node, class.into(), classes as u64, self.epsilon.to_bits()];
        let hash = blake3::keyed_hash(secret, bytemuck::cast_slice(&about.map(u64::to_le)));
        let drawn: [u64; 2] =
            [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| hash.as_bytes()[at + byte])));
        let others = (classes as u64).saturating_sub(1);
        if others == 0 || (drawn[0] >> 11) as f64 / ((1u64 << 53) as f64) < self.odds(classes)[0] {
            return class;
        }
        let further = 1 + ((u128::from(drawn[1]) * u128::from(others)) >> 64) as u64;
        ((u64::from(class) + further) % classes as u64) as u32
    }
}

/// The secret in this file, which is made where there is none. Workers of one process make it once.
fn secret(path: &Path) -> Result<[u8; blake3::KEY_LEN]> {
    let io = |source| TrainError::io(path, source);
    if !path.exists() {
        let mut drawn = [0; blake3::KEY_LEN];
        getrandom::fill(&mut drawn).map_err(|error| io(std::io::Error::other(error)))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Under another name first, readable for its owner alone.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
        writeln!(file, "{}", blake3::Hash::from_bytes(drawn).to_hex()).map_err(io)?;
        match file.persist_noclobber(path) {
            Err(failed) if failed.error.kind() != ErrorKind::AlreadyExists => return Err(io(failed.error)),
            _ => {}
        }
    }
    let found = read_file(path, DIGITS as u64 + 2).map_err(io)?;
    let digits = blake3::Hash::from_hex(found.trim_ascii()).map_err(|_| {
        let what = format!("expected {DIGITS} hexadecimal digits, the secret of policy.label_secret");
        TrainError::file(path, format!("{what}; without this file a secret is drawn, and labels are told anew"))
    })?;
    Ok(*digits.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with a secret that is given.
    fn with(epsilon: f64, digit: char) -> (tempfile::TempDir, Response) {
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, digit.to_string().repeat(DIGITS)).expect("a file");
        (folder, Response { epsilon, secret })
    }

    #[test]
    fn a_label_is_kept_as_often_as_epsilon_says_and_others_are_all_alike() {
        const NODES: usize = 40_000;
        let nodes: Vec<u64> = (0..NODES as u64).map(|node| node * 7 + 3).collect();
        for (epsilon, classes) in [(0.5, 2), (1.0, 5), (2.0, 5), (4.0, 40)] {
            let (_folder, response) = with(epsilon, 'a');
            let [kept, other] = response.odds(classes);
            assert!(
                (kept + other * (classes - 1) as f64 - 1.0).abs() < 1e-12
                    && ((kept / other).ln() - epsilon).abs() < 1e-9
            );
            for class in [0, classes as u32 - 1] {
                let answers = response.answers(&nodes, &vec![Some(class); NODES], classes).expect("answers");
                for answer in 0..classes as u32 {
                    let chance = if answer == class { kept } else { other };
                    let found = answers.iter().filter(|found| **found == Some(answer)).count() as f64;
                    // Five standard deviations: one in two million.
                    let bound = 5.0 * (NODES as f64 * chance * (1.0 - chance)).sqrt();
                    assert!((found - NODES as f64 * chance).abs() < bound, "ε {epsilon}, {class} as {answer}: {found}");
                }
            }
        }
    }

    #[test]
    fn estimates_of_counts_are_unbiased() {
        let (epsilon, classes) = (1.0, 5);
        let (_folder, response) = with(epsilon, 'b');
        let Unbiased { scale, each } = response.unbiased(classes);
        let labels: Vec<Option<u32>> = (0..30_000).map(|at| Some([0, 0, 0, 1, 3, 3][at % 6])).collect();
        let nodes: Vec<u64> = (0..labels.len() as u64).collect();
        let answers = response.answers(&nodes, &labels, classes).expect("answers");
        for (class, share) in [3.0 / 6.0, 1.0 / 6.0, 0.0, 2.0 / 6.0, 0.0].into_iter().enumerate() {
            let answered = answers.iter().filter(|answer| **answer == Some(class as u32)).count() as f32;
            let estimate = (answered * scale - labels.len() as f32 * each) / labels.len() as f32;
            assert!(
                (estimate - share).abs() < 5.0 * scale / (2.0 * (labels.len() as f32).sqrt()),
                "{class}: {estimate}"
            );
        }
    }

    #[test]
    fn answers_are_the_same_each_time_and_others_with_another_secret_or_epsilon() {
        let (nodes, labels) = ((0..500).collect::<Vec<u64>>(), vec![Some(3); 500]);
        let of = |epsilon, digit| {
            let (_folder, response) = with(epsilon, digit);
            response.answers(&nodes, &labels, 40).expect("answers")
        };
        assert_eq!(of(1.0, 'c'), of(1.0, 'c'));
        assert_ne!(of(1.0, 'c'), of(1.0, 'd'));
        // What was drawn anew agrees by chance alone, or two answers with different ε would say which is true.
        let kept = |answers: Vec<Option<u32>>| answers.into_iter().map(|answer| answer == Some(3)).collect::<Vec<_>>();
        let (low, high) = (kept(of(3.0, 'c')), kept(of(3.5, 'c')));
        assert!(low.iter().zip(&high).any(|(low, high)| *low && !high));
        let (_folder, response) = with(1.0, 'c');
        assert_eq!(response.answers(&nodes, &vec![None; 500], 40).expect("answers"), vec![None; 500]);
    }

    #[test]
    fn a_secret_is_made_once_for_its_owner_alone_and_what_is_none_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let response = Response { epsilon: 1.0, secret: folder.path().join("secret") };
        assert!(!response.has_secret());
        let (nodes, labels) = ((0..200).collect::<Vec<u64>>(), vec![Some(0); 200]);
        let all = std::thread::scope(|scope| {
            let works: Vec<_> = (0..8).map(|_| scope.spawn(|| response.answers(&nodes, &labels, 9))).collect();
            works.into_iter().map(|work| work.join().expect("no panic").expect("answers")).collect::<Vec<_>>()
        });
        assert!(response.has_secret() && all.iter().all(|answers| *answers == all[0]));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&response.secret).expect("a file").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{mode:o}");
        }
        for wrong in ["", "abc", &"g".repeat(DIGITS), &"a".repeat(DIGITS + 9)] {
            std::fs::write(&response.secret, wrong).expect("a file");
            let error = response.answers(&nodes, &labels, 9).expect_err("refused").to_string();
            assert!(error.contains("secret"), "{error}");
        }
        let nowhere = Response { secret: folder.path().join("no/where"), ..response };
        assert!(nowhere.answers(&nodes, &labels, 9).is_err());
    }
}
