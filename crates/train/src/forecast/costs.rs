//! What a run would cost, from parts, from what is counted of them, or from some parts alone.

use std::path::Path;

use laconic_graph::about::About;
use laconic_graph::part::{GlobalCounts, Meta, Part};
use laconic_graph::skew::LabelSkew;
use laconic_wire::{Kind, Ledger, Rank, Row, Waits};

use super::book::Book;
use super::contents::Leaving;
use super::spread::{forecast_end, forecast_start, leaving_at_start};
use super::traffic::{clocked, forecast_rungs, forecast_worker, on_best_rung};
use super::trained::{
    evaluated_by_workers, shapes_among, shapes_of_evaluators, trained, unlike_epochs, with_something_to_learn,
    without_trainer,
};
use super::trainers::{Meetings, TrainersForecast};
use super::{Forecast, memory};
use crate::config::ramp::Clock;
use crate::config::{CodecChoice, Config, MeansEvaluator, MessagesConfig, TransportKind};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::{PeerRows, Shapes, TrainingShapes};
use crate::inputs::Found;
use crate::plan::{LinkSets, Members, Plan, TrainersPlan};
use crate::record::aside::write_aside_with;
use crate::schedule::Position;
use crate::worker::evaluate::Evaluator;

/// What a run would cost before anything runs.
pub struct Costs {
    /// The run, with codecs as the budget allows.
    pub plan: Plan,
    /// Per worker its shapes, what it would send, and its memory: all workers, or those whose parts were looked at.
    pub workers: Vec<(Shapes, Ledger, u64)>,
    /// Per worker what leaves it, content by content.
    pub leaves: Vec<Vec<Leaving>>,
    /// Whether no worker sends more, and some may send less: sizes depend on what happens during the run, or on what
    /// is not known of the parts.
    pub is_bound: bool,
    /// Bytes of rows, framing included, and what they would be if none were compressed, where that is less.
    pub dearer_than_exact: Option<[u64; 2]>,
    /// What is unusual about the data.
    pub notes: Vec<String>,
    /// What is known of means, where workers are independent trainers.
    pub averaging: Option<Means>,
    /// How often somebody waits for frames.
    pub waits: Waits,
    /// What features and classes are called.
    pub about: About,
    evaluator: Evaluator,
}

/// Means of independent trainers: worker 0 is their aggregator, behind it stands a trainer for each part.
pub struct Means {
    /// How many a run takes, over all stages; `None` where nobody knows.
    pub number: Option<u64>,
    /// What one takes, framing included.
    pub bytes: u64,
    /// The numbers of the parts that are trained on.
    pub parts: Vec<u32>,
    /// The part whose trainer lives in the aggregator's process, where one does.
    pub hosted: Option<u32>,
    /// Who evaluates means.
    pub evaluator: MeansEvaluator,
}

impl Costs {
    /// The number of workers of the run.
    pub fn size(&self) -> usize {
        self.workers.first().map_or(0, |(shapes, ..)| shapes.workers())
    }

    /// Bytes that all of these workers send, framing included.
    pub fn bytes(&self) -> u64 {
        self.workers.iter().map(|(_, ledger, _)| ledger.total().framed).sum()
    }

    /// Writes every account of these workers, in the form and order of a run's `ledger.csv`. Memory does not grow with
    /// the rounds.
    ///
    /// # Errors
    /// If a codec cannot be made, or the operating system refuses.
    pub fn write_ledger(&self, path: &Path) -> Result<()> {
        let position = Position::default();
        let forecast = Forecast { plan: &self.plan, evaluator: &self.evaluator, position: &position };
        write_aside_with(path, |file| {
            let io = |source| TrainError::io(path, source);
            writeln!(file, "{}", Row::CSV_HEADER).map_err(io)?;
            for (shapes, ledger, _) in &self.workers {
                let from = Rank(shapes.rank);
                let mut put = |entry, count| writeln!(file, "{}", Row { from, entry, count, start: 0 }).map_err(io);
                if self.averaging.is_some() {
                    ledger.iter().try_for_each(|(entry, count)| put(entry, count))?;
                    continue;
                }
                forecast_worker(&forecast, shapes, None, &mut Book::handing_on(&mut put))?;
            }
            Ok(())
        })
    }
}

/// What every worker of a configuration would send, with shapes and memory; nothing runs. `ledger` makes the ledgers
/// that are filled, such as [`Ledger::of_totals`].
///
/// # Errors
/// If the parts cannot be trained on, or a byte budget cannot be kept.
pub fn forecast(members: &Members, config: &Config, parts: &[Part], ledger: fn() -> Ledger) -> Result<Costs> {
    forecast_knowing(members, config, (parts, &Found::default()), ledger)
}

