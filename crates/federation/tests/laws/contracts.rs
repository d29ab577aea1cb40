//! Contracts.

use laconic_federation::{Contract, SITES_MAX, Site, SiteKey, Terms, Time};

use crate::{contract, key, says, terms};

#[test]
fn a_contract_has_one_text_only() {
    let folder = tempfile::tempdir().unwrap();
    let (path, contract) = (folder.path().join("run.contract.json"), contract());
    contract.write(&path).unwrap();
    let read = Contract::read(&path).unwrap();
    assert_eq!((&read, read.text(), read.digest()), (&contract, contract.text(), contract.digest()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), contract.text());
    assert_eq!(contract.terms(), &terms());
    let value: serde_json::Value = serde_json::from_str(contract.text()).unwrap();
    assert_eq!(value["config"], terms().config);
    let sorted = value.as_object().unwrap().keys().is_sorted();
    assert!(sorted && contract.text().starts_with("{\"config\":"), "{}", contract.text());
    // The same values in other bytes.
    let spaced = serde_json::to_string_pretty(&value).unwrap();
    let escaped = contract.text().replacen("train", "\\u0074rain", 1);
    let zeros = contract.text().replacen("\"192.0.2.0:7443\"", "\"192.0.2.0:07443\"", 1);
    for other in [spaced, escaped, zeros, format!("{}\n", contract.text())] {
        assert_ne!(other, contract.text());
        says(Contract::parse(&other), &["byte for byte"]);
    }
}

#[test]
fn every_change_of_a_contract_changes_its_digest_or_is_refused() {
    let contract = contract();
    for at in 0..contract.text().len() {
        let mut bytes = contract.text().to_owned().into_bytes();
        bytes[at] ^= 1;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        assert!(Contract::parse(&text).map_or(true, |read| read.digest() != contract.digest()), "{text}");
    }
}

#[test]
fn each_contract_has_an_id_of_its_own() {
    let (one, other) = (contract(), contract());
    assert_eq!(one.id().len(), 16);
    assert_ne!(one.id(), other.id());
    assert_ne!(one.digest(), other.digest());
    assert!(one.digest().to_string().starts_with(&format!("blake3:{}", one.digest().short())));
    assert_eq!(one.digest().short().len(), 8);
}

#[test]
fn a_contract_is_for_one_version_and_until_its_last_day() {
    let contract = Contract::make(Terms { expires: "2027-01-31".parse().unwrap(), ..terms() }).unwrap();
    let time = |text: &str| text.parse::<Time>().unwrap();
    let last = time("2027-01-31T23:59:59.999Z");
    contract.check(last, "laconic 0.1.0", 7).unwrap();
    let next = time("2027-02-01T00:00:00.000Z");
    says(contract.check(next, "laconic 0.1.0", 7), &["stroke-3", "2027-01-31", "2027-02-01"]);
    says(contract.check(last, "laconic 0.2.0", 7), &["laconic 0.1.0", "laconic 0.2.0"]);
    says(contract.check(last, "laconic 0.1.0", 8), &["wire", "7", "8"]);
}

#[test]
fn ranks_are_the_order_of_sites() {
    let contract = contract();
    assert_eq!([0, 1, 2].map(|number| contract.rank_of(&key(number).public())), [Some(0), Some(1), Some(2)]);
    assert_eq!(contract.rank_of(&key(3).public()), None);
    assert_eq!((contract.rank_of_name("west"), contract.rank_of_name("east")), (Some(2), None));
}

#[test]
fn terms_that_are_none_are_refused_by_their_key() {
    let wrong = |change: &dyn Fn(&mut Terms), words: &[&str]| {
        let mut terms = terms();
        change(&mut terms);
        says(Contract::make(terms), words);
    };
    wrong(&|terms| terms.run = "Stroke".to_owned(), &["run", "Stroke"]);
    wrong(&|terms| terms.program = "a\nb".to_owned(), &["program"]);
    wrong(&|terms| terms.config = "[train".to_owned(), &["config", "TOML"]);
    wrong(&|terms| terms.config = format!("# {}", "x".repeat(70_000)), &["65536"]);
    wrong(&|terms| terms.sites.clear(), &["sites", "0", "64"]);
    wrong(&|terms| terms.sites[1].name = "north".to_owned(), &["sites[1].name", "another"]);
    wrong(&|terms| terms.sites[2].key = key(0).public(), &["sites[2].key", "another"]);
    wrong(&|terms| terms.sites[0].name = String::new(), &["sites[0].name"]);
    wrong(&|terms| terms.relays = vec!["relay.example.org".to_owned()], &["relays[0]", "https://"]);
    wrong(&|terms| terms.relays = vec!["https://a b".to_owned()], &["relays[0]"]);
    wrong(&|terms| terms.relays = vec!["https://a".to_owned(); 2], &["relays[1]", "twice"]);
    let many = |terms: &mut Terms| {
        let site = |number| Site {
            addresses: Vec::new(),
            key: SiteKey::from_seed([number; 32]).public(),
            name: format!("site-{number}"),
        };
        terms.sites = (0..=u8::try_from(SITES_MAX).unwrap()).map(site).collect();
    };
    wrong(&many, &["sites", "65"]);
}

#[test]
fn unknown_keys_are_refused_with_the_known_ones() {
    let text = contract().text().replacen("{\"config\"", "{\"colour\":1,\"config\"", 1);
    says(Contract::parse(&text), &["colour", "`config`", "`expires`"]);
    let text = contract().text().replacen("laconic contract 1", "laconic contract 2", 1);
    says(Contract::parse(&text), &["format", "laconic contract 2", "laconic contract 1"]);
}
