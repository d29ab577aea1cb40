//! What independent trainers and their aggregator will send: to the byte where steps decide when means are taken, and
//! at most where time does, as long as nobody fails.

use std::time::Duration;

use laconic_graph::part::GlobalCounts;
use laconic_wire::{Content, Count, Entry, Ledger, Rank, Tag, Waits};

use super::Forecast;
use super::book::Book;
use super::contents::{Leaving, What};
use super::stages::{EvaluatedMeans, forecast_told};
use super::traffic::{forecast_exchanges, forecast_meetings, forecast_telling};
use crate::averaging::link::{sizes_from_trainer, sizes_to_trainer};
use crate::averaging::{Changes, Form, FromTrainer, Leave, Model, Sent, Taken, ToTrainer};
use crate::config::{Pace, TrainersHalo};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;
use crate::fit::progress::{Averaged, Snapshot};
use crate::inputs::Response;
use crate::plan::trainers::means_left;
use crate::plan::{Plan, ROUNDS_MAX};
use crate::schedule::{Position, Stage};
use crate::worker::evaluate::Evaluator;

/// What a run of independent trainers will cost, before it starts.
pub struct TrainersForecast {
    /// What the aggregator, of rank 0, and each trainer behind it will send.
    pub books: Vec<Ledger>,
    /// Whether that is exact, as long as nobody fails; else at most, or not known at all.
    pub is_exact: bool,
    /// The means of each stage, those before a resumed run goes on among them; nothing where nobody knows.
    pub means: Vec<u64>,
    /// What trainers send each other, apart from evaluations: the round of each account, and its bytes.
    pub exchanged: Vec<(u32, u64)>,
    /// What leaves each, content by content.
    pub leaves: Vec<Vec<Leaving>>,
    /// How often somebody waits for frames.
    pub waits: Waits,
    /// What a mean takes, framing included: a model of each trainer that does not live in the aggregator's process, and
    /// back to each; in the stage with the largest.
    pub of_mean: u64,
}

/// What workers meet for besides means.
pub struct Meetings<'a> {
    /// The shapes of trainers that exchange stages' inputs, by their places among each other.
    pub exchanging: &'a [Shapes],
    /// The shapes of all that evaluate means together, by their ranks.
    pub evaluating: &'a [Shapes],
    /// What all owners know.
    pub global: &'a GlobalCounts,
}

impl TrainersForecast {
    /// Of so many ranks, where somebody else predicts.
    pub fn unknown(ranks: usize) -> TrainersForecast {
        TrainersForecast {
            books: vec![Ledger::new(); ranks],
            is_exact: false,
            means: Vec::new(),
            exchanged: Vec::new(),
            leaves: Vec::new(),
            waits: Waits::default(),
            of_mean: 0,
        }
    }

