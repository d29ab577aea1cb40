//! What somebody has probably named in place of what a command reads: data for a configuration, a configuration for
//! data, a folder of ours for either.

use std::path::Path;

use laconic_graph::error::GraphError;
use laconic_graph::limits::read_file;
use laconic_graph::read::READERS;
use laconic_train::TrainError;
use laconic_train::run::source::is_part_folder;

/// Bytes of a file that is looked into at most.
const BYTES_MAX: u64 = 1 << 20;

/// The same error of reading a configuration, or what the path is instead of one.
pub fn in_place_of_a_configuration(path: &Path, error: TrainError) -> TrainError {
    let shown = path.display();
    if is_folder_of_a_run(path) {
        let again = format!("`laconic train {shown}/config.toml --out DIR` runs it again");
        let what =
            format!("expected a file, found the folder of a run; `laconic resume {shown}` goes on with it, {again}");
        return TrainError::config(format!("{shown}: {what}"));
    }
    let is_data = READERS.iter().any(|reader| reader.recognises(path));
    let found = match (path.is_dir(), path.is_file()) {
        (true, _) if is_part_folder(path) => "a folder of parts",
        (true, _) if is_data => "a dataset",
        (false, true) if is_data && !is_toml(path) => "a dataset",
        _ => return error,
    };
    let lines = format!("  [data]\n  path = {:?}", path.display().to_string());
    let what = format!("expected a configuration, found {found}; write a file run.toml that names it,\n{lines}");
    TrainError::config(format!("{shown}: {what}\nand give that: `laconic keys` lists what else it may say"))
}

/// Refuses a folder or file that no reader recognises and that is something else of ours, with what it is.
pub fn refuse_in_place_of_data(path: &Path) -> Result<(), GraphError> {
    let refuse =
        |place: &str, found: &str| Err(GraphError::format(path, place, format!("expected a dataset, {found}")));
    if is_part_folder(path) {
        return refuse("folder", "found a folder of parts that `laconic partition` has cut");
    }
    if is_folder_of_a_run(path) {
        return refuse("folder", "found the folder of a run; its config.toml names the data");
    }
    if path.extension().is_some_and(|extension| extension == "toml") && path.is_file() {
        let named = data_of(path).map(|data| format!(", here {data:?}")).unwrap_or_default();
        return refuse("input", &format!("found a configuration; its key data.path names the data{named}"));
    }
    Ok(())
}

fn is_folder_of_a_run(path: &Path) -> bool {
    path.is_dir() && path.join("config.toml").is_file()
}

fn table(path: &Path) -> Option<toml::Table> {
    String::from_utf8(read_file(path, BYTES_MAX).ok()?).ok()?.parse().ok()
}

fn is_toml(path: &Path) -> bool {
    table(path).is_some()
}

/// The data that a configuration names.
fn data_of(path: &Path) -> Option<String> {
    Some(table(path)?.get("data")?.get("path")?.as_str()?.to_owned())
}
