//! The aggregator by the clock on the wall: it polls all links in turn, and evaluates means on a thread of its own, so
//! that means are taken while one is evaluated.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use laconic_wire::{Ledger, Metered, Rank, Transport, WireError};

use super::Setup;
use super::run_recorder::RunRecorder;
use crate::averaging::lane::{Doing, Lane};
use crate::averaging::link::{Inbox, frames_to_trainer};
use crate::averaging::{
    Action, Aggregator, Changes, Ending, Event, Form, FromTrainer, Judge, Leave, Model, Terms, ToTrainer, Watch,
};
use crate::config::Pace;
use crate::error::{Result, TrainError};
use crate::exchange::steps::Step;
use crate::fit::StageInputs;
use crate::fit::local::MeansJudge;
use crate::fit::trainer::StageRun;
use crate::record::observer::Stand;
use crate::worker::evaluate::Evaluated;
use crate::worker::{StopSignal, Worker};

/// How long an end sleeps when it has found nothing to do.
pub(super) const REST: Duration = Duration::from_micros(200);

/// The aggregator's rank.
pub(super) const AGGREGATOR: Rank = Rank(0);

/// What the judge is asked, in this order.
enum Asked {
    Judge(u32, Model),
    Correct(u32, Model, f64),
}

/// What it answers.
enum Told {
    Verdict(u32, Evaluated, Option<f64>),
    NoVerdict(u32),
    Corrected(Vec<f32>),
    Failed(TrainError),
}

/// Judges and corrects as it is asked to, until nobody asks any more.
fn serve_evaluations(judge: &mut MeansJudge<'_>, corrections: u32, asked: &Receiver<Asked>, told: &Sender<Told>) {
    for question in asked {
        let answer = match question {
            Asked::Judge(number, model) => judge.judge(number, &model).map(|evaluated| match evaluated {
                Some(evaluated) => {
                    let worth = judge.worth(&evaluated);
                    Told::Verdict(number, evaluated, worth)
                }
                None => Told::NoVerdict(number),
            }),
            Asked::Correct(number, model, at) => judge.correct(number, &model, corrections, at).map(Told::Corrected),
        };
        if told.send(answer.unwrap_or_else(Told::Failed)).is_err() {
            return;
        }
    }
}

/// The aggregator's end of the network, and what it knows of each trainer.
pub(super) struct AggregatorServer {
    pub transport: Metered,
    pub give_up: StopSignal,
    /// Whose end is gone, by trainer.
    gone: Vec<bool>,
    /// Who has said what no trainer says.
    shut_out: Vec<bool>,
    /// What has been said already to the stage that is to begin.
    early: Vec<Event>,
    /// Who has come to this stage.
    come: Vec<bool>,
    /// What each has left with.
    pub leaves: Vec<Option<Leave>>,
    /// What each has sent.
    pub from: Vec<Ledger>,
    /// What each says that it has sent to others.
    pub sent_besides: Vec<Option<Vec<u8>>>,
}

/// How many means wait for their verdicts where each is judged.
const WAITING_MAX: usize = 4;

impl AggregatorServer {
    pub fn new(transport: Metered, give_up: StopSignal) -> AggregatorServer {
        let trainers = transport.size() - 1;
        let (leaves, from, nobody) = (vec![None; trainers], vec![Ledger::new(); trainers], vec![false; trainers]);
        let (gone, shut_out, come) = (nobody.clone(), nobody.clone(), nobody);
        let sent_besides = vec![None; trainers];
        AggregatorServer { transport, give_up, gone, shut_out, early: Vec::new(), come, leaves, from, sent_besides }
    }

    /// Begins a stage: what trainers have said to it already. What they said to the one before counts no more.
    fn begin_stage(&mut self) -> Vec<Event> {
        let early = std::mem::take(&mut self.early);
        self.come.fill(false);
        for event in &early {
            if let Event::Heard(trainer, FromTrainer::Came { .. }) = event {
                self.come[*trainer] = true;
            }
        }
        early
    }