    /// For trainers with epochs of so many steps, of which `hosted` runs in the aggregator's process. Where a run goes
    /// on from a snapshot, what it sends from then on: all that trainers tell each other before stages, what finished
    /// stages have chosen, and the means left.
    ///
    /// # Errors
    /// If a codec cannot be made, or means are too many to be numbered.
    pub fn of(
        plan: &Plan,
        of_epoch: &[u64],
        hosted: Option<usize>,
        meetings: &Meetings<'_>,
        from: Option<&Snapshot>,
    ) -> Result<TrainersForecast> {
        let trainers = of_epoch.len();
        let mut books: Vec<Book<'_>> = (0..=trainers).map(|_| Book::of(Ledger::new().noting_waits())).collect();
        let of = plan.trainers.as_ref().expect("a plan of independent trainers");
        let form = |(index, stage): (usize, &Stage)| {
            Ok(Form::of(Changes::of(plan, index, Rank(0))?.as_ref(), stage.network.len()))
        };
        let forms = plan.stages.iter().enumerate().map(form).collect::<Result<Vec<Form>>>()?;
        let stage = |(index, form): (usize, &Form)| {
            let reached = StageReached::of(plan, index, from);
            let paces = (of.interval, plan.config.end_of(index));
            let means = StageMeans::of(paces, of_epoch, (*form, taken_along(plan, index)), &reached)?;
            Some(StageMeans { hands_on: index + 1 < plan.stages.len(), ..means })
        };
        let stages = forms.iter().enumerate().map(stage).collect::<Option<Vec<_>>>().unwrap_or_default();
        let all = stages.iter().fold(0u64, |sum, stage| sum.saturating_add(stage.means));
        if all > ROUNDS_MAX as u64 {
            let what = format!("{all} means, expected at most {ROUNDS_MAX}; a longer interval takes fewer");
            return Err(TrainError::config(format!("schedule.interval and schedule.limit: {what}")));
        }
        // Who lives with the aggregator says nothing that crosses.
        let afar: Vec<usize> = (0..trainers).filter(|trainer| Some(*trainer) != hosted).collect();
        stages.iter().for_each(|stage| forecast_stage(stage, &afar, &mut books));
        let leaves: Vec<Vec<Leaving>> = books.iter().map(Book::leaves).collect();
        let mut books: Vec<Ledger> = books.into_iter().map(|book| book.ledger).collect();
        let mut waits = Waits::default();
        books.iter_mut().for_each(|ledger| waits.join(&ledger.take_waits()));
        let mut books = Books { books, leaves, waits };
        let exchanged = books.enter_exchanges(plan, meetings.exchanging, stages.first())?;
        books.enter_evaluations(plan, meetings, &evaluated_means(plan, &stages, from), hosted)?;
        let Books { books, leaves, waits } = books;
        let is_exact = !stages.is_empty() && stages.iter().all(|stage| stage.is_exact);
        // What owners will answer is known where their secrets are.
        let are_known = plan.inputs.response.as_ref().is_none_or(Response::has_secret);
        let is_exact = is_exact && are_known && plan.messages.parameters_have_a_size();
        let means = stages.iter().map(|stage| stage.means).collect();
        let largest = forms.iter().enumerate().max_by_key(|(_, form)| form.values);
        let of_mean =
            largest.map_or(0, |(stage, form)| bytes_of_mean(form, taken_along(plan, stage), afar.len(), of.interval));
        Ok(TrainersForecast { books, is_exact, means, exchanged, leaves, waits, of_mean })
    }
}

/// What each will send, by rank, and what leaves it.
struct Books {
    books: Vec<Ledger>,
    leaves: Vec<Vec<Leaving>>,
    waits: Waits,
}

impl Books {
    /// Enters what trainers send each other; returns the round and the bytes of each account.
    fn enter_exchanges(
        &mut self,
        plan: &Plan,
        exchanging: &[Shapes],
        first: Option<&StageMeans>,
    ) -> Result<Vec<(u32, u64)>> {
        let of = plan.trainers.as_ref().expect("a plan of independent trainers");
        let (alone, position) = (plan.clone().alone(), Position::default());
        let alone = if of.exchange() { alone } else { alone.telling_once() };
        let evaluator = Evaluator::of(&alone, &GlobalCounts::default());
        let forecast = Forecast { plan: &alone, evaluator: &evaluator, position: &position };
        let mut exchanged = Vec::new();
        for shapes in exchanging {
            let (mut book, rank) = (Book::of(Ledger::new().noting_waits()), shapes.rank as usize + 1);
            if of.exchange() {
                forecast_exchanges(&forecast, shapes, &mut book)?;
            } else {
                forecast_telling(&alone, shapes, &mut book);
            }
            // What trainers tell each other after that nobody waits for.
            self.waits.join(&book.ledger.take_waits());
            if of.halo == TrainersHalo::Stale {
                let every = of.refresh.max(1);
                let means = first.map_or(0..0, |stage| stage.before..number(stage.means));
                // Who comes tells the others at once.
                let tells = |mean: &u32| first.is_some_and(|stage| stage.before == *mean) || mean.is_multiple_of(every);
                forecast_told(&forecast, shapes, means.filter(tells), &mut book)?;
            }
            self.leaves[rank].extend(book.leaves().into_iter().map(|of| Leaving { to: Rank(of.to.0 + 1), ..of }));
            for (entry, count) in book.ledger.iter() {
                exchanged.push((entry.round, count.framed));
                self.books[rank].enter(Entry { peer: Rank(entry.peer.0 + 1), ..entry }, count);
            }
        }
        Ok(exchanged)
    }

