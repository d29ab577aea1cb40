//! Cards of sites.

use laconic_federation::Card;

use crate::{key, other_byte, says};

fn card() -> Card {
    let addresses = vec!["192.0.2.7:7443".parse().unwrap(), "[2001:db8::7]:7443".parse().unwrap()];
    Card::make("north", addresses, &key(0)).unwrap()
}

#[test]
fn a_card_outlives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let card = card();
    let path = folder.path().join(card.file_name());
    card.write(&path).unwrap();
    assert!(path.ends_with("north.site.toml"));
    assert_eq!(Card::read(&path).unwrap(), card);
    assert_eq!((card.site().name.as_str(), card.site().key), ("north", key(0).public()));
    let empty = Card::make("south", Vec::new(), &key(1)).unwrap();
    assert_eq!(Card::parse(&empty.text()).unwrap(), empty);
}

#[test]
fn whatever_is_mistyped_in_a_card_is_noticed() {
    let card = card();
    let text = card.text();
    for at in 0..text.len() {
        for byte in [other_byte(text.as_bytes()[at], at), text.as_bytes()[at] ^ 1, b'0', b' ', b'\n'] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(Card::parse(&changed).map_or(true, |read| read == card), "{changed}");
        }
    }
    says(Card::parse(&text.replace(":7443", ":7444")), &["signature", "mistyped"]);
}

#[test]
fn what_is_no_card_is_refused_with_what_would_be_one() {
    says(Card::make("North", Vec::new(), &key(0)), &["name", "\"North\"", "a to z"]);
    says(Card::make(&"n".repeat(41), Vec::new(), &key(0)), &["name", "40"]);
    let address = "192.0.2.7:1".parse().unwrap();
    says(Card::make("north", vec![address, address], &key(0)), &["addresses", "twice"]);
    let text = card().text();
    says(Card::parse(&format!("{text}role = \"trainer\"\n")), &["line 6", "role", "`addresses`"]);
    says(Card::parse(&text.replace("signature", "# signature")), &["signature"]);
    says(Card::parse(&format!("{text}# {}", "x".repeat(70_000))), &["65536"]);
}
