//! What a run should know of its own configuration before it starts: what is allowed and does less than it says.

use laconic_graph::leaks::Leaks;
use laconic_wire::{Direction, Tag};

use super::Plan;
use crate::config::{BatchConfig, CodecChoice, Config, CostsChoice, EvaluationInputs, TrainersHalo};
use crate::schedule::Stage;
use crate::selection::Scope;

/// From which [`laconic_graph::skew::LabelSkew::skew`] on parts are said to differ: chance alone makes 0.17 of 35 nodes
/// in seven classes.
const SKEWED: f64 = 0.3;

/// The configuration's word for a direction.
const fn key(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "messages.forward",
        Direction::Reverse => "messages.backward",
    }
}

impl Plan {
    /// What the configuration asks for and this run has no use for, a line each.
    pub fn notes(&self) -> Vec<String> {
        let masks = [Direction::Forward, Direction::Reverse].into_iter();
        let masks = masks.filter_map(|direction| self.idle_mask(direction));
        masks
            .chain(self.uneven_masks())
            .chain(self.bits_that_stay())
            .chain(self.idle_keys())
            .chain(self.idle_with_batches())
            .chain(self.idle_with_trainers())
            .chain(self.apart())
            .chain(self.norms_apart())
            .chain(self.factors_nothing())
            .chain(self.one_relation())
            .chain(self.passed_over())
            .chain(self.leaks())
            .chain(self.labels_come_back())
            .chain(self.labels_answered())
            .chain(self.unread.iter().cloned())
            .collect()
    }

    /// Says so where layers tell relations apart that the data do not.
    fn one_relation(&self) -> Option<String> {
        let what = "tells relations of edges apart, and these data have one kind of edges; data.typed = true reads \
            types where there are some";
        (self.layer.is_relational && self.relations == 0).then(|| format!("model.arch = {:?} {what}", self.layer.name))
    }

    /// Says so where the data hold edges out and another split is drawn, which takes them for edges like all others.
    fn passed_over(&self) -> Option<String> {
        let edges = self.links.as_ref().map(|links| links.passed_over).filter(|edges| *edges > 0)?;
        Some(format!(
            "task.split draws from all edges, also from the {edges} that the data hold out to be predicted, so most of \
             these are learned from; task.split = \"given\" holds them out"
        ))
    }

    /// Says so where a training edge tells of edges that the data hold out.
    fn leaks(&self) -> Vec<String> {
        let links = self.links.as_ref().and_then(|links| links.leaks);
        links.map_or_else(Vec::new, |(leaks, held)| Leaks::said(leaks, held))
    }

    /// Says so where workers learn apart from each other on parts whose labels are others than the whole's.
    fn apart(&self) -> Option<String> {
        let skew = self.label_skew.filter(|skew| *skew >= SKEWED)?;
        let why = match self.config.train.sync_every {
            1 if self.frozen == Scope::Nothing => {
                "training goes without the edges between parts (messages.selection), and with them without most edges \
                 between classes"
                    .to_owned()
            }
            1 => return None,
            every => format!(
                "between two averages (train.sync_every = {every}) each worker learns the labels of its own part"
            ),
        };
        Some(format!("labels differ between parts, by {skew:.2} (0: not at all): {why}; random parts would not"))
    }

    /// Says so where each worker normalises by its own rows.
    fn norms_apart(&self) -> Option<String> {
        let norms = self.stages.iter().any(|stage| stage.network.normalises_columns());
        let why = match (&self.trainers, self.config.train.sync_every) {
            (Some(_), _) => "independent trainers meet nobody between two means",
            (None, every) if every > 1 => "workers meet nobody between two averages (train.sync_every)",
            _ => return None,
        };
        norms.then(|| {
            let what = "each normalises by its own rows, and evaluations use the mean of their running statistics, \
                which leaves out how far parts differ from each other";
            format!("model.norm = \"batch\": {why}, so {what}")
        })
    }

    /// Says so where gradients come back in other columns than their rows went out in: then some are by entries that
    /// never arrived, which nothing at the owner depends on, and some that are wanted stay away.
    fn uneven_masks(&self) -> Option<String> {
        let live = self.live();
        let (back, out): (Vec<&Tag>, Vec<&Tag>) = live.iter().partition(|tag| tag.direction == Direction::Reverse);
        let uneven = |out: &&Tag| {
            let back = back.iter().find(|back| back.layer == out.layer);
            back.is_some_and(|back| !self.messages.coding(**out).leaves_out_as(self.messages.coding(**back)))
        };
        let layer = out.iter().copied().find(uneven)?.layer;
        Some(format!(
            "layer {layer}: gradients do not come back in the columns that rows go out in, so some are by entries that \
             never arrived; messages.backward with the ratio, columns and rescale of messages.forward changes that"
        ))
    }