    /// Enters what evaluations take that all meet for, but between the aggregator and who lives with it.
    fn enter_evaluations(
        &mut self,
        plan: &Plan,
        meetings: &Meetings<'_>,
        evaluated: &[EvaluatedMeans],
        hosted: Option<usize>,
    ) -> Result<()> {
        let plan = &plan.of_evaluators();
        let (evaluator, position) = (Evaluator::of(plan, meetings.global), Position::default());
        let forecast = Forecast { plan, evaluator: &evaluator, position: &position };
        for shapes in meetings.evaluating {
            let (mut book, rank) = (Book::of_evaluations(), shapes.rank as usize);
            forecast_meetings(&forecast, shapes, evaluated, &mut book)?;
            self.waits.join(&book.ledger.take_waits());
            let ends = |peer: Rank| (rank.min(peer.index()), Some(rank.max(peer.index())));
            let crosses = |peer: Rank| ends(peer) != (0, hosted.map(|place| place + 1));
            self.leaves[rank].extend(book.leaves().into_iter().filter(|leaving| crosses(leaving.to)));
            let accounts = book.ledger.iter().filter(|(entry, _)| crosses(entry.peer));
            accounts.for_each(|(entry, count)| self.books[rank].enter(entry, count));
        }
        Ok(())
    }
}

/// What trainers are told with a mean of a stage, as far as its size goes.
fn taken_along(plan: &Plan, stage: usize) -> Taken {
    let by_time = matches!(plan.config.horizon_of(stage), Pace::Time(_)) && plan.rate.follows_the_share();
    Taken { share: by_time.then_some(0.0), ..Taken::default() }
}

/// What a mean takes that is handed out to so many trainers, who are called for it where time decides.
fn bytes_of_mean(form: &Form, taken: Taken, trainers: usize, interval: Pace) -> u64 {
    let model = form.empty();
    let call = matches!(interval, Pace::Time(_)).then(|| sizes_to_trainer(&ToTrainer::Call { number: 1 }));
    let there = sizes_from_trainer(&FromTrainer::Model { number: 1, steps: 0, loss: 0.0, model: model.clone() });
    let back = sizes_to_trainer(&ToTrainer::Go { number: 1, taken, model: Some(model) });
    let frames = call.into_iter().chain([there, back]).flatten();
    trainers as u64 * frames.map(|(_, payload)| Count::of(1, payload as u64).framed).sum::<u64>()
}

/// One stage, as far as its traffic goes.
#[derive(Debug, Clone, Copy)]
struct StageMeans {
    /// The means that had been taken before the run goes on.
    before: u32,
    /// Whether the stage had been finished then.
    is_passed: bool,
    /// The means that are taken, at most, with those before.
    means: u64,
    /// Whether it is exactly so many.
    is_exact: bool,
    /// What models look like on their way.
    form: Form,
    /// What trainers are told with them, as far as its size goes.
    taken: Taken,
    /// Whether another stage follows, which trainers get the chosen model for.
    hands_on: bool,
}

impl StageMeans {
    /// Of a stage whose trainers have epochs of so many steps; a time is divided by a time, steps by steps. Where one
    /// is a time and the other is not, nobody knows.
    fn of(
        paces: (Pace, Pace),
        of_epoch: &[u64],
        (form, taken): (Form, Taken),
        reached: &StageReached,
    ) -> Option<StageMeans> {
        let StageReached { before, is_passed, is_over, steps, elapsed } = reached;
        let steps = steps.iter().copied().chain(std::iter::repeat(0));
        let left = |(&of_epoch, steps): (&u64, u64)| means_left(paces, of_epoch, steps, *elapsed);
        let left = of_epoch.iter().zip(steps).map(left).collect::<Option<Vec<_>>>()?;
        let (left, is_exact) = left.into_iter().min()?;
        let left = if *is_passed || *is_over { 0 } else { left };
        let means = u64::from(*before).saturating_add(left);
        Some(StageMeans { before: *before, is_passed: *is_passed, means, is_exact, form, taken, hands_on: false })
    }
}

/// The means that workers evaluate together, stage by stage.
fn evaluated_means(plan: &Plan, stages: &[StageMeans], from: Option<&Snapshot>) -> Vec<EvaluatedMeans> {
    let every = plan.config.train.eval_every;
    let mut before = 0;
    let of = |stage: &StageMeans| {
        let last = number(stage.means);
        let is_evaluated = |mean: &u32| *mean == last || (every > 0 && mean.is_multiple_of(every));
        // Of the mean that a run goes on from, the verdict may not have come.
        let owes = from.and_then(|from| from.counters.averaged.as_ref()).is_some_and(|of| !of.unwritten.is_empty());
        let owed = (owes && stage.before > 0 && !stage.is_passed).then_some(stage.before);
        let numbers = owed.into_iter().chain((stage.before + 1..=last).filter(is_evaluated)).collect();
        let of = EvaluatedMeans { before, numbers: if stage.is_passed { Vec::new() } else { numbers } };
        before += last;
        of
    };
    stages.iter().map(of).collect()
}