/// The same, where other runs on these parts are forecast, too: what was found of them before is not looked for again.
///
/// # Errors
/// Those of [`forecast`].
pub fn forecast_knowing(
    members: &Members,
    config: &Config,
    (parts, found): (&[Part], &Found),
    ledger: fn() -> Ledger,
) -> Result<Costs> {
    let global = &parts.first().ok_or_else(|| TrainError::config("there are no parts"))?.global;
    let plan =
        Plan::with(members, config, global)?.with_label_skew(LabelSkew::of_parts(parts).map(|labels| labels.skew));
    let odd: Vec<String> = plan.check_weights(parts)?.into_iter().chain(plan.two_sided(parts.iter())).collect();
    let with_odd = |costs: Costs| Costs { notes: costs.notes.into_iter().chain(odd).collect(), ..costs };
    if let Some(trainers) = &plan.trainers {
        return costs_of_trainers(trainers, (members, config), &plan, parts).map(with_odd);
    }
    let (held_out, sets) = held_out(&plan, parts)?;
    let parts = held_out.as_deref().unwrap_or(parts);
    // With edges held out they are others.
    let (anew, is_whole) = (Found::default(), held_out.is_none());
    let mut shapes = Shapes::of_all(parts, &plan, if is_whole { found } else { &anew })?;
    shapes.iter_mut().zip(&sets).for_each(|(shapes, sets)| shapes.count_links(sets));
    let judged = [0, 1].map(|split| sets.iter().map(|sets| sets.judged(split).len() as u64).sum());
    let of_links = plan.foreseen(judged);
    // What owners will answer is known where their secrets are.
    let is_bound = plan.inputs.response.as_ref().is_some_and(|response| !response.has_secret());
    let mut costs = costs(plan, global, Known { shapes, is_bound }, ledger).map(with_odd)?;
    costs.notes.extend(of_links);
    Ok(costs)
}

/// The parts without the edges that are held out, where any are, and the edges of each by what they are for.
fn held_out(plan: &Plan, parts: &[Part]) -> Result<(Option<Vec<Part>>, Vec<LinkSets>)> {
    let Some(links) = &plan.links else { return Ok((None, Vec::new())) };
    let each = parts.iter().map(|part| links.sets(part.clone())).collect::<Result<Vec<_>>>()?;
    let (parts, sets): (Vec<Part>, Vec<LinkSets>) = each.into_iter().unzip();
    Ok((Some(parts), sets))
}

/// As [`forecast`] from the meta data of a folder of parts alone; `None` where they do not say enough.
///
/// # Errors
/// As [`forecast`].
pub fn forecast_counted(
    members: &Members,
    config: &Config,
    meta: &Meta,
    ledger: fn() -> Ledger,
) -> Result<Option<Costs>> {
    let plan = Plan::with(members, config, &meta.global)?.with_label_skew(meta.label_skew);
    if !plan.trains_on_all_edges() {
        // Nobody has counted the graph that training nodes induce, or that is left when edges are held out.
        return Ok(None);
    }
    let shapes = Shapes::counted(meta, plan.self_loops);
    // Nobody has counted what parts tell each other.
    let is_bound = !plan.inputs.told.is_empty() || plan.covers;
    shapes.map(|shapes| costs(plan, &meta.global, Known { shapes, is_bound }, ledger)).transpose()
}

/// As [`forecast`] from some parts of a folder and its meta data, as owners of single parts have them: bounds, of all
/// workers where the meta data count the parts, else of those whose parts these are.
///
/// # Errors
/// As [`forecast`]; and where the messages depend on what all workers send, and nobody has counted it.
pub fn forecast_some(
    members: &Members,
    config: &Config,
    (meta, parts): (&Meta, &[Part]),
    ledger: fn() -> Ledger,
) -> Result<Costs> {
    let plan = Plan::with(members, config, &meta.global)?.with_label_skew(meta.label_skew);
    plan.check_weights(parts)?;
    let counted = Shapes::counted(meta, plan.self_loops);
    let is_counted = counted.is_some();
    let alone = || parts.iter().map(|part| Shapes::bound(part, plan.self_loops)).collect();
    let mut shapes: Vec<Shapes> = counted.unwrap_or_else(alone);
    if plan.inductive {
        shapes.iter_mut().for_each(|shapes| shapes.training = Some(TrainingShapes::bound(shapes)));
    }
    for shapes in &mut shapes {
        if let Some(targets) = plan.bounded_targets(shapes.edges.iter().sum()) {
            (shapes.split_rows, shapes.given_pairs) = targets;
        }
    }
    if !is_counted && (plan.messages.budget.is_some() || plan.messages.follow(Clock::Bytes)) {
        let what = "depends on what all workers send, and the folder neither holds all parts nor counts them";
        let key = if plan.messages.budget.is_some() { "messages.budget" } else { "clock = \"bytes\"" };
        return Err(TrainError::config(format!("{key} {what}")));
    }
    costs(plan, &meta.global, Known { shapes, is_bound: true }, ledger)
}

