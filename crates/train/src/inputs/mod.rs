//! What a model reads besides own features: messages that owners tell once, before the first round, each one file and
//! one line in [`INPUTS`].
//!
//! A message makes columns for every own node, of which training, evaluations and predictions read the same. Nothing of
//! it crosses again, so any schedule can have it. What a message holds was the owner's alone until then: where that is
//! labels, no worker sends it unless `policy.allow` names it. One that makes its columns of the own part alone has no
//! content.

mod bits;
pub mod classes;
mod codewords;
mod found;
mod label_sums;
mod labels;
mod neighbours;
mod own_labels;
mod propagated;
mod response;
#[cfg(test)]
mod tests;

use std::time::Duration;

use laconic_graph::dataset::Features;
use laconic_graph::plan::HaloPlan;
use laconic_nn::matrix::Values;
use laconic_nn::registry::{Kind, Registry};
use laconic_nn::{Matrix, Operand, SparseRows};
use laconic_wire::transport::threads::threads;
use laconic_wire::{Content, Direction, FramePurpose, Ledger, Rank, Tag, Transport, WireError, collectives};

use crate::error::{Result, TrainError};

pub use found::{Found, Terms};
pub use label_sums::LEAST;
pub use neighbours::Neighbours;
pub use response::Response;

/// The name of own features among a model's inputs.
pub const FEATURES: &str = "features";

/// The step of these frames; control frames have others.
const STEP: u16 = 50;

/// A message that is told once: an entry of an [`InputRegistry`].
#[derive(Debug)]
pub struct InputKind {
    /// The name in configurations, and of what its frames hold.
    pub name: &'static str,
    /// What its frames hold; nothing where it is made of the own part alone.
    pub content: Option<Content>,
    /// The inputs that it is made from, which come before it.
    pub from: &'static [&'static str],
    /// Whether classes of training nodes are in it.
    pub tells_labels: bool,
    /// Whether they are in it as sums over several nodes, of which `policy.label_group` says how many at least.
    pub tells_sums: bool,
    /// Whether what peers tell has lost something, so that many workers have other columns than one.
    pub loses: bool,
    /// How many columns it has.
    pub columns: fn(Wide) -> usize,
    /// The most bytes that a peer gets with which so many rows are exchanged. What often occurs takes fewer.
    pub most: fn(LinkRows, Wide) -> usize,
    /// Tells peers, hears them, and makes the columns of own rows; rows × columns.
    pub tell: fn(&mut Telling<'_>, &mut Heard) -> Result<Operand>,
}

/// Rows of a link, as who tells sees it.
#[derive(Debug, Clone, Copy)]
pub struct LinkRows {
    /// How many own rows the peer needs.
    pub go: usize,
    /// How many of its rows are needed here.
    pub come: usize,
}

/// How wide what is told of is.
#[derive(Debug, Clone, Copy)]
pub struct Wide {
    /// The number of classes.
    pub classes: usize,
    /// The number of feature columns.
    pub features: usize,
}

/// Every input that this crate has besides features.
pub const INPUTS: &[InputKind] =
    &[labels::KIND, codewords::KIND, own_labels::KIND, propagated::ONCE, propagated::TWICE, label_sums::KIND];

/// Inputs by name.
pub type InputRegistry = Registry<InputKind>;

impl Kind for InputKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        INPUTS
    }
}

/// What a worker knows when it tells.
pub struct Telling<'a> {
    /// The way to the peers.
    pub transport: &'a mut dyn Transport,
    /// The tag of its frames, where it has any.
    pub tag: Option<Tag>,
    /// Who needs which own rows, and where theirs are.
    pub links: &'a HaloPlan,
    /// Who has edges from whom.
    pub neighbours: &'a Neighbours,
    /// The class of each own row that is learned from; `None` for others.
    pub labels: &'a [Option<u32>],
    /// What is told of them.
    pub answers: &'a [Option<u32>],
    /// How many training nodes a sum of labels is of, at least.
    pub least: u32,
    /// By what odds answers of all workers are other classes; `None` where none is.
    pub response: Option<&'a Response>,
    /// The features of own rows, in their order.
    pub features: &'a Operand,
    /// The number of classes.
    pub classes: usize,
    /// Bytes that each peer has been sent.
    pub sent: Vec<usize>,
}

/// What has been told so far, for inputs that are made from others.
#[derive(Debug, Default)]
pub struct Heard {
    /// What own rows, and behind them halo rows, count for at their neighbours.
    said: Vec<labels::Said>,
    /// The same of own rows as peers have been told.
    answered: Vec<labels::Said>,
    /// The means of features over the neighbours of own rows.
    propagated: propagated::Rows,
}