/// What had been done of a stage when the run goes on.
#[derive(Debug, Default)]
struct StageReached {
    /// Its means.
    before: u32,
    /// Whether it had been finished.
    is_passed: bool,
    /// Whether patience has run out.
    is_over: bool,
    /// Steps of each trainer that have entered its means, and how long they took.
    steps: Vec<u64>,
    elapsed: Duration,
}

impl StageReached {
    fn of(plan: &Plan, stage: usize, from: Option<&Snapshot>) -> StageReached {
        let Some(from) = from else { return StageReached::default() };
        if let Some((_, means)) = from.finished.get(stage) {
            return StageReached { before: *means, is_passed: true, ..StageReached::default() };
        }
        let (counters, patience) = (&from.counters, plan.config.train.patience);
        if stage > from.finished.len() || counters.done == 0 {
            return StageReached::default();
        }
        let Averaged { elapsed, steps, .. } = counters.averaged.clone().unwrap_or_default();
        let elapsed = Duration::try_from_secs_f64(elapsed).unwrap_or_default();
        let is_over = patience > 0 && counters.since_best >= patience;
        StageReached { before: counters.done, is_passed: false, is_over, steps, elapsed }
    }
}

/// A mean's number.
fn number(mean: u64) -> u32 {
    u32::try_from(mean).unwrap_or(u32::MAX)
}

/// Enters what the aggregator, of rank 0, and these trainers behind it send in a stage. A round of the ledger is a
/// mean.
fn forecast_stage(stage: &StageMeans, trainers: &[usize], books: &mut [Book<'_>]) {
    let (model, taken) = (stage.form.empty(), stage.taken);
    let whole = || -> Model { vec![0.0; stage.form.values].into() };
    let (aggregator, others) = books.split_first_mut().expect("the aggregator has a book");
    let goes = stage.before == 0 || u64::from(stage.before) < stage.means;
    for (place, &trainer) in trainers.iter().enumerate() {
        // All trainers wait at the same times.
        let awaited = place == 0;
        let (peer, book) = (trainer + 1, &mut others[trainer]);
        let came = FromTrainer::Came { steps_of_epoch: 1, rows: 0.0 };
        enter(book, sizes_from_trainer(&came), (0, awaited), What::TrainerModels);
        let mut tell = |said: &ToTrainer| enter(aggregator, sizes_to_trainer(said), (peer, awaited), What::Means);
        if goes && !stage.is_passed {
            // Nobody has the mean that a resumed run goes on from.
            let model = (stage.before > 0).then(|| Sent::Whole(whole()));
            tell(&ToTrainer::Go { number: stage.before, taken, model });
        }
        for mean in u64::from(stage.before) + 1..=stage.means {
            let answer = FromTrainer::Model { number: number(mean), steps: 0, loss: 0.0, model: model.clone() };
            enter(book, sizes_from_trainer(&answer), (0, awaited), What::TrainerModels);
            if !stage.is_exact {
                tell(&ToTrainer::Call { number: number(mean) });
            }
            if mean < stage.means {
                tell(&ToTrainer::Go { number: number(mean), taken, model: Some(model.clone()) });
            }
        }
        // What was chosen travels as it is.
        tell(&ToTrainer::End { chosen: stage.hands_on.then(whole) });
        enter(book, sizes_from_trainer(&FromTrainer::Bye(Leave::default())), (0, awaited), What::TrainerModels);
    }
}

/// Enters the frames of a message: models as what they are, all else as agreement.
fn enter(book: &mut Book<'_>, frames: Vec<(Tag, usize)>, (peer, awaited): (usize, bool), models: What) {
    let last = frames.len().saturating_sub(1);
    for (at, (tag, payload)) in frames.into_iter().enumerate() {
        let what = if tag.content == Content::Models { models } else { What::TrainerWords };
        let record = |ledger: &mut Ledger| ledger.record_count(tag, Rank(peer as u32), Count::of(1, payload as u64));
        // One message is one wait, in however many frames.
        book.note(what, 0, |ledger| if awaited && at == last { record(ledger) } else { ledger.unawaited(record) });
    }
}