/// The shapes of workers, exact or no smaller than they are.
struct Known {
    shapes: Vec<Shapes>,
    is_bound: bool,
}

/// What workers of these shapes would send and take.
fn costs(mut plan: Plan, global: &GlobalCounts, known: Known, ledger: fn() -> Ledger) -> Result<Costs> {
    let Known { mut shapes, is_bound } = known;
    if plan.covers {
        shapes.iter_mut().for_each(Shapes::cover_at_most);
    }
    plan.check_workers(shapes.first().map_or(0, Shapes::workers))?;
    let evaluator = Evaluator::of(&plan, global);
    if plan.deletes_edges {
        shapes.iter_mut().for_each(|shapes| shapes.training = Some(TrainingShapes::own_alone(shapes)));
    }
    if let Some(budget) = plan.messages.budget {
        let totals = forecast_rungs(&plan, &evaluator, &shapes, &shapes)?;
        plan = on_best_rung(&plan, &evaluator, &shapes, &totals, budget)?;
    } else {
        plan = clocked(plan, &evaluator, &shapes)?;
    }
    let position = Position::default();
    let forecast = Forecast { plan: &plan, evaluator: &evaluator, position: &position };
    let (mut workers, mut leaves, mut waits) = (Vec::new(), Vec::new(), Waits::default());
    for shapes in shapes {
        let mut book = Book::of(ledger().noting_waits());
        forecast_worker(&forecast, &shapes, None, &mut book)?;
        let memory = memory::forecast(&shapes, &plan, false).total();
        leaves.push(book.leaves());
        waits.join(&book.ledger.take_waits());
        workers.push((shapes, book.ledger, memory));
    }
    let dearer_than_exact = dearer_than_exact(&plan, &evaluator, &workers)?;
    let is_bound = is_bound || !plan.is_predictable();
    let notes = Vec::new();
    Ok(Costs {
        plan,
        workers,
        leaves,
        is_bound,
        dearer_than_exact,
        notes,
        averaging: None,
        waits,
        about: global.about.clone(),
        evaluator,
    })
}

/// What independent trainers would send and take, each from its part, and their aggregator, from all of them.
fn costs_of_trainers(
    trainers: &TrainersPlan,
    names: (&Members, &Config),
    plan: &Plan,
    every: &[Part],
) -> Result<Costs> {
    let could = trainers.parts(every.len() as u32)?;
    let parts = with_something_to_learn(every, could.clone(), plan);
    let evaluated = match trainers.by_workers {
        None => vec![Part::whole(every)?],
        Some(edges) => evaluated_by_workers(every, &parts, edges),
    };
    let (own, of_epoch) = trained(names, every.to_vec(), trainers, &parts, None)?;
    let meeting = if trainers.meet() { shapes_among(&own, plan)? } else { Vec::new() };
    let hosted = trainers.hosted(&parts)?;
    let evaluating = if trainers.by_workers.is_some() { shapes_of_evaluators(&evaluated, plan)? } else { Vec::new() };
    let global = &evaluated[0].global;
    let meetings = Meetings { exchanging: &meeting, evaluating: &evaluating, global };
    let mut forecast = TrainersForecast::of(plan, &of_epoch, hosted, &meetings, None)?;
    enter_start_and_end(plan, &meetings, &mut forecast);
    let held = Held { trained: &own, evaluated: &evaluated };
    let workers = workers_of_trainers(plan, held, &meetings, forecast.books);
    let is_known = !forecast.means.is_empty();
    let number = is_known.then(|| forecast.means.iter().sum());
    let mut notes: Vec<String> = without_trainer(&could, &parts).chain(unlike_epochs(plan, &of_epoch)).collect();
    if forecast.is_exact && of_epoch.len() > 1 {
        let what = "bytes are those of trainers that keep up with each other: who is later than schedule.grace is \
            called, with 24 bytes for each mean, or missed";
        notes.push(what.to_owned());
    }
    if !is_known {
        let what = "one of schedule.interval and schedule.limit is a time and the other is not: how many means there \
            will be is not known, and neither are their bytes; what is said of bytes leaves them out";
        notes.push(what.to_owned());
    }
    Ok(Costs {
        plan: plan.clone(),
        workers,
        leaves: forecast.leaves,
        is_bound: !forecast.is_exact,
        dearer_than_exact: None,
        notes,
        averaging: Some(Means {
            number,
            bytes: forecast.of_mean,
            parts,
            hosted: trainers.hosted,
            evaluator: trainers.evaluator(),
        }),
        waits: forecast.waits,
        about: global.about.clone(),
        evaluator: Evaluator::of(plan, global),
    })
}

