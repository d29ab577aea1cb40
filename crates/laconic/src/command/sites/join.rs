//! `laconic join`: this site's part of a run.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use laconic_federation::{
    Agreement, AuditLog, Contract, Crossing, Decision, Direction, Entry, Gate, Policy, SiteKey, Time, Way,
};
use laconic_graph::part::{open_meta, parts_here};
use laconic_train::run::Data;
use laconic_train::run::source::Source;
use laconic_train::{Config, Members, Options, TrainError, run_worker};
use laconic_wire::transport::Patience;
use laconic_wire::transport::guarded::Guarded;
use laconic_wire::transport::sites::{IDLE, LinkStatus, Meeting, Paths, Site, SitesTransport};
use laconic_wire::{Content, DenyList, FramePurpose, Rank};
use serde::Serialize;

use super::ended::{Joined, digest};
use super::guard::{Record, SiteGuard};
use super::vocabulary::Names;
use super::{PROGRAM, WIRE, keys, unusable};
use crate::bytes::human_bytes;
use crate::command::place::folder;
use crate::command::signals::{STOPPED, Signals};
use crate::output::Output;
use crate::progress::Progress;
use crate::waiting::reading;

/// The log in the folder of a run, and the signatures under its contract.
const AUDIT: &str = "audit.jsonl";
const CONTRACT: &str = "run.contract.json";

/// How much of a digest has to be typed to approve it.
const DIGITS: usize = 8;

/// Arguments of `join`.
#[derive(Args)]
#[command(after_help = "Example: laconic join run.contract.json --data part-north\n\
    It says what will leave, asks, meets the other sites, trains, and leaves a model and a log in the run's folder.\n\
    Without a terminal: --approve DIGEST, as `laconic agree` has printed it.")]
pub struct Join {
    /// The contract, as `laconic agree` has written it
    contract: PathBuf,
    /// This site's part, a part folder
    #[arg(long, value_name = "PART")]
    data: PathBuf,
    /// The run's folder (else runs/NAME-SITE)
    #[arg(long, value_parser = folder())]
    out: Option<PathBuf>,
    /// This site's own policy (else policy.toml beside the key; else means of models alone may leave)
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The folder of this site's key (else laconic in your folder of configurations)
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// Which site this is, where the folder has keys of several
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// Approve the contract of this digest without being asked; eight digits are enough
    #[arg(long, value_name = "DIGEST")]
    approve: Option<String>,
    /// Which ways frames may take (else relay where the contract names one, and direct where not)
    #[arg(long)]
    paths: Option<Ways>,
    /// The address to listen on (else the port of this site's address in the contract)
    #[arg(long, value_name = "IP:PORT")]
    bind: Option<SocketAddr>,
    /// Compute threads (else all cores)
    #[arg(long)]
    threads: Option<usize>,
    /// Seconds that a site may be out of reach before the run ends
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    reconnect: u64,
    /// Go on from the checkpoint in the run's folder
    #[arg(long)]
    resume: bool,
    /// Say what would leave, and end
    #[arg(long)]
    explain: bool,
}

/// Which ways frames may take.
#[derive(Clone, Copy, ValueEnum)]
enum Ways {
    /// Through a relay alone
    Relay,
    /// Between the sites alone
    Direct,
    /// Directly where that can be, else through a relay
    Any,
}

/// What threats the program knows of, in a few lines.
const THREATS: &str = "\
who takes part is known by a key, and sees what is listed above: nobody guards against what a member makes of it
a relay sees sizes and times alone; what is said is encrypted from site to site
not covered: poisoned data or models, sites that work together, a site's own administrator, what the model itself
tells";

/// What is to leave towards one site.
#[derive(Serialize)]
struct Leaving {
    to: String,
    content: String,
    purpose: String,
    words: String,
    bytes: u64,
}

/// Joins a run.
pub fn run(arguments: Join, output: &Output) -> Result<u8> {
    let here = Here::of(&arguments)?;
    if let (Some(Ways::Relay), []) = (arguments.paths, &here.contract.terms().relays[..]) {
        return Err(TrainError::config("--paths relay: the contract names no relay").into());
    }
    if !arguments.explain {
        here.refuse_unapproved(arguments.approve.as_deref())?;
    }
    let (config, leaving, total) = here.look(&arguments, output)?;
    if arguments.explain {
        output.result(format!("{}\n{THREATS}", said(&here, &leaving, total)), &leaving)?;
        return Ok(0);
    }
    if !approved(&arguments, &said(&here, &leaving, total), output)? {
        output.say("not approved; nothing was sent");
        return Ok(STOPPED);
    }
    here.work(&arguments, &config, output)
}

