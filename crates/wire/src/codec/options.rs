//! What a configuration says of a codec besides its name.

use crate::{Result, WireError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The value of one option, written as a configuration writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum OptionValue {
    /// Yes or no: `true` or `false`.
    Flag(bool),
    /// A number; whole ones are numbers like all others.
    Number(f64),
    /// A name or another text.
    Text(String),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Flag(value) => value.fmt(f),
            OptionValue::Number(value) => value.fmt(f),
            OptionValue::Text(value) => write!(f, "{value:?}"),
        }
    }
}

impl From<bool> for OptionValue {
    fn from(value: bool) -> OptionValue {
        OptionValue::Flag(value)
    }
}

impl From<f64> for OptionValue {
    fn from(value: f64) -> OptionValue {
        OptionValue::Number(value)
    }
}

impl From<&str> for OptionValue {
    fn from(value: &str) -> OptionValue {
        OptionValue::Text(value.to_owned())
    }
}

impl From<String> for OptionValue {
    fn from(value: String) -> OptionValue {
        OptionValue::Text(value)
    }
}

/// Options by name. Each codec reads and checks those that its [`CodecKind`](super::CodecKind) lists; this type knows
/// none of them, so that a codec brings its own without anybody else being told.
///
/// ```
/// use laconic_wire::codec::Options;
/// let options = Options::default().with("inner", "half").with("rescale", true);
/// assert_eq!(options.text("inner")?, Some("half"));
/// assert_eq!(options.flag("absent")?, None);
/// assert_eq!(options.number("inner").unwrap_err().to_string(), "option inner is \"half\", expected a number");
/// # Ok::<(), laconic_wire::WireError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Options(BTreeMap<String, OptionValue>);

impl Options {
    /// The same options and this one, in place of another of its name.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OptionValue>) -> Options {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// The same options but this one: what a codec around another hands on has no `inner`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Options {
        self.0.remove(name);
        self
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A flag, if it is given.
    ///
    /// # Errors
    ///
    /// [`WireError::BadOption`] if it is given as something else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>> {
        match self.0.get(name) {
            None => Ok(None),
            Some(&OptionValue::Flag(value)) => Ok(Some(value)),
            Some(_) => Err(self.refuse(name, "true or false")),
        }
    }

    /// A number, if it is given.
    ///
    /// # Errors
    ///
    /// [`WireError::BadOption`] if it is given as something else.
    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        match self.0.get(name) {
            None => Ok(None),
            Some(&OptionValue::Number(value)) => Ok(Some(value)),
            Some(_) => Err(self.refuse(name, "a number")),
        }
    }

    /// A text, if it is given.
    ///
    /// # Errors
    ///
    /// [`WireError::BadOption`] if it is given as something else.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.0.get(name) {
            None => Ok(None),
            Some(OptionValue::Text(value)) => Ok(Some(value)),
            Some(_) => Err(self.refuse(name, "a text")),
        }
    }

    /// The error for an option whose value is not what a codec expects, in words that fit "expected …".
    pub fn refuse(&self, name: &str, expected: &str) -> WireError {
        let given = self.0.get(name).map_or_else(|| "absent".to_owned(), ToString::to_string);
        WireError::BadOption { name: name.to_owned(), given, expected: expected.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_found_under_its_kind_and_refused_under_the_others() {
        let options = Options::default().with("flag", false).with("number", 2.5).with("text", "yes");
        assert_eq!(options.flag("flag"), Ok(Some(false)));
        assert_eq!(options.number("number"), Ok(Some(2.5)));
        assert_eq!(options.text("text"), Ok(Some("yes")));
        assert!(options.flag("text").is_err() && options.number("flag").is_err() && options.text("number").is_err());
        assert_eq!(options.flag("number").unwrap_err().to_string(), "option number is 2.5, expected true or false");
        assert_eq!(options.clone().without("text").text("text"), Ok(None));
        assert_eq!(options.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["flag", "number", "text"]);
    }
}
