//! `laconic part build`

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use laconic_graph::limits::Limits;
use laconic_graph::part::{open_meta, write_part, write_parts};
use laconic_graph::site::{self, FromSite, Schema};
use laconic_train::TrainError;
use laconic_train::run::source::is_part_folder;
use schemars::JsonSchema;
use serde::Serialize;

use crate::command::place::folder;
use crate::output::Output;

const EXAMPLE: &str = "\
Nobody ever holds the whole graph: nodes of other sites are known by their ids alone (south/123). Edges that end at \
them are not used, since these sites have them in tables of their own. A folder that has other sites' parts already \
gets one more.

Example:
  laconic part build patients.csv referrals.csv --schema schema.toml --site north --out part-north";

/// From a site's tables to its part.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Build {
    /// The table of this site's nodes: CSV, TSV or Parquet
    nodes: PathBuf,
    /// Tables of edges, of which one end at least is this site's
    #[arg(required = true)]
    edges: Vec<PathBuf>,
    /// What all sites have agreed on: ids, columns, classes, split
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// Which of the schema's sites this is
    #[arg(long, value_name = "NAME")]
    site: String,
    /// The folder of the part
    #[arg(long, value_parser = folder())]
    out: PathBuf,
    /// Replace a folder that holds an older part of this site and nothing else
    #[arg(long)]
    force: bool,
}

/// The part that was built, in counts.
#[derive(Serialize, JsonSchema)]
pub struct Built {
    /// The folder.
    out: String,
    /// The site.
    site: String,
    /// The number of its part.
    part: u32,
    /// How many sites there are.
    parts: u32,
    /// Own nodes.
    nodes: u64,
    /// Directed edges that end at own nodes.
    edges: u64,
    /// Of these, the ones that start at nodes of other sites, by site.
    from: Vec<FromSite>,
    /// Directed edges that end at nodes of other sites, which are not used.
    elsewhere: u64,
    /// Edges from a node to itself, which were left out.
    self_loops: u64,
    /// Edges that were listed more than once.
    duplicates: u64,
    /// Feature columns.
    columns: usize,
    /// Own nodes with a label.
    labelled: u64,
    /// Own nodes of each class, by its name.
    #[schemars(extend("x-name" = "CLASS"))]
    classes: BTreeMap<String, u64>,
    /// Own nodes that train.
    train: u64,
    /// Own nodes that validate.
    val: u64,
    /// Own nodes that test.
    test: u64,
    /// Columns of the tables that the schema does not name, and nobody reads.
    unread: Vec<String>,
    /// A digest of the schema, the same at all sites.
    schema: String,
}

/// Builds the part and says what is in it.
pub(super) fn run(args: &Build, output: &Output) -> Result<u8> {
    let unusable = |error: laconic_graph::error::GraphError| TrainError::from(error);
    let schema = Schema::read(&args.schema).map_err(unusable)?;
    let path = args.schema.display();
    let number = schema.site(&args.site).map_err(|what| TrainError::config(format!("--site: {path}: {what}")))?;
    refuse_others(args, number)?;
    let waiting = output.begins(format!("reading {}", args.nodes.display()));
    let built = site::build(&schema, &args.site, &args.nodes, &args.edges, &Limits::default()).map_err(unusable)?;
    match args.force && is_part_folder(&args.out) {
        true => write_parts(&args.out, [&built.part], &built.provenance, true),
        false => write_part(&args.out, &built.part, &built.provenance),
    }
    .map_err(unusable)?;
    waiting.end();
    let said = Built::of(&args.out, &args.site, &built);
    output.result(said.text(), &said)?;
    Ok(0)
}

/// Refuses a folder that has the part already, or with `--force` one that has others' parts.
fn refuse_others(args: &Build, number: u32) -> Result<()> {
    if !is_part_folder(&args.out) {
        return Ok(());
    }
    let held: Vec<u32> = open_meta(&args.out).map_err(TrainError::from)?.files.into_keys().collect();
    let path = args.out.display();
    let refuse = |what: String| Err(TrainError::config(format!("--out {path} {what}")).into());
    match (args.force, held.as_slice()) {
        (false, held) if held.contains(&number) => refuse("holds this site's part already; --force replaces it".into()),
        (true, held) if held.iter().any(|&part| part != number) => {
            refuse("holds parts of other sites, which --force would remove".into())
        }
        _ => Ok(()),
    }
}

impl Built {
    fn of(out: &Path, site: &str, built: &site::Built) -> Built {
        let part = &built.part;
        let [train, val, test] = built.split();
        Built {
            out: out.display().to_string(),
            site: site.to_owned(),
            part: part.index,
            parts: part.parts,
            nodes: part.rows() as u64,
            edges: part.edges.edges() as u64,
            from: built.from.clone(),
            elsewhere: built.elsewhere,
            self_loops: built.removed.self_loops,
            duplicates: built.removed.duplicates,
            columns: part.global.columns,
            labelled: built.labelled(),
            classes: built.classes().into_iter().collect(),
            train,
            val,
            test,
            unread: built.unread.clone(),
            schema: part.global.schema.clone(),
        }
    }

    fn text(&self) -> String {
        let Built { out, site, part, parts, nodes, edges, elsewhere, columns, labelled, train, val, test, .. } = self;
        let mut text = format!("{out}: part {part} of {parts}, of {site}\n{nodes} own nodes, {edges} edges");
        for FromSite { site, edges, nodes } in &self.from {
            let _ = write!(text, ", of which {edges} start at {nodes} nodes of {site}");
        }
        let _ = write!(text, "; {elsewhere} edges end elsewhere (not used)");
        if self.self_loops + self.duplicates > 0 {
            let _ = write!(text, "\nleft out: {} loops, {} repeated edges", self.self_loops, self.duplicates);
        }
        let share = 100.0 * *labelled as f64 / (*nodes).max(1) as f64;
        let classes = self.classes.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ");
        let _ = write!(text, "\n{columns} feature columns; {share:.1} % labelled: {classes}");
        let _ = write!(text, "\nsplit: train {train}, val {val}, test {test}");
        if !self.unread.is_empty() {
            let _ = write!(text, "\nnot read, since the schema does not name them: {}", self.unread.join(", "));
        }
        let _ = write!(text, "\nschema {}", self.schema);
        text
    }
}