    /// Says so where bits would be assigned only after a stage has ended, so that all rows have those of its start.
    fn bits_that_stay(&self) -> Vec<String> {
        let live = self.live();
        let stays = |direction: Direction| {
            let tags = live.iter().filter(|tag| tag.direction == direction);
            tags.filter_map(|tag| {
                let coding = self.messages.coding(*tag);
                let stage = self.stages.iter().find(|stage| stage.last_layer() >= tag.layer)?;
                let (rounds, period) = (stage.rounds, coding.period(stage.span));
                (coding.is_adaptive() && period >= rounds).then_some((rounds, period, coding.first_bits()))
            })
            .next()
            .map(|(rounds, period, bits)| {
                let key = key(direction);
                format!(
                    "{key}.period = {period}: bits are first assigned after that many rounds, and there are {rounds}, \
                     so all rows travel in {bits} bits; a share such as period = 0.2 goes with the rounds"
                )
            })
        };
        [Direction::Forward, Direction::Reverse].into_iter().filter_map(stays).collect()
    }

    /// Keys that have been set and that nothing in this run reads, since another key decides so.
    fn idle_keys(&self) -> impl Iterator<Item = String> {
        let Config { messages, train, transport, .. } = &*self.config;
        let exact = CodecChoice::exact();
        let rounds = messages.forward != exact || messages.backward != exact || !messages.layers.is_empty();
        // A byte budget may choose other codecs for parameters.
        let feeds_back = messages.error_feedback || self.messages.budget.is_some() || self.messages.round_parameters();
        let skip = messages.skip.as_ref();
        let live = self.live();
        let exchanges = self.frozen != Scope::Nothing;
        // Embeddings of pairs' ends, and their gradients.
        let has_ends = self.asks_for_ends() && self.batching.is_none();
        let fetches = self.stages.iter().any(|stage| self.fetches(stage));
        let freezes = |stage: &Stage| stage.freezes() && !self.reads_own_inputs(stage);
        let crosses = !live.is_empty() || has_ends || fetches || self.propagates() || self.stages.iter().any(freezes);
        let comes_back = has_ends || live.iter().any(|tag| tag.direction == Direction::Reverse);
        let clusters = self.stages.iter().any(|stage| self.clusters(stage));
        let idle = [
            (
                exchanges && !crosses && rounds && clusters,
                "messages.forward and messages.backward: clusters are read by who has them (batch.kind), so no rows \
                 cross",
            ),
            (
                exchanges && !crosses && rounds && !clusters,
                "messages.forward and messages.backward: no layer reads neighbours, so no rows cross",
            ),
            (
                exchanges && crosses && messages.backward != exact && !comes_back,
                "messages.backward: no gradients of rows are sent back, since what crosses does not change",
            ),
            (
                skip.is_some() && live.is_empty(),
                "messages.skip: no rows cross in every round, and what crosses once is never left out",
            ),
            (
                skip.is_some_and(|skip| skip.staleness < 2),
                "messages.skip.staleness: from 2 on a message is left out; below, each is sent",
            ),
            (
                self.frozen == Scope::Nothing && rounds && !has_ends && self.trainers.is_none(),
                "messages.forward and messages.backward: training exchanges no rows (messages.selection)",
            ),
            (
                messages.costs == CostsChoice::Measured && !self.messages.are_adaptive(),
                "messages.costs = \"measured\": no message has adaptive bits, so no cost is measured",
            ),
            (!feeds_back, "messages.error_feedback = false: messages.parameters lose nothing that could be fed back"),
            (
                transport.shape_sleeps && transport.shape.is_empty(),
                "transport.shape_sleeps = true: no link is shaped (transport.shape), so nobody sleeps",
            ),
            (
                train.patience > 0 && train.eval_every == 0,
                "train.patience: only a stage's last round is evaluated (train.eval_every = 0), so none ends early",
            ),
        ];
        idle.into_iter().filter(|(is_idle, _)| *is_idle).map(|(_, note)| note.to_owned())
    }

    /// What independent trainers do not read, who send models and nothing else.
    fn idle_with_trainers(&self) -> Option<String> {
        let Config { messages, .. } = &*self.config;
        let exact = CodecChoice::exact();
        let rows = messages.forward != exact || messages.backward != exact || !messages.layers.is_empty();
        let alone = self.trainers.as_ref().is_some_and(|trainers| trainers.halo == TrainersHalo::None);
        (alone && rows).then(|| {
            "messages.forward, messages.backward and messages.layers: independent trainers exchange no rows \
             (schedule.halo = \"none\")"
                .to_owned()
        })
    }

