//! `laconic keys`: what a configuration may say.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::Args;
use laconic_train::Members;
use laconic_train::config::{KEYS, KeyDoc, schema};
use laconic_wire::LINKS;
use laconic_wire::transport::link::NamedLink;
use schemars::JsonSchema;
use serde::Serialize;

use super::compare::methods_of_papers;
use crate::output::Output;

/// Arguments of `keys`.
#[derive(Args)]
#[command(after_help = "Examples:\n  laconic keys\n  laconic keys lr\n  laconic keys wan\n  laconic keys adaqp\n  \
                        laconic keys --schema > run.schema.json")]
pub struct Keys {
    /// Only what has this word in its name or its text
    filter: Option<String>,
    /// The JSON schema of a configuration in place of the list, for editors that complete and check TOML by one
    #[arg(long, conflicts_with_all = ["filter", "markdown"])]
    schema: bool,
    /// The page docs/reference/configuration.md in place of the list
    #[arg(long, conflicts_with = "filter")]
    markdown: bool,
}

/// Keys with their lines, and below names without a dot what else has names.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("x-name" = "KEY"))]
pub struct Listed {
    #[serde(flatten)]
    keys: BTreeMap<&'static str, Meaning>,
    /// Names that this key may be given.
    #[schemars(extend("x-name" = "KEY"))]
    members: BTreeMap<&'static str, Vec<Member>>,
    /// Named links.
    links: Vec<Link>,
    /// Methods of papers with that word in their name.
    papers: Vec<Paper>,
}

/// What the key means: members that read it before a colon, its default in brackets.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct Meaning(&'static str);

/// The page for people, as one text.
#[derive(Serialize, JsonSchema)]
pub struct Page<'a> {
    /// The page as one text.
    pub markdown: &'a str,
}

/// A paper's method, and the keys that make a run one of it.
#[derive(Serialize, JsonSchema)]
pub struct Paper {
    /// A paper's method with that word in its name.
    name: String,
    /// The keys that make a run one of it.
    set: Vec<String>,
}

/// A name that a key may be given, with the options that are read with it.
#[derive(Serialize, JsonSchema)]
pub struct Member {
    /// A name that the key may be given.
    name: &'static str,
    /// Keys of the same table or section that are read with it.
    options: Vec<&'static str>,
}

/// A link with a name.
#[derive(Serialize, JsonSchema)]
pub struct Link {
    /// What `transport.shape` may say.
    name: &'static str,
    /// Of an uplink.
    bits_per_second: f64,
    /// One way.
    latency_seconds: f64,
    /// Where such a link is found.
    reason: &'static str,
}

/// Lists keys, members and links.
pub fn run(arguments: Keys, output: &Output) -> Result<u8> {
    if arguments.schema {
        let schema = named(schema().to_value());
        output.result(serde_json::to_string_pretty(&schema)?, &schema)?;
        return Ok(0);
    }
    if arguments.markdown {
        let page = page();
        output.result(page.trim_end(), &Page { markdown: &page })?;
        return Ok(0);
    }
    let word = arguments.filter.unwrap_or_default().to_lowercase();
    let has = |texts: &[&str]| texts.iter().any(|text| text.to_lowercase().contains(&word));
    let keys: Vec<&KeyDoc> = KEYS.iter().filter(|k| has(&[k.key, k.doc])).collect();
    let mut members: BTreeMap<&'static str, Vec<Member>> = BTreeMap::new();
    for (key, name, options) in Members::default().all() {
        if has(&[key, name]) || has(&options) && !options.is_empty() {
            members.entry(key).or_default().push(Member { name, options });
        }
    }
    let papers: Vec<Paper> = if word.is_empty() { Vec::new() } else { papers(&word) };
    let links: Vec<&NamedLink> =
        LINKS.iter().filter(|link| has(&["transport.shape", link.name, link.reason])).collect();
    if keys.is_empty() && members.is_empty() && links.is_empty() && papers.is_empty() {
        bail!("no key, member, link or paper's method has {word:?} in its name or its text");
    }
    let text = text(&keys, &members, (&links, &papers));
    let link = |link: &&NamedLink| Link {
        name: link.name,
        bits_per_second: link.shape.bits_per_second,
        latency_seconds: link.shape.latency.as_secs_f64(),
        reason: link.reason,
    };
    let keys = keys.iter().map(|k| (k.key, Meaning(k.doc))).collect();
    output.result(text, &Listed { keys, members, links: links.iter().map(link).collect(), papers })?;
    Ok(0)
}