/// A site and the contract that it joins.
struct Here {
    contract: Contract,
    rank: usize,
    key: SiteKey,
    policy: Policy,
    names: Vec<String>,
}

impl Here {
    fn of(arguments: &Join) -> Result<Here> {
        let contract = Contract::read(&arguments.contract).map_err(unusable)?;
        contract.check(Time::now(), PROGRAM, WIRE).map_err(unusable)?;
        let folder = keys::folder(arguments.keys.as_deref())?;
        let (rank, key) = keys::own(&folder, &contract, arguments.site.as_deref())?;
        let beside = folder.join("policy.toml");
        let path = arguments.policy.clone().or_else(|| beside.exists().then_some(beside));
        let policy = Names::all().lend(|vocabulary| match path {
            Some(path) => Policy::read(path, vocabulary),
            None => Policy::parse(&Policy::template(vocabulary), vocabulary),
        });
        let policy = policy.map_err(unusable)?;
        policy.admits(&contract.terms().run, Time::now().date()).map_err(denied)?;
        let names = contract.terms().sites.iter().map(|site| site.name.clone()).collect();
        Ok(Here { contract, rank, key, policy, names })
    }

    /// Refuses to go on where nobody can approve, or somebody has approved of something else.
    fn refuse_unapproved(&self, approved: Option<&str>) -> Result<()> {
        let digest = self.contract.digest().to_string();
        let refuse = |what: String| Err(TrainError::config(what).into());
        match approved {
            Some(approved) => {
                let [all, typed] = [digest.as_str(), approved].map(|text| text.strip_prefix("blake3:").unwrap_or(text));
                if typed.len() >= DIGITS && all.starts_with(typed) {
                    return Ok(());
                }
                let what = format!("the contract has the digest {digest}: expected {DIGITS} digits of it or more");
                refuse(format!("--approve {approved}: {what}"))
            }
            None if !std::io::stdin().is_terminal() => {
                refuse(format!("nobody is here to approve the contract: name its digest with --approve ({digest})"))
            }
            None => Ok(()),
        }
    }

    fn name(&self) -> &str {
        &self.names[self.rank]
    }

    /// The configuration as it is run here, and what will leave: refused before anybody is met where the policy does
    /// not allow it.
    fn look(&self, arguments: &Join, output: &Output) -> Result<(Config, Vec<Leaving>, u64)> {
        let members = Members::default();
        let config = self.config(arguments, &members)?;
        let meta = open_meta(&arguments.data).map_err(TrainError::from)?;
        if !parts_here(&arguments.data, &meta).contains(&(self.rank as u32)) {
            let path = arguments.data.display();
            let what = format!("{path} has not part {}, which is that of {}", self.rank, self.name());
            return Err(TrainError::config(what).into());
        }
        let waiting = output.begins(reading(&config.data));
        let costs = laconic_train::plan(&members, &config, Data::Configured)?;
        drop(waiting);
        let sites = self.names.len();
        if costs.size() != sites {
            let (parts, path) = (costs.size(), arguments.data.display());
            return Err(
                TrainError::config(format!("{path} is one of {parts} parts, and {sites} sites take part")).into()
            );
        }
        let own = costs.workers.iter().zip(&costs.leaves).find(|((shapes, ..), _)| shapes.rank as usize == self.rank);
        let ((_, ledger, _), own) = own.ok_or_else(|| {
            let path = arguments.data.display();
            TrainError::config(format!("{path} has not part {}, which is that of {}", self.rank, self.name()))
        })?;
        let mut leaving = Vec::new();
        for one in own {
            let crossing = Crossing {
                way: Way::Out,
                peer: &self.names[one.to.index()],
                content: one.item.what.content().name(),
                purpose: one.item.purpose().name(),
                layer: one.item.layer,
                direction: match one.item.what.content() {
                    Content::RowGradients => Direction::Reverse,
                    _ => Direction::Forward,
                },
                bytes: one.count.framed,
            };
            if let Decision::Denied { why } = self.policy.decide(&crossing) {
                let what = one.item.words(one.nodes, costs.plan.task);
                return Err(denied(format!("{what}: {why}")).into());
            }
            leaving.push(Leaving {
                to: crossing.peer.to_owned(),
                content: crossing.content.to_owned(),
                purpose: crossing.purpose.to_owned(),
                words: one.item.words(one.nodes, costs.plan.task),
                bytes: crossing.bytes,
            });
        }
        Ok((config, leaving, ledger.total().framed))
    }

