//! A run in words: what was trained how, what crossed in which form, and what came of it.

use laconic_train::worker::evaluate::Figures;
use serde_json::Value;

use super::run::Run;
use crate::bytes::{figure, human_bytes, separated};

/// Names of classes that are said.
const CLASSES_SAID: usize = 30;

/// The run in paragraphs.
pub fn paragraphs(run: &Run) -> Vec<String> {
    let mut said = vec![trained(run), classes(run), crossed(run), outcome(run), sent(run)];
    said.extend(run.recorded.summary.notes.iter().map(|note| format!("Note: {note}.")));
    said.retain(|paragraph| !paragraph.is_empty());
    said
}

fn text<'a>(value: &'a Value, section: &str, key: &str) -> &'a str {
    value[section][key].as_str().unwrap_or("unknown")
}

fn number(value: &Value, section: &str, key: &str) -> String {
    match &value[section][key] {
        // Single precision, as it was typed.
        Value::Number(number) if number.is_f64() => (number.as_f64().unwrap_or(0.0) as f32).to_string(),
        Value::Number(number) => number.as_u64().map_or(number.to_string(), separated),
        _ => "unknown".to_owned(),
    }
}

/// What was trained on what, and by which schedule.
fn trained(run: &Run) -> String {
    let summary = &run.recorded.summary;
    let config = &summary.config;
    let layers = match number(config, "model", "layers").as_str() {
        "1" => "1 layer".to_owned(),
        layers => format!("{layers} layers"),
    };
    let (who, unit, done) = match summary.averaging {
        Some(_) => ("trainer", "mean", "taken"),
        None => ("worker", "round", "done"),
    };
    let stages = match run.recorded.curves.stages.as_slice() {
        [] => String::new(),
        starts => {
            let starts: Vec<String> = starts.iter().map(|round| separated(*round as u64)).collect();
            format!(" in {} stages, the later ones from {unit} {} on", starts.len() + 1, starts.join(" and "))
        }
    };
    format!(
        "A network of {layers} ({}, {} hidden columns) was trained on {}, {}, one {who} each, over {}. {} {} {unit}s \
         were {done}{stages}, by {} at a learning rate of {}, seed {}, with laconic {}.",
        text(config, "model", "arch"),
        number(config, "model", "hidden"),
        run.dataset(),
        run.partition(),
        carried_by(&summary.transport, config),
        schedule(config),
        separated(summary.rounds.into()),
        text(config, "train", "optimiser"),
        number(config, "train", "lr"),
        summary.seed,
        summary.version,
    )
}

/// What the classes are called, where they have names.
fn classes(run: &Run) -> String {
    let names = &run.recorded.summary.class_names;
    let more = match names.len().saturating_sub(CLASSES_SAID) {
        0 => String::new(),
        more => format!(" and {} more", separated(more as u64)),
    };
    let said: Vec<&str> = names.iter().take(CLASSES_SAID).map(String::as_str).collect();
    if said.is_empty() { String::new() } else { format!("The classes are {}{more}.", said.join(", ")) }
}

fn carried_by(transport: &str, config: &Value) -> String {
    let shape = text(config, "transport", "shape");
    if ["", "unknown"].contains(&shape) {
        transport.to_owned()
    } else {
        format!("{transport} behind a model of the link {shape}")
    }
}

fn schedule(config: &Value) -> String {
    let said = match text(config, "schedule", "kind") {
        "synchronous" => "every layer exchanges rows in every round, there and back",
        "pipelined" => "rows and gradients are those of the round before, so that they travel while work goes on",
        "lazy" if text(config, "schedule", "start") == "mlp" => {
            "each layer is trained on inputs that do not change, so that rows cross once a layer; it starts from a \
             network of own features alone, so that features never cross"
        }
        "lazy" => "each layer is trained on inputs that do not change, so that rows cross once a layer, features first",
        "label_propagation" => "no model is trained; training labels pass along edges, with a halo exchange each step",
        "correct_and_smooth" => {
            "a model is trained as by synchronous, then by how much it misses training labels passes along edges, and \
             then its corrected scores do"
        }
        "ridge" => "a linear model is solved in one round, from sums over the training nodes of all workers",
        "averaging" if text(config, "schedule", "halo") == "frozen" => {
            "each trainer takes its own steps on its part, with inputs from others' nodes that cross once a stage, and \
             every so often the mean of their models stands for all"
        }
        "averaging" => {
            "each trainer takes its own steps on the graph of its own nodes, and every so often the mean of their \
             models stands for all"
        }
        "psgd_pa" => {
            "each trainer takes its own steps on the graph of its own nodes, and every so often the plain mean of \
             their models stands for all"
        }
        "llcg" => {
            "each trainer takes its own steps on the graph of its own nodes, and the mean of their models is \
             corrected by steps on the whole graph"
        }
        other => return format!("The schedule was {other}."),
    };
    format!("The schedule was {}: {said}.", text(config, "schedule", "kind"))
}