/// Enters what processes that hold one part each tell each other besides.
fn enter_start_and_end(plan: &Plan, meetings: &Meetings<'_>, forecast: &mut TrainersForecast) {
    let has_processes = matches!(plan.config.transport.kind, TransportKind::Processes | TransportKind::Mpi);
    if meetings.evaluating.is_empty() || !has_processes {
        return;
    }
    let size = forecast.books.len();
    for ((rank, book), leaves) in Rank::all(size).zip(&mut forecast.books).zip(&mut forecast.leaves) {
        let evaluating = meetings.evaluating[rank.index()].to_bytes().len();
        let of_trainer = rank.index().checked_sub(1).and_then(|place| meetings.exchanging.get(place));
        let exchanging = of_trainer.map_or(0, |shapes| shapes.to_bytes().len());
        let told = if meetings.exchanging.is_empty() { vec![evaluating] } else { vec![evaluating, exchanging] };
        let mut besides = Ledger::new().noting_waits();
        forecast_start((plan, size - 1), rank, size, &told, &mut besides);
        forecast_end(rank, size, &mut besides);
        forecast.waits.join(&besides.take_waits());
        book.add_times(&besides, 1);
        leaves.extend(leaving_at_start(plan, rank, size));
    }
}

/// What trainers and their aggregator hold.
struct Held<'a> {
    trained: &'a [Part],
    /// What means are evaluated on, by rank: the whole graph at the aggregator alone, or the part of each.
    evaluated: &'a [Part],
}

/// The shapes, books and memory of the aggregator and each trainer.
fn workers_of_trainers(
    plan: &Plan,
    held: Held<'_>,
    meetings: &Meetings<'_>,
    books: Vec<Ledger>,
) -> Vec<(Shapes, Ledger, u64)> {
    let mut workers = Vec::new();
    for ((rank, part), ledger) in (0u32..).zip(std::iter::once(&held.evaluated[0]).chain(held.trained)).zip(books) {
        let outline = Shapes::outline(part, plan.self_loops);
        let mut memory = match rank {
            0 => memory::of_aggregator(part, plan, held.trained.len()),
            _ => memory::of_trainer(part, plan),
        };
        // An aggregator has no rows of others, and nobody has any of its.
        let mut links = vec![PeerRows::default(); held.trained.len() + 1];
        if let Some(met) = meetings.exchanging.get((rank as usize).wrapping_sub(1)) {
            links[1..].copy_from_slice(&met.links);
        }
        if let (Some(met), Some(part)) = (meetings.evaluating.get(rank as usize), held.evaluated.get(rank as usize)) {
            let more = |(own, met): (&mut PeerRows, &PeerRows)| {
                *own = PeerRows { send: own.send.max(met.send), receive: own.receive.max(met.receive) };
            };
            links.iter_mut().zip(&met.links).for_each(more);
            if rank > 0 {
                memory.add_all(&memory::of_evaluator(part, plan));
            }
        }
        workers.push((Shapes { rank, links, ..outline }, ledger, memory.total()));
    }
    workers
}

/// Codes have overheads: a grid for every row, and again with each refinement of rows that never change.
fn dearer_than_exact(
    plan: &Plan,
    evaluator: &Evaluator,
    workers: &[(Shapes, Ledger, u64)],
) -> Result<Option<[u64; 2]>> {
    let chosen = &plan.config.messages;
    let exact = CodecChoice::exact;
    let plain = MessagesConfig { forward: exact(), backward: exact(), layers: Default::default(), ..chosen.clone() };
    if plain == *chosen || !plan.is_predictable() {
        return Ok(None);
    }
    let (plain, position) = (plan.with_messages(&plain)?, Position::default());
    let forecast = Forecast { plan: &plain, evaluator, position: &position };
    let rows = |ledger: &Ledger| {
        let totals = ledger.totals_by_kind();
        let kinds = [Kind::Features, Kind::Activations, Kind::ActivationGradients];
        kinds.iter().map(|kind| totals[*kind].framed).sum::<u64>()
    };
    let mut bytes = [0; 2];
    for (shapes, chosen, _) in workers {
        let mut exact = Book::of(Ledger::of_totals());
        forecast_worker(&forecast, shapes, None, &mut exact)?;
        bytes[0] += rows(chosen);
        bytes[1] += rows(&exact.ledger);
    }
    Ok(Some(bytes).filter(|[chosen, plain]| chosen > plain))
}
