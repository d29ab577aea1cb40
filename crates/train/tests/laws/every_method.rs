//! Every member of every registry with every other: what joins them is tried here, and no list is kept.

use std::collections::BTreeSet;

use laconic_nn::layer::LAYERS;
use laconic_train::laws::methods::{check, covering, every};
use laconic_train::plan::Members;
use laconic_train::schedule::SCHEDULES;
use laconic_train::selection::SELECTIONS;
use laconic_wire::codec::CodecRegistry;

/// All settings that occur together in a method, two by two.
fn pairs(methods: &[Vec<String>]) -> BTreeSet<(&str, &str)> {
    let all = methods.iter().flat_map(|method| method.iter().map(move |a| (method, a)));
    all.flat_map(|(method, a)| method.iter().map(move |b| (a.as_str(), b.as_str()))).collect()
}

#[test]
fn some_methods_cover_all_pairs_of_members() {
    let (all, some) = (every(&Members::default()), covering(&Members::default()));
    assert_eq!(pairs(&all), pairs(&some));
    assert!(10 * some.len() < all.len(), "{} of {} methods are no small part", some.len(), all.len());
    let names = SCHEDULES.iter().map(|kind| format!("schedule.kind={}", kind.name));
    let names = names.chain(LAYERS.iter().map(|kind| format!("model.arch={}", kind.name)));
    let names = names.chain(SELECTIONS.iter().map(|kind| format!("messages.selection={}", kind.name)));
    let codecs = CodecRegistry::default();
    let names: Vec<String> = names.chain(codecs.names().map(|name| format!("codec=\"{name}\""))).collect();
    for name in names {
        assert!(some.iter().flatten().any(|setting| setting.contains(&name)), "no method has {name}");
    }
}

#[test]
fn every_schedule_layer_codec_and_selection_keeps_the_laws_with_every_other() {
    let members = Members::default();
    covering(&members).iter().for_each(|settings| check(&members, settings));
}
