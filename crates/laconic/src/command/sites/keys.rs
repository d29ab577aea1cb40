//! Where a site's keys and its policy are kept.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Result;
use laconic_federation::{Contract, SiteKey};
use laconic_train::TrainError;

use super::unusable;

/// The folder of keys where the command line names none: `laconic` in the user's folder of configurations.
pub fn folder(asked: Option<&Path>) -> Result<PathBuf> {
    let of = |variable: &str, below: &str| {
        std::env::var_os(variable).filter(|value| !value.is_empty()).map(|value| PathBuf::from(value).join(below))
    };
    let usual = || of("XDG_CONFIG_HOME", "laconic").or_else(|| of("HOME", ".config/laconic"));
    let usual = || usual().or_else(|| of("APPDATA", "laconic"));
    let folder = asked.map(Path::to_owned).or_else(usual);
    Ok(folder.ok_or_else(|| TrainError::config("there is no folder for keys here: name one with --keys"))?)
}

/// The file of a site's key.
pub fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.key"))
}

/// The number of the site in a contract whose key is in this folder, and the key.
///
/// # Errors
/// If there is none, there are several, or one cannot be read.
pub fn own(folder: &Path, contract: &Contract, name: Option<&str>) -> Result<(usize, SiteKey)> {
    let sites = contract.terms().sites.iter().enumerate();
    let here = sites.filter(|(_, site)| name.is_none_or(|name| site.name == name) && file(folder, &site.name).exists());
    let here: Vec<(usize, &str)> = here.map(|(rank, site)| (rank, site.name.as_str())).collect();
    let (rank, name) = match here[..] {
        [one] => one,
        [] => {
            let names: Vec<&str> = contract.terms().sites.iter().map(|site| site.name.as_str()).collect();
            let (names, folder) = (names.join(", "), folder.display());
            let what =
                format!("{folder} has no key of a site of this contract ({names}); `laconic site init` makes one");
            return Err(TrainError::config(what).into());
        }
        _ => {
            let names: Vec<&str> = here.iter().map(|(_, name)| *name).collect();
            let what = format!("{} has keys of {}: say with --site which this is", folder.display(), names.join(", "));
            return Err(TrainError::config(what).into());
        }
    };
    let path = file(folder, name);
    let key = SiteKey::read(&path).map_err(unusable)?;
    if contract.rank_of(&key.public()) != Some(rank) {
        let what = format!("{}: this is not the key that the contract has of {name}", path.display());
        return Err(TrainError::config(what).into());
    }
    Ok((rank, key))
}

/// Takes the right to be the site of a key, which one process of this machine has at a time: others would take a second
/// one for the first, started anew.
///
/// # Errors
/// If another process has it.
pub fn held(folder: &Path, name: &str) -> Result<File> {
    let path = file(folder, name);
    let key = File::open(&path).map_err(|source| TrainError::io(&path, source))?;
    match key.try_lock() {
        Ok(()) => Ok(key),
        Err(TryLockError::WouldBlock) => {
            let what = format!("{}: another process of this machine is {name} now", path.display());
            Err(TrainError::config(what).into())
        }
        Err(TryLockError::Error(source)) => Err(TrainError::io(&path, source).into()),
    }
}
