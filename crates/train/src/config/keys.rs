//! The list of keys: names and meanings.

/// One key with what it means.
#[derive(Debug, Clone, Copy)]
pub struct KeyDoc {
    /// The key with its section, such as `train.lr`.
    pub key: &'static str,
    /// What it means, and its default. Names before a colon are those of the members that read it: with others it is
    /// refused.
    pub doc: &'static str,
}

macro_rules! keys {
    ($($key:literal: $doc:literal,)*) => {
        /// Every key of a configuration.
        pub const KEYS: &[KeyDoc] = &[$(KeyDoc { key: $key, doc: $doc },)*];
    };
}

keys! {
    "data.path": "dataset file or folder in any recognised format, or a folder of parts",
    "data.part": "of a folder of parts: the number of the one that a single worker trains on, with the edges between \
        its nodes alone (all, a worker each)",
    "data.features_path": "features from another file (npz with `features`, or npy)",
    "data.nodes_path": "node table of an edge list",
    "data.source": "edge list: column where edges start (source, src, from, u, or a pair of names such as caller, \
        callee; in a table without names the first)",
    "data.target": "edge list: column where edges end (target, dst, to, v, or the other one of such a pair; in a \
        table without names the second)",
    "data.weight": "edge list: column of edge weights, or count: how often an edge is listed (weight, edge_weight or \
        w)",
    "data.relation": "edge list: column of the relations that edges are of, each a kind of edges (none; with typed \
        relation, rel, predicate or :TYPE)",
    "data.bipartite": "edge list: its two ends are nodes of two types, which may have the same ids (false)",
    "data.unknown": "edge list: error | drop | add: what becomes of rows that name nodes which the node table has not, \
        or none; add makes nodes with features of 0 (error)",
    "data.id": "node table: column of ids, or row: the row's number is the id (id, node_id or node)",
    "data.label": "node table: column of labels, or label_* for all that begin so, each a class of 0 and 1 \
        (label, y or class, else label_*)",
    "data.label_separator": "node table: what stands between classes, where nodes have several in one cell (none)",
    "data.split_column": "node table: column of train, val, test or nothing (split or set, else train_mask, \
        val_mask, test_mask)",
    "data.features_columns": "node table: columns that become features ([]: all that can)",
    "data.ignore": "tables: columns that are left out ([])",
    "data.missing": "node table: error | mean | zero: what stands for a cell without a value; mean and zero add a \
        column that says where (error)",
    "data.dates": "node table: ignore | days since 1970-01-01 (ignore)",
    "data.categories": "node table: a column of texts becomes a feature column a text, if there are no more (64)",
    "data.header": "text tables: yes | no | auto: whether the first line names the columns (auto)",
    "data.symmetrise": "add the reverse of every edge (false)",
    "data.duplicates": "sum | mean | max | first: the weight of an edge that is listed several times, in either \
        direction where both are made (symmetrise, `directed` 0); error: there may be none (sum)",
    "data.keep_self_loops": "keep edges from a node to itself (false)",
    "data.typed": "tell types of edges and nodes apart, where the data have them (false)",
    "data.features": "auto | given | row-normalised | standardised: auto standardises the numbers of node tables, over \
        training nodes, and leaves categories, 0/1 columns and other formats as they are (auto)",
    "data.features_in": "auto | memory | file: where features of a folder of parts are while batches read them; auto: \
                         their file where they would take more than half of the memory that there is (auto)",
    "data.split": "given, or { train = share or count per class, val, test = share or count, seed = 0 } (given)",
    "data.split_index": "which split, where the data has several (0)",
    "data.inductive": "train on training nodes and the edges between them alone; evaluate on the whole graph (false)",
    "partition.parts": "number of parts, one worker each; `laconic resume --workers N` changes it (0: 1, or the number \
        of MPI processes)",
    "partition.method": "random | multilevel | super_node | streaming | given (random)",
    "partition.seed": "random, multilevel, super_node, streaming: seed of the partition (0)",
    "partition.objective": "multilevel: minimises cut | volume (cut)",
    "partition.balance_train": "multilevel: also balances training nodes (false)",
    "partition.balance_edges": "multilevel, super_node, streaming: also balances the edges that end at a part's nodes \
        (false)",
    "partition.imbalance": "multilevel, super_node, streaming: how much larger than the mean a part may be (0.05)",
    "partition.clusters": "super_node: clusters assigned to parts (0: 15,000, or a 64th of the nodes)",
    "partition.clusterer": "super_node: makes clusters by multilevel | streaming (multilevel)",
    "partition.rule": "super_node, streaming: streaming places nodes by clusters | fennel | ldg (clusters)",
    "partition.passes": "super_node, streaming: times streaming goes through the edges (10)",
    "partition.order": "given | locality | random: how a worker orders its own rows; locality puts those that read the \
        same rows near each other, which is faster where rows of all nodes are more than a cache holds; random is to \
        compare with (given)",
    "partition.file": "given: the assignment: a table with the columns id and part, or one part number a line for the \
        node of that row, or npy",
    "partition.column": "given: the column of the node table, or of partition.file, that says each node's part",
    "model.arch": "gcn | sage | gin | gat | rgcn | mlp (sage)",
    "model.layers": "number of layers (2)",
    "model.hidden": "width between layers, for gat all heads together (256)",
    "model.input_width": "width of a linear map and ReLU before the first layer, a map a type of nodes; 0: none (0)",
    "model.heads": "gat: attention heads (8)",
    "model.head_merge": "gat: concat | mean (concat)",
    "model.aggregator": "sage: mean | max (mean)",
    "model.learn_epsilon": "gin: whether it learns its epsilon (true)",
    "model.bases": "rgcn: of how many bases relations are mixed, 0: a weight for each relation (0)",
    "model.dropout": "share of each layer's input values dropped in training (0.3)",
    "model.norm": "none | layer | batch: LayerNorm after hidden layers, or BatchNorm over the rows of all workers \
        (of each by itself with train.sync_every or independent trainers), with running statistics in evaluations \
        (layer)",
    "model.activation": "relu | prelu, whose slope below 0 is learned (relu)",
    "model.jumping_knowledge": "none | last | cat | max: what a linear map behind the last layer reads: the last \
        hidden rows, or those of all layers side by side, or the largest of each column (none)",
    "model.residual": "add what goes into a layer to what comes out, times a matrix where widths differ (false)",
    "model.self_loops": "every node is its own neighbour (gcn, gat: true; else false)",
    "task.kind": "node_classification | link_prediction (node_classification)",
    "task.decoder": "link_prediction: dot | mlp | distmult: what scores a pair of embeddings of model.hidden columns; \
        distmult learns a vector for each relation of edges (dot)",
    "task.decoder_layers": "mlp: hidden layers (1)",
    "task.split": "link_prediction: { val, test, seed }: shares of edges that are held out, both directions and all \
        relations of a pair together; or given, those that the data hold out ({ val = 0.05, test = 0.1, seed = 0 })",
    "task.negatives": "link_prediction: global | local: pairs that are no edges have any node for a target, or one of \
        the target's owner (global)",
    "task.negatives_per_edge": "link_prediction: such pairs an edge, others in every round (1)",
    "task.filter_negatives": "link_prediction: whether drawn pairs that are edges, with distmult of the same \
        relation, are left out: training edges in training, all edges in evaluations (false)",
    "task.exclude_targets": "link_prediction: whether the edges that a batch (batch.size) predicts, both directions \
        and all relations, pass no messages in it (true)",
    "task.eval_negatives": "link_prediction: pairs among which each held-out edge is ranked (mrr, recall, ndcg), from \
        all nodes, always the same; or given, those that the data give beside a given task.split. Areas compare with \
        the first pair of each edge, hits@K with a pool of such, about as many for validation as for testing (100)",
    "train.epochs": "rounds, per stage when lazy (200)",
    "train.lr": "learning rate (0.01)",
    "train.weight_decay": "L2 penalty; decoupled decay with adamw (0.0005)",
    "train.optimiser": "adam | adamw | sgd (adam)",
    "train.momentum": "sgd: momentum (0.9)",
    "train.epsilon": "adam, adamw: what is added to the size of gradients that a step is divided by (1e-8)",
    "train.lr_schedule": "constant | linear | cosine | step (constant)",
    "train.lr_step": "step: rounds between two falls of the rate (100)",
    "train.lr_factor": "step: what multiplies the rate then (0.1)",
    "train.warmup": "rounds over which the rate first rises (0)",
    "train.horizon": "the end, of each stage, that train.lr_schedule and ramps of messages run towards, such as \
        [\"200 epochs\"]; behind it they stay as they ended; `resume` with another end keeps that of before, and \
        train.horizon=[] spreads them anew ([]: the end of the stage: train.epochs, schedule.rounds or schedule.limit)",
    "train.recompute": "without batches: make rows, folds and messages that the backward pass reads again rather than \
        keep them; less memory, same bits (false)",
    "train.precision": "f32 | bf16: how features, rows between layers and their gradients are stored; bf16 takes \
        little more than half the memory, and where the processor multiplies it half to two thirds of the time \
        (gat: five sixths). Parameters, logits and the optimiser stay f32; one worker and several then differ by the \
        rounding of sums to 8 bits, in losses by some per cent (f32)",
    "train.clip": "largest norm of the gradient, 0 for none (0)",
    "train.sync_every": "rounds between two reductions; above 1 models are averaged instead of gradients added (1)",
    "train.seed": "seed of initial values and dropout (0)",
    "train.eval_every": "rounds between two evaluations, 0: only after the last (1)",
    "train.patience": "evaluations without a better one that end a stage, 0: never (0)",
    "train.select_by": "metric | loss: which of the validation nodes' chooses the best round; patience waits for it; \
        where the metric is not defined, the loss does (metric)",
    "train.class_weights": "what classes count for in the loss of training: balanced (all alike together, by how \
        many training nodes of each all workers have), or a number a class in the order of their numbers; with \
        several labels a node, a label that is there against one that is not (all 1)",
    "train.metrics": "accuracy | micro_f1 | macro_f1 | roc_auc | roc_auc_exact; of links mrr | hits@10, 20, 50, 100 | \
        recall@10, … | ndcg@10, … | roc_auc | roc_auc_exact; the first is the one that may choose \
        the best round. Ranks are those of each held-out edge among pairs of its own source: mrr is the mean of 1 by \
        the rank, recall@k the share of ranks up to k, ndcg@k the mean of 1 by log2(1 + rank) of those; hits@K is the \
        share of edges above the K-th best of one pool for all (its size is printed beside it, and fewer than K \
        leave it undefined). macro_f1 is the mean over classes that occur or are predicted; roc_auc is from counts in \
        bins of the score (a note says how far off it may be), roc_auc_exact sends every labelled node's scores and \
        labels, of links the scores of every held-out edge and its pair, to every worker",
    "train.part_figures": "tell worker 0 the figures of each part's own validation and test nodes, and how many of \
        each class were taken for which, with each checkpoint and at the end: what summary.json has of parts and \
        classes (true)",
    "train.threads": "compute threads of a worker, 0: share the machine (0)",
    "batch.size": "training nodes, or edges to predict, of a batch over all workers, about; of independent trainers \
        (averaging, psgd_pa, llcg) of each one's. 0: all at once. A round is then a batch; train.epochs and \
        train.eval_every count epochs (0)",
    "batch.kind": "neighbours | clusters: what a batch reads: drawn in-neighbours, or clusters of a worker's nodes \
        with the edges between them (neighbours)",
    "batch.fanouts": "neighbours: in-neighbours drawn for each layer, the first layer's first, -1: all ([]: 10 each)",
    "batch.clusters": "clusters: clusters of each part (0: ten for a batch)",
    "batch.cache": "neighbours: memory for rows of other workers that later batches read (256 MB)",
    "batch.redraw": "neighbours: batches after which neighbours are drawn anew (1): more keep rows longer",
    "batch.ahead": "neighbours: batches that are sampled, and whose rows travel, ahead of the one at work (2)",
    "schedule.kind": "synchronous | pipelined | lazy | ggs: workers exchange rows; averaging | psgd_pa | llcg: \
        independent trainers, whose models are averaged (synchronous)",
    "schedule.cache_inputs": "synchronous, pipelined, ggs: fetch the first layer's halo once (true)",
    "schedule.overlap": "work while messages travel; same bits either way (true)",
    "schedule.late": "averaging, pipelined: what crosses where messages are products with weights: rows, products \
        (rows)",
    "schedule.smooth_features": "pipelined: share of the moving average in late rows, 0: none (0; the paper's 0.95)",
    "schedule.smooth_gradients": "pipelined: the same for late gradients (0)",
    "schedule.start": "lazy, averaging: features | mlp, where raw features never cross (features)",
    "schedule.hand_on": "lazy, averaging: what a stage hands on: scores | hidden | { columns = k }, a learned map of \
        the hidden rows to k columns (start = features: hidden; mlp: scores)",
    "schedule.rounds": "lazy, averaging: rounds of each stage ([]: train.epochs)",
    "schedule.lr": "lazy, averaging: learning rate of each stage ([]: train.lr)",
    "schedule.interval": "averaging, psgd_pa, llcg: from one mean to the next: a time (\"2min\"), or steps or epochs \
        of each trainer (\"500 steps\", \"1 epoch\") (1 epoch)",
    "schedule.limit": "averaging, psgd_pa, llcg: the end: a time, or steps or epochs of \
        whichever trainer has had them first (train.epochs epochs)",
    "schedule.mean": "averaging, llcg: what a model counts for: uniform | rows | steps: alike, by training rows, by \
        steps since the last mean (uniform)",
    "schedule.quorum": "averaging, psgd_pa, llcg: models that a mean is taken of at least (0: more than half)",
    "schedule.grace": "averaging, psgd_pa, llcg: how long other trainers have once a quorum has answered; by \
        steps who is not ready then gives the steps that it has (10s)",
    "schedule.halo": "averaging: none | frozen | stale: what trainers know of each other's nodes: nothing; the \
        aggregates of a stage's inputs, exchanged once; or rows of all layers, told every so many means and never \
        waited for (none)",
    "schedule.refresh": "averaging: with halo = stale, after how many means trainers tell each other rows again (1)",
    "schedule.aggregator": "averaging, psgd_pa, llcg: own, or the number of a part whose trainer lives in the \
        aggregator's process: nothing crosses between the two (own)",
    "schedule.evaluator": "averaging, psgd_pa: who evaluates means, the aggregator (it holds the whole graph) or the \
        workers (each for its own nodes) (workers for a folder of parts, else aggregator)",
    "schedule.evaluate": "averaging, psgd_pa: over which edges workers evaluate means, halo (all; rows of other \
        workers' nodes cross for it) or local (those between own nodes; only counts cross) (halo)",
    "schedule.corrections": "llcg: steps on the whole graph after each mean (2)",
    "averaging.drop": "parts whose trainers never start, as if they had failed ([])",
    "messages.forward": "codec of features and activations: exact | half | quantised | masked, or { codec, … }; \
        quantised: bits = 1 | 2 | 4 | 8 | 16 | 32 | random | adaptive or a ramp, period = rounds or a \
        share of them such as 0.2, lambda, \
        menu = widths that random and adaptive choose from ([2, 4, 8]); masked: ratio = \
        number or a ramp { law = fixed | linear | exponential | staircase | columns, clock = epoch | elapsed | bytes | \
        gradient_norm (needs train.sync_every = 1), from, to, slope, steps, limit }, inner, columns = random | prefix, \
        rescale, whole_last; both: reveal (exact)",
    "messages.backward": "codec of activation gradients, in the same words (exact)",
    "messages.evaluation": "codec of evaluation passes, or none: without the others' rows (exact)",
    "messages.evaluation_inputs": "inputs that cross once, for evaluations: whole, coded by messages.evaluation, or \
        training's, which schedule.evaluator = workers does not keep (whole)",
    "messages.parameters": "codec of parameter gradients, averaged parameters or trainers' models: exact | half | \
        { codec = quantised, bits } (exact)",
    "messages.error_feedback": "add what a lossy messages.parameters drops to the next round's (true)",
    "messages.selection": "rows that travel in a round: all | none | { kind = boundary_sample, rate = 0.1 } (all)",
    "messages.skip": "{ change = 0.7, staleness = 10 }: skip messages whose rows moved less, for so many rounds; \
        dropout alone moves rows by half, without it 0.05 skips (never)",
    "messages.costs": "the assigner's costs of links: shape (all links alike) | measured (each link, in a short \
        profile; no run is like another) (shape)",
    "messages.budget": "the most that the whole run may send, such as \"200 MB\"; chooses codecs that are left at \
        exact (none)",
    "messages.layers": "codecs of single layers: messages.layers.N.forward, messages.layers.N.backward",
    "transport.kind": "threads | processes | mpi | simulated: workers of one process; or a process each, which the \
        program starts and watches, or those of mpirun; or independent trainers by a clock that jumps from event to \
        event (threads)",
    "transport.deadline_s": "seconds a worker waits for another, and a step of independent trainers may take (60)",
    "transport.start_deadline_s": "the same before the first round, while others may still read and cut data (600)",
    "transport.shape": "link model: a named link or numbers such as \"100mbit,40ms\" (none)",
    "transport.shape_sleeps": "the link model really waits (false: virtual clock)",
    "transport.fault": "rehearse a failure: { rank, round, kind = \"crash\" | \"stall\" }",
    "transport.speeds": "simulated: steps a second of each trainer, the last for those behind it ([]: 1)",
    "transport.faults": "simulated: a list of { who = trainer or \"aggregator\", at, kind = \"killed\" | \
        \"switched_off\" | \"stalled\", back }, times such as \"90 s\" ([])",
    "policy.deny": "contents that this worker sends nobody, such as [\"features\", \"rows:evaluation\"]: the \
        run stops before the first such frame, with exit code 7 (docs/explanation/privacy.md names them all) ([])",
    "out.dir": "folder of the run (runs/NAME)",
    "out.checkpoint_every": "rounds between two checkpoints, 0: at the end of stages and on Ctrl-C (0)",
}

/// Every key that serialises, for the test that [`KEYS`] is complete.
#[cfg(test)]
pub(crate) fn serialised() -> Vec<String> {
    let table = toml::Table::try_from(super::Config::default()).expect("plain values");
    let keys = |(section, value): (&String, &toml::Value)| {
        let keys = value.as_table().expect("sections").keys().map(|key| format!("{section}.{key}"));
        keys.collect::<Vec<_>>()
    };
    table.iter().flat_map(keys).collect()
}
