//! How a site's part of a run has ended.

use std::path::PathBuf;

use laconic_federation::{Contract, Digest};
use laconic_train::fit::stages::Trained;
use laconic_train::record::weights;
use laconic_train::run::Outcome;
use laconic_train::worker::evaluate::Scores;
use laconic_wire::transport::sites::LinkStatus;
use serde::Serialize;

use crate::bytes::{human_bytes, listed};

/// How this site's part of a run has ended.
#[derive(Serialize)]
pub struct Joined {
    run: String,
    site: String,
    contract: String,
    rounds: u32,
    best_round: u32,
    figures: Scores,
    sent: u64,
    received: u64,
    predicted: u64,
    udp_sent: u64,
    udp_received: u64,
    resent: u64,
    connections: Vec<u32>,
    parameters: String,
    out: PathBuf,
}

/// The digest of the parameters.
pub fn digest(outcome: &Outcome) -> Digest {
    let Trained { chosen, last, .. } = &outcome.trained;
    Digest::from_bytes(weights::digest(chosen, last))
}

impl Joined {
    /// Of the run of a contract, at the site of this name.
    pub fn of((contract, site): (&Contract, &str), outcome: &Outcome, links: &[LinkStatus], out: PathBuf) -> Joined {
        let of = |what: fn(&LinkStatus) -> u64| links.iter().map(what).sum();
        Joined {
            run: contract.terms().run.clone(),
            site: site.to_owned(),
            contract: contract.digest().to_string(),
            rounds: outcome.trained.rounds,
            best_round: outcome.trained.best_round,
            figures: outcome.trained.scores.clone(),
            sent: outcome.sent.total().framed,
            received: outcome.received.total().framed,
            predicted: outcome.predicted.total().framed,
            udp_sent: of(|link| link.udp[0]),
            udp_received: of(|link| link.udp[1]),
            resent: of(|link| link.resent),
            connections: links.iter().map(|link| link.connections).collect(),
            parameters: digest(outcome).to_string(),
            out,
        }
    }

    /// The same in words.
    pub fn said(&self) -> String {
        let mut text = format!("best round {} of {}\n", self.best_round, self.rounds);
        for (split, figures) in ["train", "val", "test"].into_iter().zip(self.figures.splits()) {
            if !figures.is_empty() {
                text += &format!("  {split:<6} {}\n", listed(figures, None));
            }
        }
        let [sent, predicted, received] = [self.sent, self.predicted, self.received].map(human_bytes);
        let [out, come] = [self.udp_sent, self.udp_received].map(human_bytes);
        text += &format!("{} has sent {sent} (predicted {predicted}) and got {received}", self.site);
        text += &format!("\nover the network {out} and {come}, all headers below UDP apart");
        text += &format!("\nparameters {}\nwritten to {}", self.parameters, self.out.display());
        text
    }
}
