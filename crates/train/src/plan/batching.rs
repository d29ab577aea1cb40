//! Batches, resolved: how many make an epoch, and what each reads.

use laconic_graph::links::NegativeScope;
use laconic_graph::part::GlobalCounts;

use super::{BatchingKind, Members, Plan};
use crate::config::batch::BYTES;
use crate::config::ramp::Clock;
use crate::config::{BatchConfig, Config, TrainersHalo, parse_bytes};
use crate::error::{Result, TrainError};
use crate::schedule::Stage;
use crate::selection::Scope;

/// In-neighbours of a layer where none are said.
const FANOUT: usize = 10;
/// Clusters of a batch where none are said.
const CLUSTERS: usize = 10;

/// How a run is divided into batches.
#[derive(Debug, Clone)]
pub struct Batching {
    /// What a batch reads.
    pub kind: &'static BatchingKind,
    /// Batches of an epoch.
    pub batches: u32,
    /// Training nodes, or edges, of a batch, about.
    pub size: usize,
    /// Nodes of the whole graph.
    pub nodes: usize,
    /// Whether its edges have weights.
    pub weighted: bool,
    /// In-neighbours drawn for each layer that reads any, over all stages; `None` for all.
    fanouts: Vec<Option<usize>>,
    /// Clusters of each part.
    pub clusters: usize,
    /// Bytes for rows of other workers that later batches read.
    pub cache: u64,
    /// Batches after which neighbours are drawn anew.
    pub redraw: u32,
    /// Batches that are sampled ahead.
    pub ahead: usize,
}

impl BatchConfig {
    /// Checks everything that does not depend on data.
    ///
    /// # Errors
    /// If a value makes no sense, or nothing would read it.
    pub(super) fn check(&self, layers: usize) -> Result<()> {
        let refuse = |what: String| Err(TrainError::config(what));
        if self.size == 0 && *self != BatchConfig::default() {
            return refuse(self.idle_without_size());
        }
        if !self.fanouts.is_empty() && self.fanouts.len() != layers {
            let found = self.fanouts.len();
            return refuse(format!("batch.fanouts: expected {layers} numbers, one a layer, found {found}"));
        }
        if let Some(fanout) = self.fanouts.iter().find(|&&fanout| fanout < -1 || fanout == 0 || fanout > 1 << 20) {
            return refuse(format!(
                "batch.fanouts: expected 1 to {} neighbours, or -1 for all, found {fanout}",
                1 << 20
            ));
        }
        if self.redraw == 0 {
            return refuse("batch.redraw = 0: expected 1, which draws anew in each batch, or more".to_owned());
        }
        let most = [("size", self.size, 1 << 32), ("clusters", self.clusters, 1 << 24), ("ahead", self.ahead, 64)];
        if let Some((key, found, most)) = most.into_iter().find(|(_, found, most)| found > most) {
            return refuse(format!("batch.{key} = {found}: expected at most {most}"));
        }
        self.cache_bytes().map(drop)
    }

    /// What nothing reads where there are no batches.
    fn idle_without_size(&self) -> String {
        let [own, defaults] =
            [self, &BatchConfig::default()].map(|batch| toml::Table::try_from(batch).unwrap_or_default());
        let idle = own.iter().filter(|(key, value)| defaults.get(*key) != Some(value));
        let idle: Vec<String> = idle.map(|(key, _)| format!("batch.{key}")).collect();
        let keys = idle.join(", ");
        format!(
            "{keys}: batch.size = 0 trains on all nodes at once, without batches; give the nodes of a batch, or leave \
             out {keys}"
        )
    }

    fn cache_bytes(&self) -> Result<u64> {
        if ["0", "0 B"].contains(&self.cache.trim()) {
            return Ok(0);
        }
        let refused = || TrainError::config(format!("batch.cache = {:?}: expected {BYTES}", self.cache));
        parse_bytes(&self.cache).ok_or_else(refused)
    }
}

impl Batching {
    /// The batches of a checked configuration for this graph, with so many training nodes or edges; `None` without
    /// batches.
    ///
    /// # Errors
    /// If there are more of them than rounds that a run may have.
    fn of(members: &Members, config: &Config, counts: &GlobalCounts, train: u64) -> Result<Option<Batching>> {
        let batch = &config.batch;
        if batch.size == 0 {
            return Ok(None);
        }
        let batches = laconic_graph::sample::batches(train, batch.size as u64);
        let batches = u32::try_from(batches).ok().filter(|&batches| batches as usize <= super::ROUNDS_MAX);
        let Some(batches) = batches else {
            let what = format!("batch.size = {}: {train} to learn from make too many batches", batch.size);
            return Err(TrainError::config(what));
        };
        let fanouts = match batch.fanouts.as_slice() {
            [] => vec![Some(FANOUT); config.model.layers],
            given => given.iter().map(|&fanout| usize::try_from(fanout).ok()).collect(),
        };
        let clusters = if batch.clusters > 0 { batch.clusters } else { CLUSTERS * batches as usize };
        Ok(Some(Batching {
            kind: members.batching(config)?,
            batches,
            size: batch.size,
            nodes: usize::try_from(counts.nodes).unwrap_or(usize::MAX),
            weighted: counts.weighted,
            fanouts,
            clusters,
            cache: batch.cache_bytes()?,
            redraw: batch.redraw,
            ahead: batch.ahead.max(1),
        }))
    }
}