    /// The shared configuration with what is this site's own.
    fn config(&self, arguments: &Join, members: &Members) -> Result<Config> {
        let text = |path: &Path| toml::Value::String(path.display().to_string()).to_string();
        let out = arguments
            .out
            .clone()
            .unwrap_or_else(|| Path::new("runs").join(format!("{}-{}", self.contract.terms().run, self.name())));
        let mut own = vec![format!("data.path={}", text(&arguments.data)), format!("out.dir={}", text(&out))];
        own.extend(arguments.threads.map(|threads| format!("train.threads={threads}")));
        let leave = self.leave();
        if !leave.is_empty() {
            let leave: Vec<String> = leave.iter().map(|name| format!("\"{name}\"")).collect();
            own.push(format!("policy.allow=[{}]", leave.join(", ")));
        }
        let config = members.parse(&self.contract.terms().config, &own);
        Ok(config.map_err(|error| TrainError::config(format!("{}: {error}", arguments.contract.display())))?)
    }

    /// Contents that this site's policy lets leave towards every other: those that are sent with leave alone have it.
    fn leave(&self) -> Vec<&'static str> {
        let to = |content: Content, peer: &str| {
            let crossing = Crossing {
                way: Way::Out,
                peer,
                content: content.name(),
                purpose: FramePurpose::StartUp.name(),
                layer: 0,
                direction: Direction::Forward,
                bytes: 0,
            };
            self.policy.decide(&crossing).is_allowed()
        };
        let others = || self.names.iter().enumerate().filter(|(rank, _)| *rank != self.rank).map(|(_, name)| name);
        let all = Content::ALL.into_iter();
        let always = DenyList::always();
        all.filter(|content| !always.contains(content) && others().all(|peer| to(*content, peer)))
            .map(Content::name)
            .collect()
    }

    /// Meets the others and trains.
    fn work(&self, arguments: &Join, config: &Config, output: &Output) -> Result<u8> {
        let _held = keys::held(&keys::folder(arguments.keys.as_deref())?, self.name())?;
        let signals = Signals::install(false)?;
        let out = config.out.dir.clone();
        let mut patience = Patience::new(config.start_deadline());
        patience.add_interrupt(signals.abort.clone());
        patience.add_interrupt(signals.interrupt.clone());
        let mut agreement = Agreement::new(&self.contract);
        agreement.sign(&self.key).map_err(unusable)?;
        output.say(format!("{} waits for {}", self.name(), self.others().join(", ")));
        let meeting = self.meeting(arguments, agreement.text().into_bytes());
        let transport = SitesTransport::join(meeting, &patience, config.deadline()).map_err(TrainError::from)?;
        for word in transport.words().iter().filter(|word| !word.is_empty()) {
            agreement.add(&String::from_utf8_lossy(word)).map_err(unusable)?;
        }
        agreement.verify().map_err(unusable)?;
        output.say("all sites are here, and have signed");
        let mut gate = Gate::new(self.policy.clone());
        let record = Arc::new(Mutex::new(self.record(arguments, &agreement, &out, &mut gate)?));
        let links = transport.watch();
        self.connected(&record, &links())?;
        let guard = SiteGuard::new(gate, self.names.clone(), record.clone());
        let guarded = Guarded::new(Box::new(transport), Box::new(guard));
        let options = Options {
            out: Some(out.clone()),
            own_folder: true,
            resume: arguments.resume,
            interrupt: signals.interrupt.clone(),
            abort: signals.abort.clone(),
            observer: Box::new(Progress::new(output, crate::waiting::Waiting::nothing())),
            ..Options::default()
        };
        let source = Source::open(&options.members, config, Some(self.names.len() as u32))?;
        let ended = run_worker(config, Box::new(guarded), source, options);
        let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = ended.map_err(|error| explained(error, record.stopped.take(), &self.names));
        let code = match &ended {
            Ok(outcome) if outcome.trained.interrupted => STOPPED,
            Ok(_) => 0,
            Err(error) => crate::class(error).0,
        };
        if let Some(mut log) = record.log.take() {
            match &ended {
                Ok(outcome) if code == 0 => log.close(code, Some(digest(outcome))),
                // The run may go on, and its log with it.
                _ => log.checkpoint(),
            }
            .map_err(unusable)?;
        }
        let joined = Joined::of((&self.contract, self.name()), &ended?, &links(), out);
        output.result(joined.said(), &joined)?;
        Ok(code)
    }

    fn others(&self) -> Vec<String> {
        let others = self.names.iter().enumerate().filter(|(rank, _)| *rank != self.rank);
        others.map(|(_, name)| name.clone()).collect()
    }

    fn meeting(&self, arguments: &Join, word: Vec<u8>) -> Meeting {
        let terms = self.contract.terms();
        let sites = terms.sites.iter().map(|site| Site {
            name: site.name.clone(),
            key: *site.key.as_bytes(),
            addresses: site.addresses.clone(),
        });
        // Behind a router this machine has another address than the others know.
        let own = terms.sites[self.rank].addresses.first().map(|address| match address.ip() {
            ip if ip.is_loopback() => *address,
            IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()),
            IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port()),
        });
        Meeting {
            rank: Rank(self.rank as u32),
            seed: self.key.seed(),
            sites: sites.collect(),
            relays: terms.relays.clone(),
            paths: match arguments.paths {
                Some(Ways::Relay) => Paths::Relay,
                Some(Ways::Direct) => Paths::Direct,
                Some(Ways::Any) => Paths::Any,
                None if terms.relays.is_empty() => Paths::Direct,
                None => Paths::Relay,
            },
            bind: arguments.bind.or(own),
            agreement: *self.contract.digest().as_bytes(),
            word,
            idle: IDLE,
            reconnect: Duration::from_secs(arguments.reconnect),
        }
    }

    /// Begins the log, or goes on with it, in a folder that is there from now on, beside the contract and what all have
    /// signed. The gate counts what has crossed before.
    fn record(&self, arguments: &Join, agreement: &Agreement, out: &Path, gate: &mut Gate) -> Result<Record> {
        std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
        let path = out.join(AUDIT);
        let log = match arguments.resume {
            true => {
                let mut seen = |entry: &Entry| {
                    if let Entry::Crossing(passed) = entry {
                        gate.pass(&passed.crossing);
                    }
                };
                let reopened = AuditLog::reopen(&path, &self.key, &self.contract, &self.policy, &mut seen);
                reopened.map_err(unusable)?.log
            }
            false => AuditLog::create(&path, &self.key, &self.contract, &self.policy).map_err(unusable)?,
        };
        let contract = out.join(CONTRACT);
        self.contract.write(&contract).map_err(unusable)?;
        agreement.write(Agreement::path(&contract)).map_err(unusable)?;
        Ok(Record { log: Some(log), stopped: None })
    }

    fn connected(&self, record: &Mutex<Record>, links: &[LinkStatus]) -> Result<()> {
        let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(log) = &mut record.log else { return Ok(()) };
        for (rank, (peer, link)) in self.names.iter().zip(links).enumerate() {
            if rank != self.rank {
                log.write(&Entry::Link { peer, path: &link.path, connected: true }).map_err(unusable)?;
            }
        }
        Ok(())
    }
}

