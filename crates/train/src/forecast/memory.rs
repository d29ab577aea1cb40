//! Memory of a worker, forecast from shapes: what is allocated once and kept, by what it is for.

use laconic_graph::part::Part;
use laconic_nn::Precision;
use laconic_nn::links::PAIRS_PER_PIECE;
use laconic_nn::metric::Metric;
use laconic_nn::network::Unit;
use laconic_nn::threads::row_pieces;

pub use super::amounts::Memory;
use super::amounts::{FLOAT, input_values};
use super::batches;
use super::fetches::learned;
use super::frames::frames;
use super::passes::{Keeping, Over, most_bytes, most_halo_bytes};
pub use super::room::{admit, peak_bytes};
use crate::exchange::shapes::Shapes;
use crate::fit::ridge;
use crate::plan::{Plan, RankedAmong, Reader};
use crate::sample::WINDOW;
use crate::schedule::{HandOn, Stage};
use crate::worker::evaluate::Evaluator;

/// An account in the maps of a ledger, with its share of their nodes.
const ACCOUNT: usize = 100;
/// What a link holds at both ends before anything is on its way: a channel's first block in each direction.
const LINK: usize = 3 << 10;

/// Models that are held beside rounds, as measured where nothing else takes much.
const BESIDE_ROUNDS: usize = 10;
/// Gradients of layers with more parameters have no copies.
const MOST_COPIED: usize = 1 << 20;

/// What a worker of these shapes holds at its peak: the graph in both orientations, features, frozen inputs, the
/// buffers of the largest stage, parameters with optimiser, the frames of one exchange, and accounts of the ledgers.
/// Dense features are assumed where sparse ones would be smaller after folding, so it is an upper estimate for bags of
/// words.
pub fn forecast(shapes: &Shapes, plan: &Plan, keeps_accounts: bool) -> Memory {
    held(shapes, plan, keeps_accounts, true)
}

/// What the worker of a part holds, as far as that can be known before anybody was asked who owns what.
pub fn outlined(part: &Part, plan: &Plan, keeps_accounts: bool) -> Memory {
    forecast(&outline(part, plan), plan, keeps_accounts)
}

/// What the trainer of a part holds, which its aggregator judges.
pub fn of_trainer(part: &Part, plan: &Plan) -> Memory {
    let mut shapes = outline(part, plan);
    if plan.keeps_targets_apart() {
        shapes.split_rows[1..].fill(0);
        shapes.given_pairs = [0; 2];
    }
    held(&shapes, plan, true, true)
}

/// What a worker holds that evaluates means of the nodes of its part.
pub fn of_evaluator(part: &Part, plan: &Plan) -> Memory {
    let plan = &plan.of_evaluators();
    held(&outline(part, plan), plan, true, false)
}

/// What the aggregator of so many trainers holds, from all parts as one: it judges, and trains where it corrects means.
pub fn of_aggregator(whole: &Part, plan: &Plan, trainers: usize) -> Memory {
    let (mut shapes, corrects) = (outline(whole, plan), plan.trainers.as_ref().is_some_and(|of| of.corrections > 0));
    if plan.keeps_targets_apart() && !corrects {
        shapes.split_rows[0] = 0;
    }
    let mut memory = held(&shapes, plan, true, corrects);
    let model = plan.stages.iter().map(|stage| stage.network.len()).max().unwrap_or(0);
    memory.add("models that arrive", (FLOAT * model).saturating_mul(trainers) as u64);
    memory
}

/// About the shapes of a part, with how many of its edges are learned from and judged, without looking at each.
fn outline(part: &Part, plan: &Plan) -> Shapes {
    let mut shapes = Shapes::outline(part, plan.self_loops);
    if let Some(targets) = plan.outlined_targets(part) {
        (shapes.split_rows, shapes.given_pairs) = targets;
    }
    shapes
}

