//! Keys and signatures.

use laconic_federation::{Domain, FederationError, PublicKey, Signature, SiteKey};

use crate::{key, says};

#[test]
fn keys_are_those_of_rfc_8032() {
    let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, seed).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let key = SiteKey::read(&path).unwrap();
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(key.public().to_string(), public);
    assert_eq!(public.parse(), Ok(key.public()));
}

#[test]
fn a_key_outlives_its_file_and_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("north.key");
    let key = SiteKey::new().unwrap();
    key.write(&path).unwrap();
    assert_eq!(SiteKey::read(&path).unwrap().seed(), key.seed());
    assert!(matches!(SiteKey::new().unwrap().write(&path), Err(FederationError::Exists { .. })));
    assert_eq!(SiteKey::read(&path).unwrap().seed(), key.seed());
    assert_ne!(SiteKey::new().unwrap().seed(), SiteKey::new().unwrap().seed());
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("north.key");
    key(0).write(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for mode in [0o640, 0o604, 0o610, 0o602] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        says(SiteKey::read(&path), &["north.key", "chmod 600", &format!("{mode:o}")]);
    }
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
    SiteKey::read(&path).unwrap();
}

#[test]
fn nothing_that_is_printed_has_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let key = key(0x4b);
    let seed = "4c".repeat(32);
    assert!(!format!("{key:?} {key:#?}").contains(&seed));
    // A file that is nearly a key is nearly a secret.
    let path = folder.path().join("key");
    key.write(&path).unwrap();
    std::fs::write(&path, format!("{seed}\n\n")).unwrap();
    let message = SiteKey::read(&path).unwrap_err().to_string();
    assert!(message.contains("64") && !message.contains("4c4c"), "{message}");
}

#[test]
fn a_signature_is_of_one_key_one_domain_and_one_text() {
    let signature = key(0).sign(Domain::CARD, "text");
    key(0).public().verify(Domain::CARD, "text", &signature).unwrap();
    let other = Domain::new("another domain v1");
    assert!(key(1).public().verify(Domain::CARD, "text", &signature).is_err());
    assert!(key(0).public().verify(other, "text", &signature).is_err());
    assert!(key(0).public().verify(Domain::CARD, "text ", &signature).is_err());
    for at in 0..64 {
        let mut bytes = *signature.as_bytes();
        bytes[at] ^= 1;
        assert!(key(0).public().verify(Domain::CARD, "text", &Signature::from_bytes(bytes)).is_err(), "{at}");
    }
}

#[test]
fn a_print_has_four_groups_of_four_digits_of_the_keys_digest() {
    let key = key(0).public();
    let digest = blake3::hash(key.as_bytes()).to_hex();
    assert_eq!(key.print().replace('-', ""), digest[..16]);
    assert!(key.print().split('-').all(|group| group.len() == 4));
    assert_eq!(key.print().split('-').count(), 4);
}

#[test]
fn texts_that_are_no_keys_are_refused() {
    let fine = key(0).public().to_string();
    let weak = "0".repeat(64);
    for text in ["", &fine[1..], &fine.to_uppercase(), &format!("{fine} "), &format!("0x{}", &fine[2..]), &weak] {
        assert!(text.parse::<PublicKey>().is_err(), "{text}");
    }
}
