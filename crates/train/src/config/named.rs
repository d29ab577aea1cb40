//! Names of members whose keys list those of this crate in the schema.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A name that is looked up later; of what is no text, the key's help says what is expected.
pub(super) fn member_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map_err(|_| D::Error::custom("invalid type: another, expected the name of a member"))
}
