//! What link prediction sends besides what every task does: embeddings of pairs' ends. Which they are is drawn, so
//! these are bounds: everything that a draw could need.

use laconic_graph::links::TRIES;
use laconic_graph::plan::Listed;
use laconic_nn::metric::Metric;
use laconic_wire::{Content, Direction, Rank, Tag, collectives};

use super::book::Book;
use super::contents::{Item, What};
use super::fetches::{foreign_ends, learned};
use crate::error::Result;
use crate::exchange::drawn::Route;
use crate::exchange::halo::{Halo, Request};
use crate::exchange::shapes::{PeerRows, Shapes};
use crate::exchange::steps::Step;
use crate::messages::coders::Coders;
use crate::plan::{LinkPlan, Plan, RankedAmong};
use crate::selection::Scope;
use crate::worker::edges::pairs_bytes;
use crate::worker::ends::{embeddings, evaluated, ids_bytes};
use crate::worker::judgements::{Judgements, Measured};
use crate::worker::left::Left;

/// The most that one worker may need of others, and others of it.
pub(super) struct Bounds<'a> {
    links: &'a LinkPlan,
    shapes: &'a Shapes,
}

/// The exchange of a round's embeddings.
pub(super) struct Embeddings<'a> {
    pub plan: &'a Plan,
    pub coders: &'a mut Coders,
    pub width: usize,
    pub layer: u16,
    pub round: u32,
    /// How many batches are drawn before this one, where rounds are batches: their inputs come, and no embeddings.
    pub window: Option<u32>,
}

