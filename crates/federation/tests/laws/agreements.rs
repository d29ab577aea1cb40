//! Signatures under contracts.

use laconic_federation::{Agreement, Contract, Domain, Terms};

use crate::{contract, key, other_byte, says, terms};

#[test]
fn a_contract_holds_when_all_have_signed() {
    let folder = tempfile::tempdir().unwrap();
    let path = Agreement::path(folder.path().join("run.contract.json"));
    assert!(path.ends_with("run.contract.json.signatures"));
    let contract = contract();
    let mut agreement = Agreement::new(&contract);
    says(agreement.verify(), &["north, south, west"]);
    agreement.sign(&key(2)).unwrap();
    agreement.write(&path).unwrap();
    // Another site signs what it was sent, and a third one sends its line alone.
    let mut agreement = Agreement::read(&path, &contract).unwrap();
    agreement.sign(&key(0)).unwrap();
    assert_eq!(agreement.missing(), ["south"]);
    let mut own = Agreement::new(&contract);
    own.sign(&key(1)).unwrap();
    let line = own.text().lines().last().unwrap().to_owned();
    agreement.add(&line).unwrap();
    agreement.verify().unwrap();
    agreement.write(&path).unwrap();
    assert_eq!(Agreement::read(&path, &contract).unwrap(), agreement);
    let names: Vec<String> =
        agreement.text().lines().skip(3).map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(names, ["north", "south", "west"]);
}

#[test]
fn an_agreement_is_a_signed_note_of_the_contracts_digest() {
    let contract = contract();
    let mut agreement = Agreement::new(&contract);
    agreement.sign(&key(0)).unwrap();
    let head = format!("laconic contract v1\n{}\n\n— north ", contract.digest());
    assert!(agreement.text().starts_with(&head), "{}", agreement.text());
    let signature = key(0).sign(Domain::CONTRACT, &format!("{}\n", contract.digest()));
    key(0).public().verify(Domain::CONTRACT, &format!("{}\n", contract.digest()), &signature).unwrap();
}

#[test]
fn signatures_of_anything_else_are_refused() {
    let (one, other) = (contract(), contract());
    let mut signed = Agreement::new(&other);
    signed.sign(&key(0)).unwrap();
    let mut agreement = Agreement::new(&one);
    says(agreement.add(&signed.text()), &["line 2", &one.digest().to_string(), &other.digest().to_string()]);
    let line = signed.text().lines().last().unwrap().to_owned();
    says(agreement.add(&line), &["line 1", "north"]);
    says(agreement.add("north"), &["line 1", "NAME BASE64"]);
    says(agreement.add(&line.replace("north", "east")), &["east", "no site"]);
    says(agreement.sign(&key(9)), &["no site's"]);
    // The site's name with another key.
    let stranger = Contract::make(Terms { sites: vec![terms().sites[0].clone()], ..terms() }).unwrap();
    let mut signed = Agreement::new(&stranger);
    signed.sign(&key(0)).unwrap();
    says(agreement.add(&signed.text()), &["line 2"]);
    assert_eq!(agreement.missing().len(), 3);
}

#[test]
fn every_change_of_an_agreement_is_found() {
    let contract = contract();
    let mut agreement = Agreement::new(&contract);
    agreement.sign(&key(0)).unwrap();
    let text = agreement.text();
    for at in 0..text.len() {
        for byte in [other_byte(text.as_bytes()[at], at), b'A', b' ', b'\n'] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let mut read = Agreement::new(&contract);
            // What is left of it is the same signature, or none.
            assert!(read.add(&changed).is_err() || read == agreement, "{changed}");
        }
    }
}
