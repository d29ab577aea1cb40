//! The documents that `--json` prints, by the commands that print them. What their fields mean is said at the fields.

use std::sync::LazyLock;

use laconic_train::auto::Ladder;
use laconic_train::run::verify::Verification;
use laconic_train::{RoundReport, Summary};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::rows::{self, Row};
use crate::command::{bench, compare, data, demo, export, keys, part, partition, plan, predict, report, shell};
use crate::output::Failed;

/// A document, or one of several shapes that it may have.
pub struct Document {
    /// What `laconic schema` calls it: the commands that print it.
    pub names: &'static [&'static str],
    /// Its heading on the page.
    pub heading: &'static str,
    /// What is to be said under the heading.
    pub text: &'static str,
    /// Its shapes, each with when it is printed; that is empty of a single one.
    shapes: Vec<(&'static str, Of)>,
}

/// The documents that there are.
#[derive(Serialize, JsonSchema)]
pub struct Listed {
    /// One entry a document.
    pub documents: Vec<Entry>,
}

/// A document that a command prints, or a file that is one.
#[derive(Serialize, JsonSchema)]
pub struct Entry {
    /// What `laconic schema` may be asked for.
    pub names: &'static [&'static str],
    /// What the document is, in a few words.
    pub about: String,
}

/// Makes the schema of a type.
type Of = fn(&mut SchemaGenerator) -> schemars::Schema;

fn document<T: JsonSchema>(names: &'static [&'static str], heading: &'static str, text: &'static str) -> Document {
    Document { names, heading, text, shapes: vec![("", SchemaGenerator::subschema_for::<T>)] }
}

const REFUSED: &str = "The exit code is not 0, and there is no result.";
const FINDINGS: &str = "The exit code is 1 where there are errors.";
const DIFFERS: &str = "The exit code is 1 where something differs.";
const SUMMARY: &str = "The same as `summary.json`.";
const ROUNDS: &str = "No command prints it: it grows in the folder of a run, a line a round.";
const COMPARED: &str = "The same as `compare.json`. Numbers of a method are means over its runs.";
const PAIRS: &str = "Of a model of links, pairs in place of nodes.";
const AUTO: &str = "Of `messages = \"auto\"` it is in the folder of the run, and `laconic plan` prints it.";
const METHODS: &str = "A list, one object a method.";
const CONFIGURATION: &str = "With `--schema`, the JSON schema of a configuration.";
const NAMED: &str = "With the name of a document, its JSON schema.";
const MARKDOWN: &str = "`laconic keys --markdown`, `laconic schema --markdown`";

/// All of them, in the order of the page.
pub static DOCUMENTS: LazyLock<Vec<Document>> = LazyLock::new(|| {
    vec![
        document::<Failed>(&["errors"], "errors", REFUSED),
        document::<data::Described>(&["data info"], "`laconic data info`", ""),
        document::<data::Verdict>(&["data check"], "`laconic data check`", FINDINGS),
        document::<data::Converted>(&["data convert"], "`laconic data convert`", ""),
        document::<data::Generated>(&["data synth"], "`laconic data synth`", "").or::<data::Arrays>("npz", "arrays"),
        document::<partition::Partitioned>(&["partition"], "`laconic partition`", ""),
        document::<part::Built>(&["part build"], "`laconic part build`", ""),
        document::<plan::Costs>(&["plan"], "`laconic plan`", ""),
        document::<Ladder>(&["auto.json"], "`auto.json`", AUTO),
        document::<Summary>(&["train", "resume"], "`laconic train`, `laconic resume`", SUMMARY),
        document::<RoundReport>(&["metrics"], "`metrics.jsonl`", ROUNDS),
        document::<Verification>(&["verify"], "`laconic verify`", DIFFERS),
        document::<compare::Comparison>(&["compare"], "`laconic compare`", COMPARED),
        document::<compare::Planned>(&["compare plan"], "`laconic compare --plan`", ""),
        document::<report::Written>(&["report"], "`laconic report`", ""),
        document::<predict::Written>(&["predict"], "`laconic predict`", PAIRS)
            .or::<predict::WrittenPairs>("not of pairs", "of pairs"),
        document::<export::Written>(&["export"], "`laconic export`", ""),
        document::<Vec<demo::Line>>(&["demo"], "`laconic demo`", METHODS),
        document::<bench::roofline::Machine>(&["bench roofline"], "`laconic bench roofline`", ""),
        document::<bench::epoch::Measured>(&["bench epoch"], "`laconic bench epoch`", ""),
        document::<bench::kernels::Measured>(&["bench kernels"], "`laconic bench kernels`", ""),
        document::<bench::scale::Measured>(&["bench scale"], "`laconic bench scale`", ""),
        document::<keys::Listed>(&["keys"], "`laconic keys`", CONFIGURATION),
        document::<keys::Page>(&["keys markdown", "schema markdown"], MARKDOWN, ""),
        document::<Listed>(&["schema"], "`laconic schema`", NAMED),
        document::<shell::Text>(&["completions", "man"], "`laconic completions`, `laconic man`", ""),
        document::<shell::Written>(&["man out"], "`laconic man --out`", ""),
    ]
});