fn held(shapes: &Shapes, plan: &Plan, keeps_accounts: bool, trains: bool) -> Memory {
    let (rows, halo) = (shapes.rows, shapes.halo_rows());
    let of_training = shapes.training.as_ref().map_or(0, |training| training.edges.iter().sum());
    let edges: usize = shapes.edges.iter().sum::<usize>() + of_training;
    let mut memory = Memory::default();
    // Both orientations of both blocks, and what finds an edge of one in the other, which layers and weights ask for.
    let mut units = plan.stages.iter().flat_map(|stage| stage.network.units());
    let numbers = match (plan.weighted, units.any(|unit| unit.layer.facts().reads_positions)) {
        (true, _) => 4,
        (false, true) => 3,
        (false, false) => 2,
    };
    memory.add("graph", (numbers * FLOAT * edges + 8 * (6 * rows + 2 * halo)) as u64);
    memory.add("sums", sums(shapes, plan));
    if plan.layer.is_relational {
        // Their relation and their share, as read and in blocks.
        memory.add("graph", (edges * (2 * size_of::<u16>() + FLOAT)) as u64);
    }
    if !reads_file(shapes, plan) {
        memory.add("features", (of_inputs(shapes, plan, &plan.stages[0]) * input_values(shapes, plan)) as u64);
    }
    let before = memory.total();
    let keeping = match (trains, plan.config.train.recompute) {
        (false, _) => Keeping::Nothing,
        (true, true) => Keeping::Least,
        (true, false) => Keeping::All,
    };
    let stages = plan.stages.iter().map(|stage| match plan.in_neighbourhoods(stage) {
        true => batches::memory(shapes, plan, stage, trains),
        false => of_stage(shapes, plan, stage, keeping),
    });
    memory.add_all(&stages.max_by_key(Memory::total).unwrap_or_default());
    let classes = plan.stages.last().map_or(0, Stage::outputs);
    memory.add("counts of evaluations", Evaluator::memory(&plan.metrics, classes));
    memory.add("pairs", pairs(shapes, plan));
    memory.add("ledger", ledger(shapes, plan, keeps_accounts));
    memory.add("links", (LINK * shapes.workers().saturating_sub(1)) as u64);
    let rounds: u64 = plan.stages.iter().map(|stage| u64::from(stage.rounds)).sum();
    memory.add("times of rounds", 16 * rounds);
    // The part as read, with ids of eight bytes, has gone when what rounds hold is made.
    let of_rounds = memory.total().saturating_sub(before);
    memory.add("part as read", (8 * (2 * rows + edges) as u64).saturating_sub(of_rounds));
    memory
}

/// What a worker of these shapes holds while a trained model runs over its rows: as [`forecast`], without what only
/// training has.
pub fn of_prediction(shapes: &Shapes, plan: &Plan) -> Memory {
    const OF_TRAINING: [&str; 6] =
        ["parameters and optimiser", "late rows", "last messages", "state file", "ledger", "times of rounds"];
    let mut memory = held(shapes, plan, false, false);
    memory.leave_out(&OF_TRAINING);
    let parameters: usize = plan.stages.iter().map(|stage| stage.network.len()).sum();
    let classes = plan.stages.last().map_or(0, Stage::outputs);
    memory.add("parameters", (2 * FLOAT * parameters) as u64);
    // Logits, and the probabilities that are made of them.
    memory.add("predictions", (3 * FLOAT * classes).saturating_mul(shapes.rows) as u64);
    memory
}

/// What goes out in the place of rows, where sums may: the edges from own rows to it, in both orientations, and room
/// for what goes and what comes back. No more edges lead to sums than come with rows, since the other end's rows are
/// covered by the same nodes.
fn sums(shapes: &Shapes, plan: &Plan) -> u64 {
    if shapes.uncovered.is_empty() {
        return 0;
    }
    let sent: usize = shapes.links.iter().map(|link| link.send).sum();
    let units = plan.stages.iter().flat_map(|stage| stage.network.units());
    let width = units.map(|unit| unit.layer.facts().message_width).max().unwrap_or(0);
    let (edges, rooms) = (sent + shapes.edges[1], 2 * sent.saturating_mul(width));
    (4 * FLOAT * edges + 8 * (sent + shapes.rows)) as u64 + (FLOAT as u64).saturating_mul(rooms as u64)
}