/// In which form messages went.
fn crossed(run: &Run) -> String {
    let summary = &run.recorded.summary;
    if summary.averaging.is_some() && summary.bytes.by_purpose.boundary == 0 {
        return "No row of any node crossed: models went to the aggregator and means came back, exact (32 bits), \
                and evaluations were the aggregator's alone."
            .to_owned();
    }
    if summary.averaging.is_some() {
        let rows = codec(&summary.config["messages"]["forward"]);
        return format!(
            "Rows that stages begin with crossed once, {rows}; models went to the aggregator and means came back, \
             exact (32 bits), and evaluations were the aggregator's alone."
        );
    }
    let chosen = summary.messages.as_ref().and_then(|messages| serde_json::to_value(messages).ok());
    let messages = chosen.as_ref().unwrap_or(&summary.config["messages"]);
    let coded = |key: &str| codec(&messages[key]);
    let mut said = format!(
        "Rows went out {}, their gradients came back {}, gradients of parameters or models went {}; evaluations {}.",
        coded("forward"),
        coded("backward"),
        coded("parameters"),
        coded("evaluation"),
    );
    if messages["layers"].as_object().is_some_and(|layers| !layers.is_empty()) {
        said += " Single layers have codecs of their own.";
    }
    said += &match &messages["selection"] {
        Value::String(all) if all == "all" => String::new(),
        other => format!(" Of the rows, a selection travelled: {}.", plain(other)),
    };
    if chosen.is_some() {
        said += " These messages were chosen to fit a budget of bytes.";
    }
    said
}

fn codec(value: &Value) -> String {
    match value {
        Value::String(name) if name == "exact" => "exact (32 bits)".to_owned(),
        Value::String(name) if name == "none" => "not at all".to_owned(),
        other => plain(other),
    }
}

/// A value of the configuration as people say it: `quantised, bits 4`.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(table) => {
            let name = ["codec", "kind"].into_iter().find_map(|key| table.get(key)?.as_str());
            let others =
                table.iter().filter(|(key, value)| !["codec", "kind"].contains(&key.as_str()) && !value.is_null());
            let others = others.map(|(key, value)| format!("{key} {}", plain(value)));
            name.map(str::to_owned).into_iter().chain(others).collect::<Vec<String>>().join(", ")
        }
        Value::Number(number) if number.is_f64() => (number.as_f64().unwrap_or(0.0) as f32).to_string(),
        Value::Null => "unknown".to_owned(),
        other => other.to_string(),
    }
}

/// What came of it.
fn outcome(run: &Run) -> String {
    let summary = &run.recorded.summary;
    let by = match (text(&summary.config, "train", "select_by"), &run.recorded.metric) {
        ("loss", _) | (_, None) => "loss".to_owned(),
        (_, Some(metric)) => metric.clone(),
    };
    let figure_of = |scores: &Figures| {
        run.recorded.metric.as_ref().and_then(|metric| scores.get(metric)).map(|value| figure(*value))
    };
    let sets = ["training", "validation", "test"].into_iter().zip(summary.metrics.scores.splits());
    let noun = run.recorded.task.words.noun;
    let figures: Vec<String> =
        sets.filter_map(|(name, scores)| Some(format!("{} on {name} {noun}", figure_of(scores)?))).collect();
    let metric = run.recorded.metric.as_deref().unwrap_or("metric");
    let figures = if figures.is_empty() { String::new() } else { format!(": {metric} {}", figures.join(", ")) };
    let of_pool = |(split, pairs): (&String, &u64)| format!("{} ({split})", separated(*pairs));
    let pools: Vec<String> = summary.metrics.scores.hits_pool.iter().map(of_pool).collect();
    let pools = if pools.is_empty() {
        String::new()
    } else {
        format!(" Hits@K count against pools of {} pairs.", pools.join(" and "))
    };
    let stopped = if summary.interrupted { " The run was interrupted; laconic resume goes on with it." } else { "" };
    let unit = if summary.averaging.is_some() { "mean" } else { "round" };
    format!(
        "The best {unit} by validation {by} was {}{figures}.{pools}{stopped}",
        separated(summary.metrics.best_round.into())
    )
}

/// What was sent, and whether that was known before.
fn sent(run: &Run) -> String {
    let bytes = &run.recorded.summary.bytes;
    let averaging = run.recorded.summary.averaging.as_ref();
    let predicted = match bytes.predicted {
        None if averaging.is_some_and(|averaging| averaging.means_predicted.is_none()) => {
            "nobody could predict it, since one of interval and limit is a time and the other is not".to_owned()
        }
        None => "nobody could predict it, since trainers began anew".to_owned(),
        Some(predicted) if predicted == bytes.total => "exactly what was predicted before the first round".to_owned(),
        Some(predicted) if bytes.is_bound => format!("of at most {} that were predicted", human_bytes(predicted)),
        Some(predicted) => format!("{} had been predicted", human_bytes(predicted)),
    };
    let starts = if bytes.starts.len() > 1 { format!(", in {} starts", bytes.starts.len()) } else { String::new() };
    format!(
        "All workers together sent {} ({} bytes) in {} frames{starts}: {predicted}.",
        human_bytes(bytes.total),
        separated(bytes.total),
        separated(bytes.frames),
    )
}
