//! Folders as they are named on the command line.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

/// Reads the name of a folder; an empty one names nothing.
pub fn folder() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name: OsString| match name.is_empty() {
        true => Err("expected the name of a folder, found nothing"),
        false => Ok(PathBuf::from(name)),
    })
}

/// The same folder without `..`, and with a name, which the current folder's `.` is not: the folder may have to be
/// moved aside, and `x/..` leads nowhere as long as there is no `x`.
pub fn named(folder: &Path) -> std::io::Result<PathBuf> {
    if folder.file_name().is_some() && !folder.components().any(|part| part == Component::ParentDir) {
        return Ok(folder.to_owned());
    }
    let mut path = PathBuf::new();
    for part in std::path::absolute(folder)?.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                // Behind a link, the folder above is not the one before it in the path.
                path = std::fs::canonicalize(&path).unwrap_or(path);
                path.pop();
            }
            other => path.push(other),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_names_and_lead_nowhere_up() {
        let current = std::env::current_dir().unwrap();
        for (typed, found) in [
            ("runs/x", PathBuf::from("runs/x")),
            (".", current.clone()),
            ("nosuch/..", current.clone()),
            ("./nosuch/../x", current.join("x")),
            ("/nosuch/../../x", PathBuf::from("/x")),
        ] {
            assert_eq!(named(Path::new(typed)).unwrap(), found, "{typed}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_above_a_link_is_that_above_what_it_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let place = std::fs::canonicalize(place.path()).unwrap();
        std::fs::create_dir_all(place.join("a/b")).unwrap();
        std::os::unix::fs::symlink(place.join("a/b"), place.join("link")).unwrap();
        assert_eq!(named(&place.join("link/../c")).unwrap(), place.join("a/c"));
    }
}