impl Document {
    /// Another shape that it may have, with when it has the one and the other.
    fn or<T: JsonSchema>(mut self, one: &'static str, other: &'static str) -> Document {
        self.shapes.iter_mut().for_each(|(when, _)| *when = one);
        self.shapes.push((other, SchemaGenerator::subschema_for::<T>));
        self
    }

    /// Its shapes as references, and what these lead to.
    fn described(&self) -> (Vec<Value>, Map<String, Value>) {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut shapes: Vec<Value> = self.shapes.iter().map(|(_, of)| of(&mut generator).to_value()).collect();
        let mut definitions = Value::Object(generator.take_definitions(true));
        shapes.iter_mut().chain([&mut definitions]).for_each(as_printed);
        let Value::Object(definitions) = definitions else { unreachable!("it was made of one") };
        (shapes, definitions)
    }

    /// Its JSON schema, draft 2020-12.
    pub fn schema(&self) -> Value {
        let (mut shapes, definitions) = self.described();
        let shape = if let [shape] = &mut shapes[..] { shape.take() } else { json!({ "anyOf": shapes }) };
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.heading.replace('`', ""),
            "$defs": definitions,
        });
        let all = schema.as_object_mut().into_iter();
        all.for_each(|all| all.extend(shape.as_object().cloned().unwrap_or_default()));
        schema
    }

    /// Its fields, those of all shapes first.
    pub fn rows(&self) -> Vec<Row> {
        let (shapes, definitions) = self.described();
        let rows: Vec<Vec<Row>> = shapes.iter().map(|shape| rows::of(shape, &definitions)).collect();
        let is_everywhere = |row: &Row| rows.iter().all(|rows| rows.contains(row));
        let mut merged: Vec<Row> = Vec::new();
        for ((when, _), shape) in self.shapes.iter().zip(&rows) {
            for row in shape {
                match (is_everywhere(row), merged.contains(row)) {
                    (true, true) => {}
                    (true, false) => merged.push(row.clone()),
                    (false, _) => merged.push(row.clone().only(when)),
                }
            }
        }
        merged
    }

    /// What it is, in a few words: what is said of its type.
    pub fn about(&self) -> String {
        let (shapes, definitions) = self.described();
        shapes.first().map_or_else(String::new, |shape| rows::about(shape, &definitions))
    }
}

/// What is not always there is never null, and what is said of it is one line.
fn as_printed(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let required = fields.get("required").cloned().unwrap_or_default();
            let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
            let properties = fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
            properties.filter(|(name, _)| !is_required(name)).for_each(|(_, value)| rows::without_null(value));
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            fields.values_mut().for_each(as_printed);
        }
        Value::Array(all) => all.iter_mut().for_each(as_printed),
        _ => {}
    }
}