/// The schema with the names of members where a key takes no other text.
fn named(mut schema: serde_json::Value) -> serde_json::Value {
    for (key, name, _) in Members::default().all() {
        let path = key.split_once('.').and_then(|(section, key)| {
            let section = schema.pointer(&format!("/properties/{section}/$ref"))?.as_str()?.strip_prefix('#')?;
            Some(format!("{section}/properties/{key}"))
        });
        let about = path.and_then(|path| schema.pointer_mut(&path)).and_then(serde_json::Value::as_object_mut);
        if let Some(about) = about.filter(|about| about.get("type").is_some_and(|kind| kind == "string")) {
            let names = about.entry("enum").or_insert_with(|| serde_json::Value::Array(Vec::new()));
            names.as_array_mut().expect("names are all that is here").push(name.into());
        }
    }
    // Members from outside would have keys of their own there, and this program has none.
    for section in ["ModelConfig", "PartitionConfig", "ScheduleConfig"] {
        if let Some(section) = schema.pointer_mut(&format!("/$defs/{section}")) {
            section["additionalProperties"] = false.into();
        }
    }
    schema
}

/// `docs/reference/configuration.md`.
fn page() -> String {
    let mut page = String::from(
        "# Configuration\n\nOne TOML file is one run. These are all keys, as `laconic keys` lists them; a run takes \
         one from the command line with `--set KEY=VALUE`.\nThe last words in brackets are the default. Names before a \
         colon are those of the members that read the key: with others it is refused.\n`laconic keys --schema` prints \
         the same as a JSON schema, by which editors complete and check TOML.\n\nThis page is made by `laconic keys \
         --markdown`, from the fields of `crates/train/src/config/`: change it there.\n",
    );
    let mut section = "";
    for KeyDoc { key, doc } in KEYS.iter() {
        let here = key.split('.').next().unwrap_or_default();
        if here != section {
            section = here;
            page += &format!("\n## `[{section}]`\n\n");
        }
        page += &format!("- `{key}`: {doc}\n");
    }
    page += "\n## Names\n\nThe names that a key takes, with the options that are read with each.\n\n";
    let mut members: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, name, options) in Members::default().all() {
        let options = options.iter().map(|option| format!("`{option}`")).collect::<Vec<_>>().join(", ");
        let with = if options.is_empty() { String::new() } else { format!(" ({options})") };
        members.entry(key).or_default().push(format!("`{name}`{with}"));
    }
    for (key, names) in members {
        page += &format!("- `{key}`: {}\n", names.join(", "));
    }
    page
}

/// The papers' methods whose name has this word, whatever stands between its letters.
fn papers(word: &str) -> Vec<Paper> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let methods = methods_of_papers().into_iter();
    let named = methods.filter(|method| plain(&method.name).contains(&plain(word)));
    named.map(|method| Paper { name: method.name, set: method.set }).collect()
}

fn text(keys: &[&KeyDoc], members: &BTreeMap<&str, Vec<Member>>, (links, papers): (&[&NamedLink], &[Paper])) -> String {
    let width = keys.iter().map(|k| k.key.len()).max().unwrap_or(0);
    let mut lines: Vec<String> = keys.iter().map(|k| format!("{:width$}  {}", k.key, k.doc)).collect();
    let mut section = |title: &str, rows: Vec<(String, String)>| {
        if !rows.is_empty() {
            let gap = if lines.is_empty() { "" } else { "\n" };
            lines.push(format!("{gap}{title}"));
            let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            lines.extend(rows.iter().map(|(name, what)| format!("  {name:width$}  {what}")));
        }
    };
    let one = |member: &Member| match member.options.is_empty() {
        true => member.name.to_owned(),
        false => format!("{} ({})", member.name, member.options.join(", ")),
    };
    let row = |(key, members): (&&str, &Vec<Member>)| {
        (key.to_string(), members.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    section("names, with the options that are read with them:", members.iter().map(row).collect());
    let row = |link: &&NamedLink| (link.name.to_owned(), link.reason.to_owned());
    section("named links (transport.shape, compare --link):", links.iter().map(row).collect());
    let row = |paper: &Paper| (paper.name.clone(), paper.set.iter().map(|set| format!("--set '{set}' ")).collect());
    section("methods of papers (laconic compare RUN.toml --methods NAME,…):", papers.iter().map(row).collect());
    lines.join("\n")
}
