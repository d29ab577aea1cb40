//! How far each key of the configuration reaches: who has to agree on its value, and until when.

/// How far a key reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It decides what is trained or what a frame means: the same on every worker, from the first round to the last.
    Run,
    /// It decides the rounds to come: the same on every worker, but whoever resumes a run may give it another value.
    Course,
    /// It concerns one process: every worker may have its own value, and a resumed run another.
    Process,
}

/// Every key with its reach.
const REACHES: [(Reach, &[&str]); 3] = [
    (
        Reach::Run,
        &[
            "data.part",
            "data.source",
            "data.target",
            "data.weight",
            "data.relation",
            "data.bipartite",
            "data.unknown",
            "data.id",
            "data.label",
            "data.label_separator",
            "data.split_column",
            "data.features_columns",
            "data.ignore",
            "data.missing",
            "data.dates",
            "data.categories",
            "data.header",
            "data.symmetrise",
            "data.duplicates",
            "data.keep_self_loops",
            "data.typed",
            "data.features",
            "data.split",
            "data.split_index",
            "data.inductive",
            "partition.parts",
            "partition.method",
            "partition.seed",
            "partition.objective",
            "partition.balance_train",
            "partition.balance_edges",
            "partition.imbalance",
            "partition.clusters",
            "partition.clusterer",
            "partition.rule",
            "partition.passes",
            "partition.order",
            "model.arch",
            "model.layers",
            "model.hidden",
            "model.input_width",
            "model.inputs",
            "model.heads",
            "model.head_merge",
            "model.aggregator",
            "model.learn_epsilon",
            "model.bases",
            "model.dropout",
            "model.norm",
            "model.activation",
            "model.jumping_knowledge",
            "model.residual",
            "model.self_loops",
            // What others have answered is estimated from.
            "policy.label_epsilon",
            "task.kind",
            "task.decoder",
            "task.decoder_layers",
            "task.split",
            "task.negatives",
            "task.negatives_per_edge",
            "task.filter_negatives",
            "task.exclude_targets",
            "task.eval_negatives",
            "train.optimiser",
            "train.sync_every",
            "train.sync_drift",
            "train.sync_least",
            "train.outer",
            "train.correction",
            "train.power_sgd",
            "train.class_weights",
            "train.seed",
            "train.precision",
            // What has chosen the best round.
            "train.select_by",
            "train.metrics",
            "batch.size",
            "batch.kind",
            "batch.fanouts",
            "batch.clusters",
            "batch.cache",
            "batch.redraw",
            "batch.ahead",
            "schedule.kind",
            "schedule.cache_inputs",
            "schedule.smooth_features",
            "schedule.smooth_gradients",
            "schedule.late",
            "schedule.start",
            "schedule.hand_on",
            "schedule.steps",
            "schedule.alpha",
            "schedule.normalise",
            "schedule.ridge",
            "schedule.interval",
            "schedule.mean",
            "schedule.halo",
            "schedule.refresh",
            "schedule.corrections",
            "schedule.evaluator",
            "schedule.evaluate",
            "averaging.drop",
            "messages.forward",
            "messages.backward",
            "messages.evaluation",
            "messages.evaluation_inputs",
            "messages.parameters",
            "messages.error_feedback",
            "messages.selection",
            "messages.skip",
            "messages.costs",
            "messages.layers",
        ],
    ),
    (
        Reach::Course,
        &[
            "train.epochs",
            "train.lr",
            "train.weight_decay",
            "train.momentum",
            "train.epsilon",
            "train.lr_schedule",
            "train.lr_step",
            "train.lr_factor",
            "train.warmup",
            "train.horizon",
            "train.clip",
            "train.eval_every",
            // Workers tell worker 0 with each checkpoint.
            "train.part_figures",
            "train.patience",
            "schedule.rounds",
            "schedule.lr",
            "schedule.limit",
            "schedule.quorum",
            "schedule.grace",
            // It decides what crosses, and how long.
            "schedule.aggregator",
            // The messages that it has chosen stay.
            "messages.budget",
            // A link model puts stamps on frames.
            "transport.shape",
            "transport.shape_sleeps",
            // Workers sum up what they have sent for each checkpoint.
            "out.checkpoint_every",
        ],
    ),
    (
        Reach::Process,
        &[
            // What the paths lead to is compared by its digest.
            "data.path",
            "data.features_path",
            "data.nodes_path",
            "data.features_in",
            "partition.file",
            "partition.column",
            "train.threads",
            "train.recompute",
            "schedule.overlap",
            "transport.kind",
            "transport.deadline_s",
            "transport.start_deadline_s",
            "transport.fault",
            "transport.speeds",
            "transport.faults",
            // The runs that are tried have neither.
            "messages.auto",
            "messages.target",
            // Each site has its own.
            "policy.deny",
            "policy.allow",
            "policy.label_group",
            "policy.label_secret",
            "out.dir",
        ],
    ),
];

impl Reach {
    /// The reach of a key. What members from outside read decides what is trained.
    pub fn of(key: &str) -> Reach {
        REACHES.iter().find(|(_, keys)| keys.contains(&key)).map_or(Reach::Run, |(reach, _)| *reach)
    }

    /// The keys of this reach.
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        REACHES.iter().filter(move |(reach, _)| *reach == self).flat_map(|(_, keys)| keys.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KEYS;

    #[test]
    fn every_key_has_one_reach_and_no_other_has_any() {
        let mut reached: Vec<&str> = REACHES.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        let mut keys: Vec<&str> = KEYS.iter().map(|key| key.key).collect();
        reached.sort_unstable();
        keys.sort_unstable();
        assert_eq!(reached, keys, "who has to agree on it?");
    }
}
