//! What one worker alone remembers between rounds, as named arrays of numbers: late rows, last messages, bit-widths,
//! residuals, its own optimiser where models are averaged only now and then.
//!
//! Plain data: who remembers something puts it in ([`Remembers::save`]) and takes it back ([`Remembers::restore`]);
//! what nobody takes back is an error ([`Saved::finish`]), so that nothing is lost without a word. The file stands in
//! [`crate::record::state`].

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use laconic_wire::{Direction, Rank};

use crate::error::{Result, TrainError};

/// What a worker remembers between rounds that no other knows, so that it cannot be shared out anew among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnMemory {
    /// The key of the configuration that makes it.
    pub key: &'static str,
    /// What it is, in words.
    pub what: &'static str,
}

/// Something that has to survive a resumed run.
pub trait Remembers {
    /// Puts everything into `saved`.
    fn save(&self, saved: &mut Saved);

    /// Takes it back.
    ///
    /// # Errors
    /// If what was saved does not fit.
    fn restore(&mut self, saved: &mut Saved) -> Result<()>;
}

/// Whose messages an array is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    /// The layer, counted over stages.
    pub layer: u16,
    /// Which way the rows run through the model.
    pub direction: Direction,
    /// The other end, and whether messages go out to it; `None` for all peers together.
    pub end: Option<(Rank, bool)>,
}

/// The name of an array.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// What it holds, such as `widths`.
    pub what: String,
    /// Whose; `None` for what a worker has one of.
    pub stream: Option<Stream>,
}

impl Name {
    /// The name of what a worker has one of.
    pub fn one(what: impl Into<String>) -> Name {
        Name { what: what.into(), stream: None }
    }

    /// The name of what belongs to a layer's messages in one direction, with all peers or with one.
    pub fn of(what: &str, (layer, direction): (u16, Direction), end: Option<(Rank, bool)>) -> Name {
        Name { what: what.to_owned(), stream: Some(Stream { layer, direction, end }) }
    }
}

/// `widths`, `late.arrived/1/forward`, `widths/1/forward/2/out`.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        let Some(Stream { layer, direction, end }) = self.stream else { return Ok(()) };
        write!(f, "/{layer}/{}", direction.name())?;
        match end {
            Some((peer, outgoing)) => write!(f, "/{peer}/{}", if outgoing { "out" } else { "in" }),
            None => Ok(()),
        }
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Name, String> {
        let odd = || format!("{text}: expected a name such as widths/1/forward/2/out");
        let parts: Vec<&str> = text.split('/').collect();
        let direction = |name: &str| [Direction::Forward, Direction::Reverse].into_iter().find(|d| d.name() == name);
        let stream = match parts[1..] {
            [] => None,
            [layer, way] => Some((layer, way, None)),
            [layer, way, peer, "out"] => Some((layer, way, Some((peer, true)))),
            [layer, way, peer, "in"] => Some((layer, way, Some((peer, false)))),
            _ => return Err(odd()),
        };
        let stream = match stream {
            None => None,
            Some((layer, way, end)) => Some(Stream {
                layer: layer.parse().map_err(|_| odd())?,
                direction: direction(way).ok_or_else(odd)?,
                end: match end {
                    Some((peer, outgoing)) => Some((Rank(peer.parse().map_err(|_| odd())?), outgoing)),
                    None => None,
                },
            }),
        };
        Ok(Name { what: parts[0].to_owned(), stream })
    }
}

/// The numbers of an array, each kind as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Rows, residuals, weights.
    F32(Vec<f32>),
    /// Sums.
    F64(Vec<f64>),
    /// Widths in bits.
    U8(Vec<u8>),
    /// Counters.
    U32(Vec<u32>),
}

/// A kind of number that can be saved.
pub trait Number: Copy {
    /// The numbers as an array.
    fn wrap(values: Vec<Self>) -> Numbers;

    /// The numbers of an array of this kind.
    fn unwrap(numbers: Numbers) -> Option<Vec<Self>>;
}

macro_rules! number {
    ($($kind:ty: $variant:ident),*) => {$(
        impl Number for $kind {
            fn wrap(values: Vec<Self>) -> Numbers {
                Numbers::$variant(values)
            }

            fn unwrap(numbers: Numbers) -> Option<Vec<Self>> {
                match numbers {
                    Numbers::$variant(values) => Some(values),
                    _ => None,
                }
            }
        }
    )*};
}