impl Telling<'_> {
    /// Sends each peer what `of` makes for it from the own rows that it gets, and returns what peers have sent, in
    /// rank order: none longer than `most` says for the rows that come from it.
    ///
    /// # Errors
    /// If `of` finds one, a peer does not answer, or its message is longer.
    fn exchange(
        &mut self,
        most: fn(LinkRows, Wide) -> usize,
        mut of: impl FnMut(usize, &[u32]) -> Result<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>> {
        let (rank, links) = (self.transport.rank(), &self.links.links);
        let outgoing = links.iter().enumerate().map(|(peer, link)| match peer == rank.index() {
            true => Ok(Vec::new()),
            false => of(peer, &link.send),
        });
        let outgoing: Vec<Vec<u8>> = outgoing.collect::<Result<_>>()?;
        self.sent = outgoing.iter().map(Vec::len).collect();
        let tag = self.known_tag()?;
        let came = collectives::all_to_all(self.transport, tag, outgoing)?;
        for peer in rank.others(came.len()) {
            let (found, link) = (came[peer.index()].len(), &links[peer.index()]);
            let rows = LinkRows { go: link.receive.len(), come: link.send.len() };
            let most = most(rows, self.wide());
            if found > most {
                let what = format!("expected at most {most} bytes about {} nodes, found {found}", rows.go);
                return Err(self.malformed(peer, &what));
            }
        }
        Ok(came)
    }

    /// What turns weights of answers into estimates.
    fn unbiased(&self) -> response::Unbiased {
        self.response.map_or(response::Unbiased::TRUE, |response| response.unbiased(self.classes))
    }

    fn wide(&self) -> Wide {
        Wide { classes: self.classes, features: self.features.view().columns() }
    }

    /// The tag of its frames.
    ///
    /// # Errors
    /// If its entry says that it has none.
    fn known_tag(&self) -> Result<Tag> {
        let what = "an input whose entry has no content tells peers something";
        self.tag.ok_or_else(|| TrainError::config(what))
    }

    /// That what came from a peer is not what it should be.
    fn malformed(&self, peer: Rank, what: &str) -> TrainError {
        let error = WireError::malformed(what);
        match self.tag {
            Some(tag) => error.from_peer(self.transport.rank(), peer, tag).into(),
            None => error.into(),
        }
    }
}

impl InputKind {
    /// The tag of its frames, where it has any.
    pub fn tag(&self) -> Option<Tag> {
        let (content, purpose) = (self.content?, FramePurpose::Training);
        Some(Tag { content, purpose, direction: Direction::Forward, layer: 0, round: 0, step: STEP })
    }

    /// Enters what a worker tells that exchanges so many rows with each peer: in so many bytes where they are known, or
    /// the most.
    pub fn forecast(
        &self,
        rank: Rank,
        (links, known): (&[LinkRows], Option<&Vec<usize>>),
        wide: Wide,
        ledger: &mut Ledger,
    ) {
        let Some(tag) = self.tag() else { return };
        let most = || links.iter().map(|&rows| (self.most)(rows, wide)).collect();
        let lens: Vec<usize> = known.cloned().unwrap_or_else(most);
        collectives::forecast_all_to_all(ledger, tag, rank, &lens);
    }
}

/// One of several parts that are all here, and what a worker knows of it when it tells.
pub struct Here<'a> {
    /// Who needs which own rows, and where theirs are.
    pub links: &'a HaloPlan,
    /// Who has edges from whom.
    pub neighbours: Neighbours,
    /// The class of each own row that is learned from.
    pub labels: Vec<Option<u32>>,
    /// What is told of them.
    pub answers: Vec<Option<u32>>,
    /// How many training nodes a sum of them is of, at least.
    pub least: u32,
    /// The features of own rows, in their order.
    pub features: Operand,
}

/// Bytes that each of these parts tells each peer of each input: part, input, peer. Nobody knows how often something
/// occurs who has not counted it, so this is found by telling.
///
/// # Errors
/// If parts contradict each other.
pub fn told_bytes(
    (kinds, response): (&[&InputKind], Option<&Response>),
    parts: &[Here<'_>],
    classes: usize,
) -> Result<Vec<Vec<Vec<usize>>>> {
    let one = |(mut end, part): (_, &Here<'_>)| {
        let mut heard = Heard::default();
        let tell = |kind: &&InputKind| -> Result<Vec<usize>> {
            let Here { links, neighbours, labels, answers, least, features } = part;
            let transport: &mut dyn Transport = &mut end;
            let (tag, least, sent) = (kind.tag(), *least, Vec::new());
            let mut telling = Telling {
                transport,
                tag,
                links,
                neighbours,
                labels,
                answers,
                least,
                response,
                features,
                classes,
                sent,
            };
            (kind.tell)(&mut telling, &mut heard)?;
            Ok(telling.sent)
        };
        kinds.iter().map(tell).collect::<Result<Vec<_>>>()
    };
    let (one, ends) = (&one, threads(parts.len(), DEADLINE));
    std::thread::scope(|scope| {
        let works: Vec<_> = ends.into_iter().zip(parts).map(|work| scope.spawn(move || one(work))).collect();
        let failed = || WireError::malformed("a part could not be told of the others").into();
        works.into_iter().map(|work| work.join().unwrap_or_else(|_| Err(failed()))).collect()
    })
}

/// Features as a first layer reads them.
pub fn operand(features: Features, rows: usize, columns: usize) -> Operand {
    match features {
        Features::None => Operand::Dense(Matrix::zeros(rows, columns)),
        Features::Dense { values, .. } => Operand::compact(Matrix::from_values(rows, columns, Values::F32(values))),
        Features::Sparse { offsets, indices, values, .. } => {
            let offsets = offsets.into_iter().map(|o| o as usize).collect();
            Operand::Sparse(SparseRows::new(columns, offsets, indices, values))
        }
    }
}

/// How long a part that is here waits for another one that is.
const DEADLINE: Duration = Duration::from_secs(3600);