/// What will leave, in words.
fn said(here: &Here, leaving: &[Leaving], total: u64) -> String {
    let mut text = format!(
        "{} of {}, contract {}\n{} will leave {} in all, or less:",
        here.contract.terms().run,
        here.names.join(", "),
        here.contract.digest().short(),
        human_bytes(total),
        here.name(),
    );
    for to in here.others() {
        text += &format!("\n  to {to}");
        for one in leaving.iter().filter(|one| one.to == to) {
            text += &format!("\n    {:>12}  {}", human_bytes(one.bytes), one.words);
        }
    }
    text
}

/// Whether whoever runs this approves of the contract.
fn approved(arguments: &Join, said: &str, output: &Output) -> Result<bool> {
    if arguments.approve.is_some() {
        output.say(said);
        return Ok(true);
    }
    use std::io::{BufRead, Write};
    eprint!("{said}\napprove? [yes/no] ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "yes"))
}

/// What a policy does not allow, as an error with its exit code.
fn denied(what: impl std::fmt::Display) -> crate::command::Failure {
    crate::command::Failure { text: format!("policy: {what}"), code: 7 }
}

/// An error of a run with the names of sites, and with what the guard has stopped.
fn explained(error: TrainError, stopped: Option<String>, names: &[String]) -> anyhow::Error {
    let code = error.exit_code();
    if let (Some(why), TrainError::Denied(_)) = (stopped, &error) {
        return denied(why).into();
    }
    match &error {
        TrainError::Wire(_) | TrainError::Denied(_) | TrainError::Start { .. } => {
            let sites: Vec<String> = names.iter().enumerate().map(|(rank, name)| format!("{rank} {name}")).collect();
            let text = format!("{error} (sites by rank: {})", sites.join(", "));
            anyhow!(crate::command::Failure { text, code })
        }
        _ => error.into(),
    }
}