/// Pairs of a round of link prediction, or of a window of batches, by id and by row, the embeddings of foreign ends
/// with their gradients, and the buffers of pairs that are scored at once.
fn pairs(shapes: &Shapes, plan: &Plan) -> u64 {
    let Some(links) = &plan.links else { return 0 };
    let train = shapes.split_rows[0] as u64;
    let at_once = match plan.batching {
        Some(_) => learned(plan, train as usize, WINDOW) as u64,
        None => train,
    };
    let of_round = at_once.saturating_mul(1 + u64::from(links.number));
    let judged = links.judged_pairs(shapes.split_rows, shapes.given_pairs);
    let fetched = if plan.batching.is_some() { 0 } else { of_round };
    let foreign = fetched.max(judged).min(links.nodes.saturating_sub(shapes.rows as u64));
    let width = links.decoder.width() as u64;
    // Both ends of pairs that are scored at once, with their scores, and the gradients of those that are learned from.
    let [scored, learned] = links.decoder.held().map(|held| held as u64);
    let piece = |pairs: u64| pairs.min(PAIRS_PER_PIECE as u64);
    let (of_round_at_once, most) = (piece(of_round), piece(of_round.max(judged)));
    let buffers = (2 * width + scored + 1) * most + (2 * width + learned - scored + 3) * of_round_at_once;
    // What is asked for is listed with every repetition before it is sorted; once more where edges are looked for.
    let listed = if links.filters_judged() { 2 * judged } else { judged };
    // Given pairs themselves with their scores, and everybody's scores of a pool, as they come and in order.
    let given = match links.ranked_among {
        RankedAmong::Drawn(_) => 0,
        RankedAmong::Given(all) => {
            let pools = all.iter().filter(|all| all.each == 0).map(|all| all.pairs);
            judged.saturating_mul(20).saturating_add(pools.fold(0, u64::saturating_add).saturating_mul(12))
        }
    };
    // All scores, where areas are exact, as they come and in order.
    let exact = if plan.metrics.contains(&Metric::RocAucExact) {
        let all = shapes.workers() as u64 * (shapes.split_rows[1] + shapes.split_rows[2]) as u64;
        all.saturating_add(
            links.pool_pairs(shapes.split_rows, shapes.given_pairs).saturating_mul(shapes.workers() as u64),
        )
        .saturating_mul(16)
    } else {
        0
    };
    // The relation of each edge, and of each pair as drawn and as scored.
    let of_relations = if links.relations > 1 {
        let edges = shapes.split_rows.iter().fold(0u64, |sum, &rows| sum.saturating_add(rows as u64));
        (2 * edges).saturating_add(6 * of_round)
    } else {
        0
    };
    given
        + exact
        + of_relations
        + 40 * of_round
        + 8 * listed
        + 2 * (foreign * width * FLOAT as u64)
        + buffers * FLOAT as u64
}

/// Whether features are read where they stand in their file; with what is told beside them they are copied.
fn reads_file(shapes: &Shapes, plan: &Plan) -> bool {
    shapes.features_in_file && plan.inputs.told.is_empty()
}

/// Whether a stage's inputs are sparse, and so folds of these.
fn reads_sparse(shapes: &Shapes, plan: &Plan, stage: &Stage) -> bool {
    stage.first_layer == 0 && input_values(shapes, plan) != shapes.rows * stage.first().facts().inputs
}

/// Bytes of a value of them: sparse rows have `f32` whatever the precision.
fn of_inputs(shapes: &Shapes, plan: &Plan, stage: &Stage) -> usize {
    if reads_sparse(shapes, plan, stage) { FLOAT } else { plan.precision().bytes() }
}

