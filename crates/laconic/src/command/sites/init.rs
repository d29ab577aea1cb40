//! `laconic site init`

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use laconic_federation::{Card, SiteKey};
use laconic_train::TrainError;
use serde::Serialize;

use super::{keys, unusable};
use crate::output::Output;

/// What a site does once.
#[derive(Subcommand)]
pub enum Site {
    /// Make this site's key, and the card that the others get
    Init(Init),
}

/// Arguments of `site init`.
#[derive(Args)]
#[command(after_help = "Example: laconic site init north\n\
    Where others can reach this site: laconic site init north --address 192.0.2.7:7443\n\
    The key stays here; the card goes to whoever writes the contract.")]
pub struct Init {
    /// What this site is called: small letters, digits and -
    name: String,
    /// Where others can reach it, as 192.0.2.7:7443; none where all meet at a relay
    #[arg(long = "address", value_name = "IP:PORT")]
    addresses: Vec<SocketAddr>,
    /// The folder for the key (else laconic in your folder of configurations)
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// The card's file (else NAME.site.toml)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What was made.
#[derive(Serialize)]
struct Made {
    site: String,
    key: String,
    print: String,
    key_file: PathBuf,
    card: PathBuf,
}

/// Makes a key and a card; with a key that is there, the card anew.
pub fn run(command: Site, output: &Output) -> Result<u8> {
    let Site::Init(arguments) = command;
    let folder = keys::folder(arguments.keys.as_deref())?;
    let key_file = keys::file(&folder, &arguments.name);
    let (key, is_new) = match key_file.exists() {
        true => (SiteKey::read(&key_file).map_err(unusable)?, false),
        false => (SiteKey::new().map_err(unusable)?, true),
    };
    let card = Card::make(&arguments.name, arguments.addresses, &key).map_err(unusable)?;
    if is_new {
        std::fs::create_dir_all(&folder).map_err(|source| TrainError::io(&folder, source))?;
        key.write(&key_file).map_err(unusable)?;
    }
    let path = arguments.out.unwrap_or_else(|| card.file_name().into());
    card.write(&path).map_err(unusable)?;
    let public = key.public();
    let made = Made {
        site: arguments.name,
        key: public.to_string(),
        print: public.print(),
        key_file: key_file.clone(),
        card: path.clone(),
    };
    let whose = if is_new { "made" } else { "was there" };
    let text = format!(
        "key   {} ({whose}; it stays on this machine, and a copy of it in a safe)\ncard  {} (for whoever writes the \
         contract)\nprint {} (read it to them over the telephone)",
        key_file.display(),
        path.display(),
        made.print,
    );
    output.result(text, &made)?;
    Ok(0)
}
