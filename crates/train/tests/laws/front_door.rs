//! The front door does what the engine does: a run that was stopped goes on from its folder alone.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laconic_graph::write::write_interchange;
use laconic_train::run::predict::Predictions;
use laconic_train::{Config, Data, Members, Observer, Options, RoundReport, load, plan, predict, resume, train};

use crate::fixture::{folder, graph};

/// Stops after a round.
struct StopAfter(u32);

impl Observer for StopAfter {
    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        if report.round == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn config(data: &Path) -> Config {
    let text = "
        partition = { parts = 3 }
        model = { arch = 'sage', hidden = 8 }
        train = { epochs = 6, threads = 1 }
        schedule = { kind = 'pipelined' }
        messages = { parameters = { codec = 'quantised', bits = 4 }, skip = { change = 0.2 } }
    ";
    let mut config = Config::parse(text, &[]).expect("a sound configuration");
    config.data.path = data.to_owned();
    config
}

/// Runs until the observer has seen three rounds.
fn stop_after_three(config: &Config, out: &Path) {
    let interrupt = Arc::new(AtomicBool::new(false));
    let observer = Box::new(StopAfter(3));
    let options = Options { out: Some(out.to_owned()), interrupt: interrupt.clone(), observer, ..Options::default() };
    let stopped = train(config, Data::Configured, options).expect("a stopped run");
    assert!(stopped.summary.interrupted);
    assert_eq!(stopped.summary.rounds, 4, "the round after it is the first whose reduction tells of it");
    assert!(!interrupt.load(Ordering::Relaxed), "the caller's flag is the caller's");
}

#[test]
fn a_run_that_its_observer_stops_goes_on_from_its_folder_and_ends_as_if_it_had_never_stopped() {
    let place = folder();
    let data = place.path().join("graph.npz");
    write_interchange(&data, &graph(120, 4)).expect("written");
    let (config, out) = (config(&data), place.path().join("run"));
    let straight = train(&config, Data::Configured, Options::default()).expect("a run");

    stop_after_three(&config, &out);
    let resumed = resume(&out, Options::default()).expect("a resumed run");
    assert_eq!(resumed.summary.parameters.digest, straight.summary.parameters.digest);
    assert_eq!(resumed.weights(), straight.weights());
}

#[test]
fn a_workers_state_that_does_not_fit_is_an_error_of_files_and_names_what_it_is_about() {
    let place = folder();
    let data = place.path().join("graph.npz");
    write_interchange(&data, &graph(120, 4)).expect("written");
    let out = place.path().join("run");
    stop_after_three(&config(&data), &out);
    // The round of the stop is the first whose reduction tells of it.
    let of = |rank: u32| out.join(format!("state-{rank}-4.safetensors"));
    let sound = std::fs::read(of(1)).expect("a worker's state");
    let another = std::fs::read(of(0)).expect("another worker's state");
    // That of a run which differs in its seed alone.
    let mut seeded = config(&data);
    seeded.train.seed = 7;
    stop_after_three(&seeded, &place.path().join("seeded"));
    let foreign = std::fs::read(place.path().join("seeded/state-1-4.safetensors")).expect("a worker's state");
    let mut changed = sound.clone();
    *changed.last_mut().expect("it holds numbers") ^= 1;
    for (bytes, said) in [
        (&another[..], "found that of worker 0, round 4"),
        (&foreign, "another run"),
        (&changed, "checksum"),
        (&sound[..sound.len() / 2], "expected a safetensors file"),
        (&[], "expected a safetensors file"),
    ] {
        std::fs::write(of(1), bytes).expect("written");
        let error = resume(&out, Options::default()).err().expect("a refusal");
        assert_eq!(error.exit_code(), 5, "{error}");
        let (error, path) = (error.to_string(), of(1).display().to_string());
        assert!(error.contains(said) && error.contains(&path), "{said}: {error}");
    }
    std::fs::write(of(1), &sound).expect("written");
    resume(&out, Options::default()).expect("nothing was lost");
}

#[test]
fn data_in_memory_and_on_disk_are_the_same_run() {
    let place = folder();
    let (data, dataset) = (place.path().join("graph.npz"), graph(120, 4));
    write_interchange(&data, &dataset).expect("written");
    let config = config(&data);
    let on_disk = train(&config, Data::Configured, Options::default()).expect("a run");
    let in_memory = train(&config, dataset.clone(), Options::default()).expect("a run");
    assert_eq!(on_disk.summary.parameters, in_memory.summary.parameters);
    assert_eq!(on_disk.ledgers, in_memory.ledgers);
    let forecast = plan(&Members::default(), &config, dataset.clone()).expect("a forecast");
    let most: u64 = forecast.workers.iter().map(|(_, ledger, _)| ledger.total().framed).sum();
    assert!(in_memory.summary.bytes.total <= most, "skipping sends at most what was predicted");
    let rows: usize = predict(&in_memory, dataset).expect("scores").iter().map(|part| part.nodes.len()).sum();
    assert_eq!(rows, 120);
}

#[test]
fn a_model_that_is_loaded_predicts_what_its_run_does() {
    let place = folder();
    let (data, dataset) = (place.path().join("graph.npz"), graph(120, 4));
    write_interchange(&data, &dataset).expect("written");
    let (config, out) = (config(&data), place.path().join("run"));
    let options = Options { out: Some(out.clone()), ..Options::default() };
    let run = train(&config, Data::Configured, options).expect("a run");
    let loaded = load(&out, Members::default()).expect("a model");
    assert_eq!((loaded.weights(), loaded.classes().len()), (&run.weights(), dataset.labels.classes()));
    let logits = |predictions: Vec<Predictions>| -> Vec<Vec<f32>> {
        predictions.iter().map(|part| part.inferred.logits.data().to_vec()).collect()
    };
    let own = logits(predict(&run, Data::Configured).expect("scores"));
    assert!(own == logits(loaded.predict(Data::Configured).expect("scores")));
    let in_memory = logits(loaded.predict(dataset).expect("scores"));
    assert!(own == in_memory);
    let error = load(place.path(), Members::default()).err().expect("no run");
    assert!(error.to_string().contains("config.toml"), "{error}");
}