impl Stage {
    /// Layers that read neighbours.
    pub fn reading_layers(&self) -> usize {
        self.network.units().iter().filter(|unit| unit.layer.facts().message_width > 0).count()
    }

    /// Whether rounds read no further than the neighbours whose frozen rows are kept here.
    fn keeps_all_it_reads(&self) -> bool {
        self.cache_inputs && self.first_layer > 0 && self.reading_layers() == 1
    }

    /// Whether rounds read neighbours: not where the fold of frozen inputs is kept and nothing after it reads any.
    pub fn reads_neighbours(&self) -> bool {
        let first = self.first().facts();
        let kept = self.cache_inputs && !first.message_has_parameters && first.message_width > 0;
        self.reading_layers() > usize::from(kept)
    }
}

impl Plan {
    /// How many in-neighbours each layer of a stage draws.
    pub fn fanouts(&self, stage: &Stage) -> Vec<Option<usize>> {
        let Some(batching) = &self.batching else { return Vec::new() };
        let before = self.stages.iter().filter(|other| other.first_layer < stage.first_layer);
        let before: usize = before.map(Stage::reading_layers).sum();
        batching.fanouts.iter().skip(before).take(stage.reading_layers()).copied().collect()
    }

    /// Whether a stage's rounds run over drawn neighbourhoods.
    pub fn samples(&self, stage: &Stage) -> bool {
        self.draws_neighbours() && stage.reads_neighbours()
    }

    /// Whether batches draw neighbours where they read any.
    pub fn draws_neighbours(&self) -> bool {
        self.batching.as_ref().is_some_and(|batching| batching.kind.draws)
    }

    /// How many batches make an epoch; 1 where a round is on all targets at once.
    pub fn batches_of_epoch(&self) -> u32 {
        self.batching.as_ref().map_or(1, |batching| batching.batches)
    }

    /// Whether a stage's batches need other workers' rows and draws in every round: where neighbours of neighbours are
    /// read, or nothing that would be kept, and training sees the edges between workers. Independent trainers have
    /// nobody to ask once a stage has begun.
    pub fn fetches(&self, stage: &Stage) -> bool {
        self.asks_others() && self.samples(stage) && self.frozen == Scope::Whole && !stage.keeps_all_it_reads()
    }

    /// Whether workers answer each other once a stage has begun.
    fn asks_others(&self) -> bool {
        self.trainers.as_ref().is_none_or(|trainers| trainers.halo == TrainersHalo::None)
    }

    /// Whether a stage's rounds run over neighbourhoods of batches, and exchange nothing on the way.
    pub fn in_neighbourhoods(&self, stage: &Stage) -> bool {
        self.batching.is_some() && stage.reads_neighbours()
    }

    /// Whether independent trainers keep the halo's rows for each layer that a stage's batches read: its inputs, and
    /// what others have told of later ones.
    pub fn keeps_halo_apart(&self, stage: &Stage) -> bool {
        stage.late.is_some_and(|late| late.refresh.is_some()) && self.samples(stage) && stage.freezes()
    }

    /// Whether its rounds read own inputs, and others' only as they come, so that all neighbours' are for evaluations.
    /// Not where the rows that the next stage trains on must not have seen what evaluations see.
    pub fn reads_own_inputs(&self, stage: &Stage) -> bool {
        let sees_less = self.inductive || self.frozen != Scope::Whole;
        self.in_neighbourhoods(stage)
            && !(sees_less && self.stages.len() > 1)
            && !self.keeps_halo_apart(stage)
            && (self.fetches(stage) || self.clusters(stage) || stage.reading_layers() > 1)
    }

    /// Whether what all workers' rows of a round count for is known with its gradient: that of a batch of links is
    /// asked for before it.
    pub fn counts_rows_of_rounds(&self) -> bool {
        self.batching.is_some() && !self.task.of_pairs
    }

    /// Whether the edges that a batch predicts pass no messages in it: not where sums of neighbours are kept, which
    /// were made of all edges.
    pub fn leaves_out_targets(&self) -> bool {
        let learns_together = self.stages.len() == 1 && self.stages.iter().all(Stage::reads_neighbours);
        self.batching.is_some() && self.task.of_pairs && self.config.task.exclude_targets && learns_together
    }

    /// Whether a stage's batches are clusters of own nodes.
    pub fn clusters(&self, stage: &Stage) -> bool {
        self.batching.is_some() && stage.reads_neighbours() && !self.samples(stage)
    }