    /// What trainers have said since the last time, and who is gone.
    fn listen(&mut self, inboxes: &mut [Inbox]) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for (trainer, inbox) in inboxes.iter_mut().enumerate() {
            let peer = Rank(trainer as u32 + 1);
            while !self.shut_out[trainer] {
                let frame = match self.transport.poll(peer) {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(WireError::Gone { .. }) => {
                        // Said once; it may come back over another link.
                        if !std::mem::replace(&mut self.gone[trainer], true) {
                            events.push(Event::Lost(trainer));
                        }
                        break;
                    }
                    Err(error) => return Err(error.into()),
                };
                if std::mem::take(&mut self.gone[trainer]) || frame.tag() == Step::TrainerComes.tag(0) {
                    *inbox = Inbox::new(inbox.form());
                }
                if !self.transport.end().is_same_process(peer) {
                    self.from[trainer].record(frame.tag(), AGGREGATOR, frame.payload().len());
                }
                if frame.tag() == Step::TrainerSent.tag(0) {
                    self.sent_besides[trainer] = Some(frame.payload().to_vec());
                    continue;
                }
                self.come[trainer] |= frame.tag() == Step::TrainerComes.tag(0);
                if !self.come[trainer] && frame.tag() != Step::TrainerLeaves.tag(0) {
                    // A model for a stage that has ended meanwhile.
                    continue;
                }
                match inbox.of_trainer(&frame) {
                    Ok(None) => {}
                    Ok(Some(said)) => {
                        if let FromTrainer::Bye(leave) = &said {
                            self.leaves[trainer] = Some(*leave);
                        }
                        events.push(Event::Heard(trainer, said));
                    }
                    // Who says something else is none of us, and the others go on without it.
                    Err(_) => {
                        self.shut_out[trainer] = true;
                        events.push(Event::Lost(trainer));
                    }
                }
            }
        }
        Ok(events)
    }

    /// Writes down what has crossed.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write_down(&mut self, run_recorder: &mut RunRecorder) -> Result<()> {
        if run_recorder.ledgers.are_written() {
            let [sent, _] = self.transport.take_accounts();
            run_recorder
                .ledgers
                .append(std::iter::once(sent).chain(self.from.iter_mut().map(Ledger::take_accounts)))?;
        }
        Ok(())
    }

    fn send(&mut self, trainer: usize, said: &ToTrainer) -> Result<()> {
        let peer = Rank(trainer as u32 + 1);
        for frame in frames_to_trainer(said) {
            match self.transport.send(peer, frame) {
                // It is seen where it is listened to.
                Ok(()) | Err(WireError::Gone { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Hands a stage that had been finished before the run was resumed on to its trainers.
    ///
    /// # Errors
    /// If the user gives up, or nobody comes.
    pub fn pass(&mut self, setup: &Setup, stage: usize, chosen: &[f32]) -> Result<()> {
        let (model, began): (Model, Instant) = (chosen.into(), Instant::now());
        let form = Form::of(Changes::of(&setup.plan, stage, AGGREGATOR)?.as_ref(), chosen.len());
        let mut inboxes: Vec<Inbox> = self.gone.iter().map(|_| Inbox::new(form)).collect();
        let mut left = vec![false; self.gone.len()];
        let mut heard = self.begin_stage();
        while !left.iter().zip(&self.gone).all(|(left, gone)| *left || *gone) {
            self.check()?;
            if began.elapsed() > setup.config.start_deadline() {
                break;
            }
            heard.extend(self.listen(&mut inboxes)?);
            for event in heard.drain(..) {
                match event {
                    // It has been told already, and comes to the next stage.
                    Event::Heard(trainer, FromTrainer::Came { .. }) if left[trainer] => self.early.push(event),
                    Event::Heard(trainer, FromTrainer::Came { .. }) => {
                        self.send(trainer, &ToTrainer::End { chosen: Some(model.clone()) })?;
                    }
                    Event::Heard(trainer, FromTrainer::Bye(_)) => left[trainer] = true,
                    _ => {}
                }
            }
            std::thread::sleep(REST);
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.give_up.is_set() {
            let tag = Step::TrainerComes.tag(0);
            return Err(WireError::Interrupted { rank: AGGREGATOR, peer: Rank(1), tag }.into());
        }
        Ok(())
    }

    /// Leads a stage to its end.
    ///
    /// # Errors
    /// If a mean cannot be judged or written down, or the user gives up.
    pub fn lead(
        &mut self,
        setup: &Setup,
        worker: &mut Worker,
        at: StageRun<'_>,
        inputs: StageInputs,
        run_recorder: &mut RunRecorder,
        hands_on: bool,
    ) -> Result<Ending> {
        let terms = setup.terms(at.index);
        let changes = Changes::of(&setup.plan, at.index, AGGREGATOR)?;
        let (ask, asked) = channel();
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let (choose, chosen) = channel::<Option<(Vec<f32>, u32)>>();
            let judging = std::thread::Builder::new().name("judge".to_owned()).spawn_scoped(scope, move || {
                let mut judge = match MeansJudge::new(worker, at, inputs) {
                    Ok(judge) => judge,
                    Err(error) => {
                        let _ = tell.send(Told::Failed(error));
                        return Ok(());
                    }
                };
                serve_evaluations(&mut judge, terms.corrections, &asked, &tell);
                match chosen.recv() {
                    Ok(Some((chosen, rounds))) => judge.hand_on(&chosen, rounds),
                    _ => {
                        judge.dismiss();
                        Ok(())
                    }
                }
            });
            let judging = judging.map_err(|source| TrainError::io("thread of the judge", source))?;
            let (waiting, lanes) = (VecDeque::new(), vec![Lane::default(); terms.trainers]);
            let later = self.begin_stage();
            let leading = Leading { server: self, terms, run_recorder, ask, told, waiting, busy: 0, later, lanes };
            let led = leading.run(changes, hands_on).and_then(|ending| {
                let goes_on = hands_on && matches!(ending, Ending::Limit | Ending::Patience);
                run_recorder.recorder.observer().stands(if goes_on { Stand::Prepares } else { Stand::Ends });
                let of_stage = goes_on.then(|| run_recorder.finish_stage()).transpose()?;
                of_stage.as_ref().map_or(Ok(()), |of_stage| self.dismiss(terms.trainers, of_stage))?;
                let rounds = run_recorder.rounds_of_finished();
                let _ = choose.send(of_stage.map(|of_stage| (of_stage, rounds)));
                Ok(ending)
            });
            // Nothing was chosen where the stage has failed: then the judge waits for nobody.
            drop(choose);
            // A judge that has panicked is why the stage has no verdicts.
            judging.join().unwrap_or_else(|panic| Err(crate::run::panic::panicked(0, panic.as_ref())))?;
            led
        })
    }

    /// Tells all that the stage is over, and what was chosen for the next.
    fn dismiss(&mut self, trainers: usize, chosen: &[f32]) -> Result<()> {
        let model: Model = chosen.into();
        (0..trainers).try_for_each(|trainer| self.send(trainer, &ToTrainer::End { chosen: Some(model.clone()) }))
    }
}

/// A stage under way.
struct Leading<'a> {
    server: &'a mut AggregatorServer,
    terms: Terms,
    run_recorder: &'a mut RunRecorder,
    ask: Sender<Asked>,
    told: Receiver<Told>,
    /// What the judge is to be asked when it is free.
    waiting: VecDeque<Asked>,
    /// How many questions it has not answered.
    busy: usize,
    /// What has happened while something was done.
    later: Vec<Event>,
    /// What trainers do, as it looks from here.
    lanes: Vec<Lane>,
}

impl Leading<'_> {
    fn run(mut self, changes: Option<Changes>, hands_on: bool) -> Result<Ending> {
        let began = Instant::now();
        // Of a run that begins it is the initial model.
        let model: Model = self.run_recorder.progress.parameters.as_slice().into();
        let form = Form::of(changes.as_ref(), model.len());
        let machine = Aggregator::new(self.terms, &self.run_recorder.reached(), changes, model, Duration::ZERO);
        let mut machine = if hands_on { machine.handing_on() } else { machine };
        let mut inboxes: Vec<Inbox> = (0..self.terms.trainers).map(|_| Inbox::new(form)).collect();
        let mut stopped = false;
        loop {
            self.server.check()?;
            self.run_recorder.stands();
            let mut events = std::mem::take(&mut self.later);
            events.extend(self.server.listen(&mut inboxes)?);
            events.extend(self.verdicts(began)?);
            if !stopped && self.run_recorder.is_stopped() {
                stopped = true;
                events.push(Event::Stopped);
            }
            if events.is_empty() {
                if machine.wakes().is_none_or(|at| began.elapsed() < at) {
                    std::thread::sleep(REST);
                    continue;
                }
                events.push(Event::Tick);
            }
            for event in events {
                self.note(began.elapsed(), &event);
                for action in machine.on(began.elapsed(), event) {
                    if let Some(ending) = self.act(began, action)? {
                        let end = began.elapsed();
                        let lanes: Vec<_> = self.lanes.into_iter().map(|lane| lane.ends(end)).collect();
                        self.run_recorder.note_lanes(&lanes);
                        return Ok(ending);
                    }
                }
            }
        }
    }

    /// What an event says of what a trainer does from now on.
    fn note(&mut self, now: Duration, event: &Event) {
        let (trainer, doing) = match event {
            Event::Heard(trainer, FromTrainer::Bye(_)) | Event::Lost(trainer) => (*trainer, Doing::Absent),
            Event::Heard(trainer, _) => (*trainer, Doing::Averaging),
            _ => return,
        };
        self.lanes[trainer].turn(now, doing);
    }

    /// What the judge has said since the last time.
    fn verdicts(&mut self, began: Instant) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            let told = match self.told.try_recv() {
                Ok(told) => told,
                Err(TryRecvError::Empty) => return Ok(events),
                Err(TryRecvError::Disconnected) => return Err(TrainError::config("nobody judges means any more")),
            };
            self.busy = self.busy.saturating_sub(1);
            match told {
                Told::Verdict(number, evaluated, worth) => {
                    self.run_recorder.judged(began.elapsed(), number, &evaluated)?;
                    events.push(Event::Judged(number, worth));
                }
                Told::NoVerdict(number) => {
                    self.run_recorder.stays_unjudged(number)?;
                    events.push(Event::Unjudged(number));
                }
                Told::Corrected(model) => events.push(Event::Corrected(model.into())),
                Told::Failed(error) => return Err(error),
            }
            self.ask_next();
        }
    }

    fn ask_next(&mut self) {
        while self.busy == 0
            && let Some(question) = self.waiting.pop_front()
        {
            // A judge that is gone has said why.
            let _ = self.ask.send(question);
            self.busy += 1;
        }
    }

    fn act(&mut self, began: Instant, action: Action) -> Result<Option<Ending>> {
        match action {
            Action::Begin => self.run_recorder.began(began.elapsed()),
            Action::Say(trainer, said) => {
                if let ToTrainer::Go { .. } = said {
                    self.lanes[trainer].turn(began.elapsed(), Doing::Working);
                }
                self.server.send(trainer, &said)?;
            }
            Action::Keep(kept) => {
                let sent =
                    self.server.transport.sent().total().framed + self.server.transport.received().total().framed;
                // A checkpoint knows what is listed when it is written.
                self.server.write_down(self.run_recorder)?;
                self.run_recorder.kept(began.elapsed(), &kept, sent)?;
            }
            Action::Judge(number, model) => {
                if matches!(self.terms.interval, Pace::Time(_)) {
                    // Means that were taken while another was judged are not judged themselves, but for the latest.
                    self.waiting.retain(|question| match question {
                        Asked::Judge(number, _) => {
                            self.run_recorder.goes_unjudged(*number);
                            false
                        }
                        Asked::Correct(..) => true,
                    });
                }
                self.waiting.push_back(Asked::Judge(number, model));
                self.ask_next();
                // By steps all are judged, and no more of them are kept than that.
                while self.waiting.len() > WAITING_MAX && !self.server.give_up.is_set() {
                    std::thread::sleep(REST);
                    self.run_recorder.stands();
                    let events = self.verdicts(began)?;
                    self.later.extend(events);
                }
            }
            Action::Correct(number, model, share) => {
                // All trainers wait for it, and for verdicts nobody.
                self.waiting.push_front(Asked::Correct(number, model, share));
                self.ask_next();
            }
            Action::Note(trainer, what) => self.run_recorder.noted(began.elapsed(), trainer, what),
            Action::Finish(ending) => return Ok(Some(ending)),
        }
        Ok(None)
    }
}