number!(f32: F32, f64: F64, u8: U8, u32: U32);

impl Numbers {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Numbers::F32(values) => values.len(),
            Numbers::F64(values) => values.len(),
            Numbers::U8(values) => values.len(),
            Numbers::U32(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An array of a layer's messages with whose it is and its shape.
pub type Taken<T> = (Stream, Vec<usize>, Vec<T>);

/// Named arrays, each with its shape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saved {
    arrays: BTreeMap<Name, (Vec<usize>, Numbers)>,
}

impl Saved {
    /// Puts a flat array under a name.
    pub fn put<T: Number>(&mut self, name: Name, values: &[T]) {
        self.put_shaped(name, vec![values.len()], values);
    }

    /// Puts an array of this shape under a name.
    pub fn put_shaped<T: Number>(&mut self, name: Name, shape: Vec<usize>, values: &[T]) {
        self.arrays.insert(name, (shape, T::wrap(values.to_vec())));
    }

    /// Puts numbers of any kind under a name; for readers of files.
    pub(crate) fn insert(&mut self, name: Name, shape: Vec<usize>, numbers: Numbers) {
        self.arrays.insert(name, (shape, numbers));
    }

    /// Everything, in the order of names: shapes and numbers.
    pub fn into_arrays(self) -> impl Iterator<Item = (Name, (Vec<usize>, Numbers))> {
        self.arrays.into_iter()
    }

    /// Takes the array under a name, if there is one.
    ///
    /// # Errors
    /// If its numbers are of another kind.
    pub fn take<T: Number>(&mut self, name: &Name) -> Result<Option<Vec<T>>> {
        match self.arrays.remove(name) {
            Some((_, numbers)) => T::unwrap(numbers).map(Some).ok_or_else(|| odd(name, "numbers of another kind")),
            None => Ok(None),
        }
    }

    /// Takes all arrays of layers' messages that are called `what`, with their shapes.
    ///
    /// # Errors
    /// If the numbers of one are of another kind.
    pub fn take_streams<T: Number>(&mut self, what: &str) -> Result<Vec<Taken<T>>> {
        let is_wanted = |name: &&Name| name.what == what && name.stream.is_some();
        let names: Vec<Name> = self.arrays.keys().filter(is_wanted).cloned().collect();
        let mut taken = Vec::with_capacity(names.len());
        for name in names {
            let (Some(stream), Some((shape, numbers))) = (name.stream, self.arrays.remove(&name)) else { continue };
            let values = T::unwrap(numbers).ok_or_else(|| odd(&name, "numbers of another kind"))?;
            taken.push((stream, shape, values));
        }
        Ok(taken)
    }

    /// Ends taking back.
    ///
    /// # Errors
    /// If something is left that nobody knows.
    pub fn finish(self) -> Result<()> {
        self.arrays.keys().next().map_or(Ok(()), |name| Err(odd(name, "something that this run does not remember")))
    }
}

/// An entry that does not fit this run.
pub fn odd(name: &Name, what: &str) -> TrainError {
    TrainError::state(format!("{name}: found {what}; is this the state of another run?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_read_back_and_no_text_makes_the_reader_panic(
            layer: u16, reverse: bool, peer: u32, end in 0..3u8, text in "\\PC{0,30}"
        ) {
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            let end = (end > 0).then_some((Rank(peer), end == 1));
            let name = Name::of("late.arrived", (layer, direction), end);
            prop_assert_eq!(name.to_string().parse::<Name>(), Ok(name));
            let _ = text.parse::<Name>();
        }
    }

    #[test]
    fn what_nobody_takes_back_is_an_error_and_so_is_another_kind_of_number() {
        let mut saved = Saved::default();
        saved.put(Name::one("residual"), &[1.0f32]);
        assert!(saved.clone().finish().expect_err("left over").to_string().contains("residual"));
        assert!(saved.clone().take::<u8>(&Name::one("residual")).is_err());
        assert_eq!(saved.take::<f32>(&Name::one("residual")).expect("of its kind"), Some(vec![1.0]));
        assert!(saved.finish().is_ok());
    }
}
