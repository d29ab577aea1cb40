//! From the schema of a document to one row for each of its fields, as a table for people has them.

use serde_json::{Map, Value};

/// A field: where it is, what it is, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its path: `[]` for the elements of a list, capitals for any name, `…` for whatever is below.
    pub path: String,
    /// Its type in words.
    pub kind: String,
    /// When it is there; `None` where it always is, empty where nobody says it.
    pub when: Option<String>,
    /// What it means, in one line.
    pub text: String,
}

impl Row {
    /// The same where it is there in this case alone.
    pub fn only(self, case: &str) -> Row {
        let when = match self.when {
            Some(when) => format!("{case}, {when}"),
            None => case.to_owned(),
        };
        Row { when: Some(when), ..self }
    }
}

/// Types of which another page lists the fields: a configuration and its section.
const ELSEWHERE: [&str; 2] = ["Config", "MessagesConfig"];

/// Says of a field or a type with which names its map is read: `KIND`, or `SPLIT.METRIC` of a map of maps. Of a type
/// with fields of one kind it stands for all of these.
const NAME: &str = "x-name";
/// Says of a type when those of its fields are there that say nothing of it themselves.
const WHERE: &str = "x-where";

/// The rows of a schema.
pub fn of(schema: &Value, definitions: &Map<String, Value>) -> Vec<Row> {
    let mut walk = Walk { definitions, rows: Vec::new() };
    walk.value(String::new(), schema, Told::default(), None);
    walk.rows
}

/// What is said of a schema's type, without the full stop.
pub fn about(schema: &Value, definitions: &Map<String, Value>) -> String {
    let walk = Walk { definitions, rows: Vec::new() };
    let (_, of, _) = walk.resolved(schema);
    let of = of.get("items").map_or(of, |items| walk.resolved(items).1);
    of.get("description").and_then(Value::as_str).unwrap_or_default().trim_end_matches('.').to_owned()
}

/// Takes the null out of what may be null.
pub fn without_null(schema: &mut Value) {
    let is_null = |schema: &Value| schema == "null" || schema.get("type").is_some_and(|kind| kind == "null");
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = fields.get_mut("type") {
        kinds.retain(|kind| !is_null(kind));
        if let [kind] = &mut kinds[..] {
            let kind = kind.take();
            fields.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(mut shapes)) = fields.remove("anyOf") {
        shapes.retain(|shape| !is_null(shape));
        match (shapes.pop(), shapes.is_empty()) {
            (Some(Value::Object(only)), true) => fields.extend(only),
            (last, _) => drop(fields.insert("anyOf".to_owned(), shapes.into_iter().chain(last).collect())),
        }
    }
}

/// What a field's documentation says: when it is there, and what it means.
#[derive(Clone, Default)]
struct Told {
    when: Option<String>,
    text: String,
}

impl Told {
    /// A sentence there, one of many lines here. Brackets at its beginning say when the field is there.
    fn of(text: &str) -> Told {
        let text = text.trim_end_matches('.');
        let (when, text) = match text.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((when, text)) => (Some(when.to_owned()), text),
            None => (None, text),
        };
        let mut first = text.chars();
        let text = match (first.next(), first.clone().next()) {
            (Some(capital), Some(next)) if next.is_lowercase() || next == ' ' => {
                format!("{}{}", capital.to_lowercase(), first.as_str())
            }
            _ => text.to_owned(),
        };
        Told { when, text }
    }
}

struct Walk<'a> {
    definitions: &'a Map<String, Value>,
    rows: Vec<Row>,
}