/// The inputs that do not change while a stage trains, and what passes over its rows hold.
fn of_passes(shapes: &Shapes, plan: &Plan, stage: &Stage, keeping: Keeping) -> Memory {
    let (rows, halo) = (shapes.rows, shapes.halo_rows());
    let mut memory = Memory::default();
    let mut bytes = |name, count: usize, each: usize| memory.add(name, (count as u64).saturating_mul(each as u64));
    let (first, each_input) = (stage.first(), of_inputs(shapes, plan, stage));
    let (width, live) = (first.facts().message_width, first.facts().message_has_parameters);
    // Features have been counted.
    let handed_on = if stage.first_layer > 0 { first.facts().inputs * rows } else { 0 };
    let kept = match (width > 0, live) {
        (true, true) => first.facts().inputs * halo,
        (true, false) => first.facts().inputs * rows,
        (false, _) => 0,
    };
    bytes("frozen inputs", handed_on + kept, each_input);
    let apart = plan.evaluates_apart(stage);
    // Evaluations read features that stay in their file from the same map.
    let shared = stage.first_layer == 0 && reads_file(shapes, plan);
    let own = if shared { 0 } else { handed_on.max(first.facts().inputs * rows) };
    let of_evaluations = if apart { own + kept } else { 0 };
    bytes("inputs of evaluations", of_evaluations, each_input);
    // Others' messages, and own ones that are not rows, while a fold without parameters is made of them.
    let folds = width > 0 && !live;
    let made = if folds && first.facts().messages_are_rows() { 0 } else { rows };
    let folding = if folds { (made + halo) * width * each_input } else { 0 };
    let copies = if live && stage.freezes() { halo } else { 0 };
    let sparse = reads_sparse(shapes, plan, stage).then(|| input_values(shapes, plan).div_ceil(rows.max(1)));
    let over = |passes: &[(Over<'_>, Keeping)]| most_bytes(passes.iter().copied(), stage, plan.precision());
    let stored = if stage.first_layer > 0 { rows * first.facts().inputs } else { input_values(shapes, plan) };
    let each = stored.div_ceil(rows.max(1)) + if folds { first.facts().inputs } else { 0 };
    let asked = put_out(shapes, plan, stage, if keeping == Keeping::Nothing { None } else { Some(Reader::Figures) });
    if keeping == Keeping::Nothing || !plan.trains_on_rows_alone(stage) {
        let crosses = shapes.links.iter().any(|link| link.send + link.receive > 0);
        let evaluation = Over { rows, put_out: &asked, copies, crosses, sparse };
        let put_out = put_out(shapes, plan, stage, Some(Reader::Loss));
        let round = Over { put_out: &put_out, ..evaluation };
        // What rounds leave is lent to evaluations where it is not too small for them.
        let passes = match keeping {
            Keeping::Nothing => over(&[(evaluation, keeping)]),
            _ => over(&[(round, keeping), (evaluation, Keeping::Nothing)]),
        };
        let again = if folds && !stage.freezes() { folding } else { 0 };
        // Sparse ones are copied.
        let is_copied = put_out[0] < rows && stage.first_layer == 0 && stored < rows * first.facts().inputs;
        bytes("training rows", if is_copied { put_out[0] * each } else { 0 }, each_input);
        let beside =
            if keeping == Keeping::Nothing { 0 } else { left_beside(rows, &put_out, (stage, plan.precision())) };
        bytes("activations", (passes + beside + again).max(folding), 1);
        return memory;
    }
    let (train, of_round) = training_rows(shapes, plan);
    let batch = if plan.batching.is_some() { of_round * each } else { 0 };
    let of = |rows: usize, put_out: &[usize], keeping| {
        over(&[(Over { rows, put_out, copies: 0, crosses: true, sparse }, keeping)])
    };
    let round = of(of_round, &vec![of_round; asked.len()], keeping);
    let evaluation = of(rows, &asked, Keeping::Nothing);
    bytes("training rows", train * each + batch, each_input);
    bytes("activations", (round + evaluation).max(folding), 1);
    memory
}

/// Bytes of what layers that leave out some of `rows` fold and output in rounds: it may be too small for evaluations,
/// and stays beside theirs.
fn left_beside(rows: usize, put_out: &[usize], (stage, precision): (&Stage, Precision)) -> usize {
    let units = stage.network.units();
    // What the first layer folds once stands among its inputs.
    let folds = |index: usize| index > 0 || stage.first().facts().message_has_parameters;
    // The last layer's outputs are `f32` in either precision.
    let of_output = |index: usize| if index + 1 == units.len() { FLOAT } else { precision.bytes() };
    let each = |(index, unit): (usize, &Unit)| {
        let of_folds = if folds(index) { unit.layer.facts().fold_width * precision.bytes() } else { 0 };
        of_output(index) * unit.layer.facts().outputs + of_folds
    };
    let narrower = units.iter().enumerate().zip(put_out).filter(|(_, of)| **of < rows);
    narrower.map(|(unit, of)| of * each(unit)).sum()
}

/// How many rows each layer of a stage outputs for a round or for an evaluation; at most, where nobody has looked who
/// reads what over how many edges. All of them where the stage is to hand rows on.
fn put_out(shapes: &Shapes, plan: &Plan, stage: &Stage, reader: Option<Reader>) -> Vec<usize> {
    let (rows, [train, others @ ..]) = (shapes.rows, shapes.split_rows);
    let layers = stage.network.units().len();
    let reader = reader.filter(|&reader| reader == Reader::Loss || stage.hand_on == HandOn::Nothing);
    if let (Some(within), Some(reader)) = (&shapes.within, reader) {
        let of_reader = if reader == Reader::Loss { &within.training } else { &within.evaluation };
        return plan.rows_put_out(stage, reader, rows, of_reader);
    }
    let of_rounds = if plan.inductive { vec![train; layers] } else { vec![train] };
    match reader {
        Some(Reader::Loss) => plan.rows_put_out(stage, Reader::Loss, rows, &of_rounds),
        Some(Reader::Figures) => {
            // Rounds that leave out rows have those that they read over several edges before others.
            let goes_far = !plan.inductive && plan.steps_to(Reader::Loss) > Some(0);
            let before = if goes_far && plan.leaves_out(Reader::Loss, rows, &of_rounds) { rows } else { train };
            plan.rows_put_out(stage, Reader::Figures, rows, &[before + others.iter().sum::<usize>()])
        }
        None => vec![rows; layers],
    }
}

/// Bytes of what is folded by source a second time, in layers that leave out rows.
fn narrowed_edges(shapes: &Shapes, plan: &Plan, stage: &Stage) -> usize {
    let edges = shapes.edges.iter().sum::<usize>() as f64;
    let put_out = put_out(shapes, plan, stage, Some(Reader::Loss));
    let narrower = stage.network.units().iter().zip(&put_out).skip(1).filter(|(_, rows)| **rows < shapes.rows);
    let of = |(unit, &rows): (&Unit, &usize)| {
        let numbers = if plan.weighted || unit.layer.facts().reads_positions { 2 } else { 1 };
        let share = rows as f64 / shapes.rows.max(1) as f64;
        numbers * FLOAT * (edges * share) as usize + 8 * (shapes.rows + shapes.halo_rows())
    };
    narrower.map(of).sum()
}

/// Training rows, and how many of them a round runs over, at most but for rare draws.
fn training_rows(shapes: &Shapes, plan: &Plan) -> (usize, usize) {
    let train = shapes.split_rows[0];
    let Some(batching) = &plan.batching else { return (train, train) };
    let share = train as f64 / f64::from(batching.batches.max(1));
    (train, ((share + 3.0 * share.sqrt()) as usize).min(train))
}

/// Values of the copies of a layer's gradient that pieces of rows are added up in, one layer after the other: products
/// with sparse rows and very large weights have one. Beside rounds, states that are written and models on their way
/// take as much as some copies of all.
fn copied(shapes: &Shapes, plan: &Plan, stage: &Stage) -> usize {
    let pieces = row_pieces(shapes.rows);
    let of = |index: usize| {
        let len = stage.network.ranges(index).layer.len();
        let once = len > MOST_COPIED || index == 0 && reads_sparse(shapes, plan, stage);
        len.saturating_mul(if once { 1 } else { pieces })
    };
    let most = (0..stage.network.units().len()).map(of).max().unwrap_or(0);
    most.max(stage.network.len().saturating_mul(BESIDE_ROUNDS))
}

/// Bytes of rows that pass along edges: their start, what they have come to, messages, sums, and those of halo rows.
fn propagated(shapes: &Shapes, stage: &Stage) -> u64 {
    let rows = 4 * shapes.rows + shapes.halo_rows();
    stage.propagation.map_or(0, |_| (FLOAT * stage.outputs()).saturating_mul(rows) as u64)
}

/// Bytes of the sums that a stage is solved from, of the matrix that is solved, and of its solution.
fn solved(stage: &Stage) -> u64 {
    let shape = ridge::shape(stage);
    let (sums, width) = (shape.sums() as u64, shape.columns as u64 + 1);
    let of_matrix = width.saturating_mul(width).saturating_add(width.saturating_mul(2 * shape.outputs as u64));
    // As they are made or solved, and as they cross.
    let all = (8 + 3 * FLOAT as u64).saturating_mul(sums).saturating_add(of_matrix.saturating_mul(8));
    stage.solves.map_or(0, |_| all)
}

fn of_stage(shapes: &Shapes, plan: &Plan, stage: &Stage, keeping: Keeping) -> Memory {
    let (rows, halo) = (shapes.rows, shapes.halo_rows());
    let mut memory = of_passes(shapes, plan, stage, keeping);
    memory.add("propagated rows", propagated(shapes, stage));
    memory.add("sums of products", if keeping == Keeping::Nothing { 0 } else { solved(stage) });
    let precision = plan.precision();
    let mut amount = |name, count: usize, each: usize| memory.add(name, (count as u64).saturating_mul(each as u64));
    let units = stage.network.units();
    // The widest messages. Classes may be many more than columns, and no row of them crosses.
    let (mut messages, mut crossing) = (0, Vec::new());
    let edges = shapes.edges.iter().sum();
    // Where rounds have a pass of their own, its layers keep as much of what it runs over.
    let apart = keeping != Keeping::Nothing && plan.trains_on_rows_alone(stage);
    let of_round = if apart { training_rows(shapes, plan).1 } else { 0 };
    for (index, unit) in units.iter().enumerate() {
        let layer = unit.layer.as_ref();
        let message = layer.facts().message_width;
        amount("what layers keep", layer.facts().state_columns * (rows + of_round), precision.bytes());
        amount(
            "what layers keep",
            layer.facts().kept_values(rows, edges) + layer.facts().kept_values(of_round, 0),
            FLOAT,
        );
        messages = messages.max(message);
        // What crosses in every round: messages, or where they are late the rows that these are made of.
        let carries = stage.late.as_ref().is_some_and(|late| late.carries.rows_of(layer));
        crossing.extend((index > 0).then_some(if carries { layer.facts().inputs } else { message }));
    }
    amount("graph", narrowed_edges(shapes, plan, stage), usize::from(keeping != Keeping::Nothing));
    amount("halo rows", most_halo_bytes(halo, stage, precision, keeping), 1);
    amount("frames", frames(shapes, plan, stage), 1);
    let crosses = crossing.iter().copied().fold(messages, usize::max);
    let all_cross: usize = crossing.iter().sum();
    let exchanged = shapes.links.iter().map(|link| link.send + link.receive).sum::<usize>();
    let mut floats = |name, count: usize| amount(name, count, FLOAT);
    let trains = keeping != Keeping::Nothing;
    let agreed = if trains { (plan.members.agreement(&plan.cadence).keeps)(plan, &stage.network) } else { 0 };
    floats(
        "parameters and optimiser",
        stage.network.len().saturating_mul(6).saturating_add(copied(shapes, plan, stage)).saturating_add(agreed),
    );
    // Late rows and gradients, as they arrive and as they are used, for each layer but the first; and those of one
    // layer on their way, where rows cross in place of messages.
    let (of_layers, of_widest) = match stage.late.map(|late| late.refresh) {
        Some(None) => (all_cross * (halo + rows), crosses * (halo + rows)),
        // Others' rows as they are used, and two refreshes on their way.
        Some(Some(_)) => (all_cross * halo, all_cross * halo),
        None => (0, 0),
    };
    let averages: usize = stage.late.iter().flat_map(|late| late.smoothing).map(|share| usize::from(share > 0.0)).sum();
    floats("late rows", (2 + averages) * of_layers + 2 * of_widest);
    // What was sent last over each link, and what came.
    let skipped = if plan.messages.skip.is_some() { 2 * all_cross * exchanged } else { 0 };
    floats("last messages", skipped);
    // Everything that a worker alone remembers, as arrays and as the bytes of a file.
    floats("state file", 2 * ((1 + averages) * of_layers + skipped + agreed));
    memory
}

/// Accounts of what is sent and received: of two rounds where they are written down, else of all, with those that were
/// predicted.
fn ledger(shapes: &Shapes, plan: &Plan, keeps_accounts: bool) -> u64 {
    let peers = shapes.workers().saturating_sub(1);
    let of_round = |stage: &Stage| peers * (stage.live_exchanges().len() + stage.network.units().len() + 4);
    let accounts = |stage: &Stage| {
        let rounds = if keeps_accounts { u64::from(stage.rounds) } else { 2 };
        rounds.saturating_mul((of_round(stage) * ACCOUNT) as u64)
    };
    let rounds: u64 = match keeps_accounts {
        true => plan.stages.iter().map(accounts).fold(0, u64::saturating_add).saturating_mul(3),
        false => plan.stages.iter().map(accounts).max().unwrap_or(0).saturating_mul(2),
    };
    rounds.saturating_add((2 * peers * 4 * ACCOUNT) as u64)
}