    /// Keys that have been set and that batches do not read, or that only batches of another kind do.
    fn idle_with_batches(&self) -> impl Iterator<Item = String> {
        let Config { messages, batch, .. } = &*self.config;
        let default = BatchConfig::default();
        let any = |is: &dyn Fn(&Stage) -> bool| self.stages.iter().any(is);
        let in_batches = self.draws_neighbours();
        let draws = any(&|stage| self.samples(stage));
        let sampling = |batch: &BatchConfig| (batch.fanouts.clone(), batch.redraw, batch.ahead);
        let is_input = |layer: usize| any(&|stage| usize::from(stage.first_layer) == layer);
        let within = |layer: usize| {
            any(&|stage| {
                let layers = usize::from(stage.first_layer)..=usize::from(stage.last_layer());
                layers.contains(&layer) && self.in_neighbourhoods(stage) && !self.keeps_halo_apart(stage)
            })
        };
        let mut own = messages.layers.keys().filter_map(|layer| layer.parse().ok());
        let idle = [
            (
                in_batches && !draws && sampling(batch) != sampling(&default),
                "batch.fanouts, batch.redraw and batch.ahead: no neighbours are drawn, since their sums are kept",
            ),
            (
                in_batches && draws && batch.cache != default.cache && !any(&|stage| self.fetches(stage)),
                "batch.cache: batches read no other workers' rows, or have kept all that they read",
            ),
            (
                messages.evaluation_inputs == EvaluationInputs::Training
                    && !any(&|stage| stage.freezes() && !self.reads_own_inputs(stage)),
                "messages.evaluation_inputs = \"training\": in training no inputs cross once and for all, so \
                 evaluations fetch their own",
            ),
            (
                self.batching.is_some()
                    && self.task.of_pairs
                    && self.config.task.exclude_targets
                    && !self.leaves_out_targets(),
                "task.exclude_targets: sums of neighbours that are kept were made of all edges, also of those that a \
                 batch predicts",
            ),
            (
                own.any(|layer| within(layer) && !is_input(layer)),
                "messages.layers: batches fetch what their first layer reads, and no rows cross for the others",
            ),
        ];
        idle.into_iter().filter(|(is_idle, _)| *is_idle).map(|(_, note)| note.to_owned())
    }

    /// What is exchanged in every round, or told after means: nothing by batches that fetch what they read.
    fn live(&self) -> Vec<Tag> {
        let crosses = |stage: &&Stage| !self.in_neighbourhoods(stage) || self.keeps_halo_apart(stage);
        let stages = self.stages.iter().filter(crosses);
        stages.flat_map(|stage| stage.live_exchanges()).map(|(tag, _)| tag).collect()
    }

    /// Says why, where masks are configured for a direction and leave all of its messages whole.
    fn idle_mask(&self, direction: Direction) -> Option<String> {
        let masks = |tag: &Tag| self.messages.coding(*tag).kind.reads.ratio;
        let live: Vec<Tag> = self.live().into_iter().filter(|tag| tag.direction == direction).collect();
        if !self.configures_mask(direction) || live.iter().any(masks) {
            return None;
        }
        let mut reasons = Vec::new();
        if self.stages.iter().any(|stage| live.iter().any(|tag| tag.layer == stage.last_layer())) {
            reasons.push("the last layer travels whole (whole_last = false masks it)");
        }
        let mut frozen = self.stages.iter().filter(|stage| stage.freezes()).map(|stage| stage.input_tag(0));
        match direction {
            Direction::Forward if frozen.any(|tag| masks(&tag)) => reasons.push("only inputs that cross once are"),
            Direction::Reverse if frozen.next().is_some() => {
                reasons.push("inputs that cross once send no gradients back");
            }
            _ if live.is_empty() => reasons.push("no layer sends any"),
            _ => {}
        }
        Some(format!("{}: no message of a round is masked: {}", key(direction), reasons.join("; ")))
    }

    fn configures_mask(&self, direction: Direction) -> bool {
        let messages = &self.config.messages;
        let pick = |forward, backward| if direction == Direction::Forward { forward } else { backward };
        let layers = messages.layers.values().filter_map(|own| pick(own.forward.as_ref(), own.backward.as_ref()));
        let mut choices = layers.chain(pick(Some(&messages.forward), Some(&messages.backward)));
        choices.any(|choice: &CodecChoice| {
            let config = choice.config();
            let kind = self.members.codecs.describe(&config.codec, &config.options);
            kind.is_ok_and(|kind| kind.reads.ratio)
        })
    }
}
