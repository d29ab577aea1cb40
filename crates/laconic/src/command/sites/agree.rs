//! `laconic agree`: the contract that all sites of a run join.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use laconic_federation::{Card, Contract, Date, Terms, Time};
use laconic_train::config::Reach;
use laconic_train::{Config, Members, TrainError};
use serde::Serialize;

use super::{PROGRAM, WIRE, unusable};
use crate::command::train::RunFile;
use crate::output::Output;

/// How many days a contract may be joined where nobody says until when.
const DAYS: u64 = 90;

/// Keys of which everybody knows that they are a site's own.
const OWN: [&str; 2] = ["data.path", "out.dir"];

/// Arguments of `agree`.
#[derive(Args)]
#[command(after_help = "Example: laconic agree run.toml --site north.site.toml --site south.site.toml \\\n    \
    --relay https://relay.example.org\n\
    Each site then: laconic join run.contract.json --data PART")]
pub struct Agree {
    #[command(flatten)]
    run: RunFile,
    /// The card of each site, in the order of parts: the first has part 0
    #[arg(long = "site", value_name = "CARD", required = true)]
    cards: Vec<PathBuf>,
    /// A relay at which sites meet, as https://relay.example.org; without any they dial each other's addresses
    #[arg(long = "relay", value_name = "URL")]
    relays: Vec<String>,
    /// The run's name (else that of the configuration)
    #[arg(long)]
    name: Option<String>,
    /// The last day on which it may be joined, as 2027-03-31 (else 90 days from now)
    #[arg(long, value_name = "DATE")]
    expires: Option<Date>,
    /// The file to write (else NAME.contract.json)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What was agreed.
#[derive(Serialize)]
struct Agreed {
    contract: PathBuf,
    digest: String,
    run: String,
    sites: Vec<String>,
    local: Vec<String>,
}

/// Writes the contract.
pub fn run(arguments: Agree, output: &Output) -> Result<u8> {
    let config = arguments.run.load(output)?;
    refuse_what_sites_cannot(&config)?;
    let stem = arguments.run.file.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let usual = stem.replace(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit(), "-");
    let name = arguments.name.unwrap_or(usual);
    let cards = arguments.cards.iter().map(|path| Card::read(path).map_err(unusable)).collect::<Result<Vec<_>, _>>()?;
    let (shared, local) = shared(&config)?;
    let contract = Contract::make(Terms {
        run: name.clone(),
        expires: arguments.expires.unwrap_or_else(|| in_days(DAYS)),
        program: PROGRAM.to_owned(),
        wire: WIRE,
        config: shared,
        sites: cards.iter().map(|card| card.site().clone()).collect(),
        relays: arguments.relays,
    });
    let contract = contract.map_err(unusable)?;
    refuse_out_of_reach(&contract)?;
    let path = arguments.out.unwrap_or_else(|| format!("{name}.contract.json").into());
    contract.write(&path).map_err(unusable)?;
    let sites: Vec<String> = contract.terms().sites.iter().map(|site| site.name.clone()).collect();
    let mut text = format!(
        "{}\nsites  {}\ndigest {}\nbefore {} each site runs: laconic join {} --data PART",
        path.display(),
        sites.join(", "),
        contract.digest(),
        contract.terms().expires,
        path.display()
    );
    if !local.is_empty() {
        text += &format!("\nnote: {} are each site's own, and not in it", local.join(", "));
    }
    let digest = contract.digest().to_string();
    output.result(text, &Agreed { contract: path, digest, run: name, sites, local })?;
    Ok(0)
}

fn in_days(days: u64) -> Date {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default() + Duration::from_secs(days * 24 * 3600);
    Time::from_millis(i64::try_from(now.as_millis()).unwrap_or(i64::MAX)).date()
}

/// Refuses what workers at different sites cannot do.
fn refuse_what_sites_cannot(config: &Config) -> Result<()> {
    let members = Members::default();
    let refuse = |what: String| Err(TrainError::config(what).into());
    if config.is_several() {
        return refuse(format!("{}: a contract is about one run; name what is to be sent", config.several_by()));
    }
    if members.has_trainers(config)? {
        let kind = &config.schedule.kind;
        let what = "independent trainers have an aggregator, and sites have none; train.sync_every takes means of \
            models among workers";
        return refuse(format!("schedule.kind = {kind:?}: {what}"));
    }
    if !config.transport.shape.is_empty() {
        return refuse("transport.shape: sites have links of their own; take it off".to_owned());
    }
    Ok(())
}

/// Refuses sites that have neither a relay nor addresses.
fn refuse_out_of_reach(contract: &Contract) -> Result<()> {
    let terms = contract.terms();
    // Who comes later in the list dials, so the last one need not be reached.
    let dialled = terms.sites.iter().take(terms.sites.len().saturating_sub(1));
    let hidden: Vec<&str> = dialled.filter(|site| site.addresses.is_empty()).map(|site| site.name.as_str()).collect();
    if terms.relays.is_empty() && !hidden.is_empty() {
        let what = "there is no relay (--relay), and no address on the card of";
        return Err(TrainError::config(format!("{what} {}: nobody could dial them", hidden.join(", "))).into());
    }
    Ok(())
}

/// The keys that all sites share, as TOML, and the names of those that were said and are each site's own.
fn shared(config: &Config) -> Result<(String, Vec<String>)> {
    let members = Members::default();
    let mut table: toml::Table = members.to_toml(config)?.parse()?;
    let usual: toml::Table = members.to_toml(&Config::default())?.parse()?;
    let mut local = Vec::new();
    for key in Reach::Process.keys() {
        let Some((section, name)) = key.split_once('.') else { continue };
        let Some(toml::Value::Table(of)) = table.get_mut(section) else { continue };
        let said = of.remove(name);
        let is_usual = usual.get(section).and_then(|section| section.get(name)) == said.as_ref();
        if said.is_some() && !is_usual && !OWN.contains(&key) {
            local.push(key.to_owned());
        }
    }
    Ok((toml::to_string(&table)?, local))
}