impl<'a> Walk<'a> {
    /// What a reference leads to, by which name, and whether null may stand in its place.
    fn resolved(&self, schema: &'a Value) -> (&'a str, &'a Value, bool) {
        let may_be_null = |shape: &Value| shape.get("type").is_some_and(|kind| kind == "null");
        if let Some(shapes) = schema.get("anyOf").and_then(Value::as_array).filter(|all| all.iter().any(may_be_null)) {
            let of = shapes.iter().find(|shape| !may_be_null(shape)).unwrap_or(schema);
            let (name, of, _) = self.resolved(of);
            return (name, of, true);
        }
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
        match name.and_then(|name| Some((name, self.definitions.get(name)?))) {
            Some((name, of)) => {
                let (inner, of, is_null) = self.resolved(of);
                (if inner.is_empty() { name } else { inner }, of, is_null)
            }
            None => {
                let kinds = schema.get("type").and_then(Value::as_array);
                ("", schema, kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null")))
            }
        }
    }

    /// The rows of a value at this path. `names` are those of a map, where its field says them.
    fn value(&mut self, path: String, schema: &'a Value, told: Told, names: Option<&'a str>) {
        let (name, of, is_null) = self.resolved(schema);
        let names = name_of(schema).or(names).or(name_of(of));
        let kind = kind(of);
        let or_null = if is_null { " or null" } else { "" };
        let mut row = |path: String, kind: &str| {
            let mut told = told.clone();
            if told.text.is_empty() {
                told.text = Told::of(of.get("description").and_then(Value::as_str).unwrap_or_default()).text;
            }
            self.rows.push(Row { path, kind: format!("{kind}{or_null}"), when: told.when, text: told.text });
        };
        match kind {
            "object" if ELSEWHERE.contains(&name) => row(below(&path, "…"), kind),
            "object" | "list" => {
                if is_null {
                    row(path.clone(), kind);
                }
                match of.get("items") {
                    Some(items) => self.value(path + "[]", items, told, names),
                    None => self.object(&path, of, &told, names),
                }
            }
            _ => row(path, kind),
        }
    }

    fn object(&mut self, path: &str, of: &'a Value, told: &Told, names: Option<&'a str>) {
        let properties = of.get("properties").and_then(Value::as_object);
        let any = of.get("additionalProperties").filter(|any| any.is_object());
        let (name, rest) = match names.map(|names| names.split_once('.').unwrap_or((names, ""))) {
            Some((name, rest)) => (name, Some(rest).filter(|rest| !rest.is_empty())),
            None => ("NAME", None),
        };
        if let Some(any) = any {
            self.value(below(path, name), any, told.clone(), rest);
        }
        let Some(properties) = properties else { return };
        if let (None, Some(_), Some(one)) = (any, names, properties.values().next()) {
            return self.value(below(path, name), one, told.clone(), rest);
        }
        for (name, schema, is_always) in in_order(of, properties) {
            let mut own = Told::of(schema.get("description").and_then(Value::as_str).unwrap_or_default());
            if own.when.is_none() && !is_always {
                let all = of.get(WHERE).and_then(Value::as_str).map(str::to_owned);
                own.when = all.or_else(|| told.when.clone()).or(Some(String::new()));
            }
            own.when = own.when.or_else(|| told.when.clone());
            self.value(below(path, name), schema, own, None);
        }
    }
}

/// The fields of a type: those that are always there as they are printed, then the others by their names.
fn in_order<'a>(of: &'a Value, properties: &'a Map<String, Value>) -> Vec<(&'a str, &'a Value, bool)> {
    let required: Vec<&str> =
        of.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let others = properties.keys().map(String::as_str).filter(|name| !required.contains(name));
    let all = required.iter().map(|name| (*name, true)).chain(others.map(|name| (name, false)));
    all.filter_map(|(name, is_always)| Some((name, properties.get(name)?, is_always))).collect()
}

fn name_of(schema: &Value) -> Option<&str> {
    schema.get(NAME).and_then(Value::as_str)
}

fn below(path: &str, step: &str) -> String {
    if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") }
}

/// A type in words; of several shapes the first one's.
fn kind(schema: &Value) -> &'static str {
    let other_than_null = |kinds: &'_ Value| kinds.as_array()?.iter().find(|kind| *kind != "null").cloned();
    let of = schema.get("type").map(|kind| other_than_null(kind).unwrap_or_else(|| kind.clone()));
    match of.as_ref().and_then(Value::as_str) {
        Some("integer" | "number") => "number",
        Some("boolean") => "boolean",
        Some("array") => "list",
        Some("object") => "object",
        Some(_) => "text",
        None => match schema.get("oneOf").or(schema.get("anyOf")).and_then(|shapes| shapes.get(0)) {
            Some(shape) => kind(shape),
            None => "object",
        },
    }
}