    /// The same run in batches of this graph's nodes, or of so many training edges: rounds are batches, and what counts
    /// epochs counts them all.
    pub(super) fn in_batches(mut self, counts: &GlobalCounts, train: u64) -> Result<Plan> {
        let Some(batching) = Batching::of(&self.members, &self.config, counts, train)? else { return Ok(self) };
        self.refuse_with_batches(&batching)?;
        let batches = batching.batches;
        let stages = std::sync::Arc::get_mut(&mut self.stages).into_iter().flat_map(|stages| stages.iter_mut());
        for stage in stages.filter(|stage| stage.propagation.is_none()) {
            stage.rounds = stage.rounds.saturating_mul(batches);
            stage.span = stage.span.saturating_mul(batches);
            if stage.rounds as usize > super::ROUNDS_MAX {
                let what = format!("{} epochs of {batches} batches", self.config.train.epochs);
                let most = super::ROUNDS_MAX;
                return Err(TrainError::config(format!("train.epochs: {what} are more than {most} rounds")));
            }
        }
        self.cadence = self.cadence.in_epochs_of(batches);
        Ok(Plan { batching: Some(batching), ..self })
    }

    /// Refuses what batches of edges cannot be combined with.
    fn refuse_links_with_batches(&self, kind: &BatchingKind, refuse: &dyn Fn(&str, &str) -> Result<()>) -> Result<()> {
        if !kind.draws {
            let what = format!("batch.kind = {:?} of links", kind.name);
            return refuse(&what, "ends of pairs that are no edges are anywhere");
        }
        let is_alone = self.trainers.is_some();
        if !is_alone && (self.stages.len() > 1 || !self.stages.iter().all(Stage::reads_neighbours)) {
            let why = "batches of edges are sampled neighbourhoods of both ends, which may be anybody's, and a layer \
                on kept inputs reads its own";
            return refuse("layers one by one (schedule.kind) of links", why);
        }
        let is_apart = self.frozen == Scope::Nothing;
        if is_apart && self.links.as_ref().is_some_and(|links| links.scope == NegativeScope::Global) {
            let why = "each worker reads its own nodes alone there; task.negatives = \"local\" draws from these";
            return refuse("task.negatives = \"global\" and messages.selection = \"none\"", why);
        }
        Ok(())
    }

    /// Refuses what rows that are fetched batch by batch cannot be combined with.
    fn refuse_with_batches(&self, batching: &Batching) -> Result<()> {
        let batch = format!("batch.size = {}", batching.size);
        let refuse = |what: &str, why: &str| Err(TrainError::config(format!("{what} with {batch}: {why}")));
        let late = || self.stages.iter().filter_map(|stage| stage.late);
        if late().any(|late| late.refresh.is_none()) {
            return refuse(
                "late rows (schedule.kind)",
                "every batch has other rows, so none that were sent before fit",
            );
        }
        if late().next().is_some() && !batching.kind.draws {
            let why = "clusters are of own nodes, so nobody would read what trainers tell each other";
            return refuse(&format!("schedule.halo = \"stale\" and batch.kind = {:?}", batching.kind.name), why);
        }
        if self.task.of_pairs {
            self.refuse_links_with_batches(batching.kind, &refuse)?;
        }
        if !self.stages.iter().any(Stage::reads_neighbours) {
            return Ok(());
        }
        let messages = &self.messages;
        let why = "rows of batches travel by themselves, not along links whose messages could be weighed or compared";
        if self.selection.as_ref().is_some_and(|selection| !selection.deletes_edges()) && self.frozen == Scope::Whole {
            return refuse("a selection that draws rows", "a batch's neighbours are drawn already");
        }
        if messages.are_adaptive() || messages.skip.is_some() {
            return refuse("adaptive bits, and messages.skip,", why);
        }
        if self.covers {
            return refuse(&format!("messages.selection = {:?}", self.config.messages.selection.config().kind), why);
        }
        if let Some(what) = messages.same_rows() {
            return refuse(what, "others' rows travel with each batch, and each message must make sense alone");
        }
        // Input rows alone cross, once, and no gradients of rows come back.
        let masks_inputs =
            |stage: &Stage| stage.reads_neighbours() && messages.coding(stage.input_tag(0)).kind.reads.ratio;
        if self.stages.iter().any(masks_inputs) && late().next().is_none() {
            return refuse(
                "a mask",
                "a batch's rows would lack columns, for good where they are kept for later batches",
            );
        }
        let crosses_often = |stage: &Stage| stage.reads_neighbours() && !stage.keeps_all_it_reads();
        let by_chance = |stage: &Stage| {
            let kind = messages.coding(stage.input_tag(0)).kind;
            kind.draws || kind.mixes
        };
        let rounds_by_chance = |stage: &Stage| by_chance(stage) && crosses_often(stage);
        let fetches = batching.kind.draws && self.frozen == Scope::Whole && self.asks_others();
        if fetches && batching.cache > 0 && self.stages.iter().any(rounds_by_chance) {
            let why = "a row that is kept would have been rounded otherwise in another round, and a resumed run does \
                not end with the same bits; batch.cache = \"0\" keeps none";
            return refuse("a codec that rounds at random or by the rows beside, and batch.cache,", why);
        }
        if messages.budget.is_some() || messages.follow(Clock::Bytes) {
            return refuse("messages.budget, and a clock of bytes,", "what batches fetch is only bounded beforehand");
        }
        Ok(())
    }
}