impl<'a> Bounds<'a> {
    /// `None` where targets are no edges.
    pub fn of(plan: &'a Plan, shapes: &'a Shapes) -> Option<Bounds<'a>> {
        plan.links.as_deref().map(|links| Bounds { links, shapes })
    }

    /// What the figures of an evaluation are computed from.
    pub fn figures(&self, metrics: &[Metric], round: u32, book: &mut Book<'_>) {
        let shapes = self.shapes;
        let edges = shapes.split_rows[1] + shapes.split_rows[2];
        let what = Measured { links: self.links, metrics };
        book.note(What::Figures, 0, |ledger| Judgements::forecast(metrics, shapes, round, ledger));
        book.note(What::Bins, 0, |ledger| Judgements::forecast_bins(metrics, shapes, round, ledger));
        book.note(What::Scored, edges, |ledger| Judgements::forecast_scores(what, shapes, round, ledger));
    }

    /// Foreign nodes that so many pairs may have at their ends.
    fn foreign(&self, pairs: u64) -> u64 {
        pairs.min(self.links.nodes.saturating_sub(self.shapes.rows as u64))
    }

    /// Of an evaluation.
    fn of_evaluation(&self) -> u64 {
        self.foreign(self.links.judged_pairs(self.shapes.split_rows, self.shapes.given_pairs))
    }

    /// Links on which everybody needs every own row, and one peer has all that is needed here; the others have a row
    /// more, which is no less than the frame that some of it would travel in.
    fn links(&self, foreign: u64) -> Vec<PeerRows> {
        let (rank, workers) = (Rank(self.shapes.rank), self.shapes.workers());
        let mut links = vec![PeerRows::default(); workers];
        for (index, peer) in rank.others(workers).enumerate() {
            let receive = if index == 0 { foreign } else { foreign.min(1) } as usize;
            links[peer.index()] = PeerRows { send: self.shapes.rows, receive };
        }
        links
    }

    /// Questions to every peer, and answers.
    fn ask(&self, foreign: u64, steps: [Step; 2], round: u32, book: &mut Book<'_>) {
        let (rank, workers) = (Rank(self.shapes.rank), self.shapes.workers());
        let nodes = self.links.nodes;
        // Answers are places among ids, of which there are no more than nodes, whatever ids are like.
        let bytes = [ids_bytes(foreign, nodes), Listed::most(self.shapes.rows as u64, nodes) as usize];
        let evaluates = steps[0].tag(round).evaluates();
        book.note(What::Ends { evaluates }, self.shapes.rows, |ledger| {
            for (step, bytes) in steps.into_iter().zip(bytes) {
                collectives::forecast_all_to_all(ledger, step.tag(round), rank, &vec![bytes; workers]);
            }
        });
    }

    /// Which of so many pairs are edges.
    fn ask_edges(&self, pairs: u64, steps: [Step; 2], round: u32, book: &mut Book<'_>) {
        if !self.links.filters {
            return;
        }
        let (rank, workers) = (Rank(self.shapes.rank), self.shapes.workers());
        // What others ask is not known here; their answers name edges alone.
        let own: usize = self.shapes.split_rows.iter().sum();
        let evaluates = steps[0].tag(round).evaluates();
        book.note(What::Pairs { evaluates }, 0, |ledger| {
            for tries in &TRIES {
                let counts = [pairs.saturating_mul(tries.len() as u64), own as u64];
                for (step, count) in steps.into_iter().zip(counts) {
                    collectives::forecast_all_to_all(ledger, step.tag(round), rank, &vec![pairs_bytes(count); workers]);
                }
            }
        });
    }

    /// What is asked before a stage's first evaluation.
    pub fn judged_ends(&self, round: u32, book: &mut Book<'_>) {
        if let (RankedAmong::Drawn(number), true) = (self.links.ranked_among, self.links.filters_judged()) {
            let edges = (self.shapes.split_rows[1] + self.shapes.split_rows[2]) as u64;
            let pairs = edges.saturating_mul(number.into());
            self.ask_edges(pairs, [Step::JudgedEdgeQuestions, Step::JudgedEdgeAnswers], round, book);
            book.note(What::Pairs { evaluates: true }, 0, |ledger| Left::forecast(self.shapes, round, ledger));
        }
        self.ask(self.of_evaluation(), [Step::JudgedQuestions, Step::JudgedAnswers], round, book);
    }

    /// What a round sends, and its evaluation if there is one.
    pub fn round(&self, mut at: Embeddings<'_>, evaluates: bool, book: &mut Book<'_>) -> Result<()> {
        let (rank, workers) = (Rank(self.shapes.rank), self.shapes.workers());
        let (round, layer) = (at.round, at.layer);
        let train = self.shapes.split_rows[0];
        let drawn = at.window.map_or(train, |batches| learned(at.plan, train, batches));
        let foreign = self.foreign(foreign_ends(at.plan, drawn) as u64);
        if at.window != Some(0) {
            let pairs = (drawn as u64).saturating_mul(self.links.number.into());
            self.ask_edges(pairs, [Step::EdgeQuestions, Step::EdgeAnswers], round, book);
            self.ask(foreign, [Step::PairQuestions, Step::PairAnswers], round, book);
        }
        if !at.plan.cadence.is_local() {
            book.note(What::Agreement, 0, |ledger| {
                collectives::forecast_all_reduce_f64(ledger, Step::PairCounts.tag(round), workers, rank, 2);
            });
        }
        if at.window.is_none() {
            let links = self.links(foreign);
            for direction in [Direction::Forward, Direction::Reverse] {
                self.exchange(&mut at, embeddings(layer, round, direction), &links, book)?;
            }
        }
        if evaluates { self.evaluation(at, book) } else { Ok(()) }
    }

    /// What an evaluation sends.
    pub fn evaluation(&self, mut at: Embeddings<'_>, book: &mut Book<'_>) -> Result<()> {
        let links = self.links(self.of_evaluation());
        let tag = evaluated(at.layer, at.round);
        self.exchange(&mut at, tag, &links, book)
    }

    fn exchange(&self, at: &mut Embeddings<'_>, tag: Tag, links: &[PeerRows], book: &mut Book<'_>) -> Result<()> {
        let evaluates = tag.evaluates();
        let what = match tag.direction {
            Direction::Forward => What::Rows { of: Content::Embeddings, is_weighted: false, evaluates },
            Direction::Reverse => What::RowGradients,
        };
        let item = Item { what, layer: tag.layer, width: at.width, is_drawn: !evaluates, evaluates: false };
        let route = Route { rank: Rank(self.shapes.rank), links, selection: None, seed: at.plan.config.train.seed };
        // Whoever is the one peer that has all ends.
        let received = links.iter().map(|link| link.receive).max().unwrap_or(0);
        let nodes = |peer: Rank| match tag.direction {
            Direction::Forward => links[peer.index()].send,
            Direction::Reverse => received,
        };
        let request = Request::now(tag, Scope::Whole);
        book.enter(item, nodes, |ledger| Halo::forecast(&route, at.coders, request, at.width, ledger))
    }
}
