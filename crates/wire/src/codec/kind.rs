//! What is known of a codec before it is made, and the registry that finds it by its name. Which codecs there are is
//! said in `members.rs`.

use super::{Codec, Options};
use crate::{NO_CODEC, Result, WireError};

/// What frames and messages of errors say of a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodecId {
    /// The name in configurations and reports.
    pub name: &'static str,
    /// The number in frames.
    pub number: u8,
}

/// What of a [`Level`](super::Level) a codec looks at; the rest of a level changes nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// The ratio of columns.
    pub ratio: bool,
    /// The bits of values.
    pub bits: bool,
}

/// The bit of a number in frames that says that only some columns travel; see [`CodecKind::number`].
pub(super) const MASKED: u8 = 0x10;

/// What is known of a codec before it is made: an entry of a [`CodecRegistry`].
///
/// Written as a constant beside the codec, with [`CodecKind::PLAIN`] for whatever needs no saying. The flags are
/// promises that others build on: what a run predicts, saves and reports follows from them, and
/// [`laws::codecs`](crate::laws::codecs) holds a codec to them.
#[derive(Debug, Clone, Copy)]
pub struct CodecKind {
    /// The name in configurations and reports.
    pub name: &'static str,
    /// The number in frames, part of the wire format: never use one again for another codec.
    ///
    /// A frame of a masked codec has the inner codec's number with the bit 0x10 set, so that bit is the mask's, and
    /// every other number has it clear. 1 to 15 are this crate's; everybody else takes one from 32 on with the bit
    /// clear: 32 to 47, 64 to 79, 96 to 111, and so on up to 239. A codec that wraps another and that frames need not
    /// tell from the one inside has no number of its own, which is 0. A registry refuses what breaks these rules.
    pub number: u8,
    /// The options that it reads, by the names that they have in configurations.
    pub options: &'static [&'static str],
    /// What of a level it reads itself; a codec inside may read more.
    pub reads: Reads,
    /// Whether it stands around another codec, named by the option `inner`, `exact` if none is named.
    pub wraps: bool,
    /// Whether what arrives is what was sent, bit for bit, whatever the level.
    pub lossless: bool,
    /// Whether what arrives depends on chance, that is on the message's key.
    pub draws: bool,
    /// Whether what arrives of a row depends on the rows beside it in its message.
    pub mixes: bool,
    /// Whether a message depends on those before it: it uses the [`Memory`](super::Memory).
    pub remembers: bool,
    /// Whether a payload may be smaller than [`Codec::bytes`] says.
    pub varies: bool,
    /// Whether values may be missing from a message: it carries no figures then, and sums of parameters only where what
    /// is missing is added to the next ones.
    pub leaves_out: bool,
    /// Whether the first message of a stream has a state in front ([`Codec::state_bytes`]), which both ends remember.
    pub prepares: bool,
    /// Whether it takes a parameter as the matrix that it is; all others have parameters in rows of 256 values.
    pub of_matrices: bool,
    /// Makes a codec of this kind, and whatever codec is inside with the help of the registry.
    pub build: fn(&Options, &CodecRegistry) -> Result<Box<dyn Codec>>,
}

impl CodecKind {
    /// A codec without options that reads no level, loses something, and neither draws, remembers nor varies. Without
    /// name and number, and nothing can be made of it: write what differs, and `..CodecKind::PLAIN`.
    pub const PLAIN: CodecKind = CodecKind {
        name: "",
        number: NO_CODEC,
        options: &[],
        reads: Reads { ratio: false, bits: false },
        wraps: false,
        lossless: false,
        draws: false,
        mixes: false,
        remembers: false,
        varies: false,
        leaves_out: false,
        prepares: false,
        of_matrices: false,
        build: |_, _| Err(WireError::UnfitCodec { name: "", number: NO_CODEC, reason: "it says not how to make it" }),
    };

    /// What frames say of a codec of this kind that has a number of its own.
    pub const fn id(&self) -> CodecId {
        CodecId { name: self.name, number: self.number }
    }

    /// Why no registry may take this kind in, if so, wherever it comes from. The mask's own kind is in all of them.
    fn flaw(&self) -> Option<&'static str> {
        if self.name.is_empty() {
            return Some("it has no name");
        }
        if self.prepares && !self.remembers {
            return Some("what it prepares has to be remembered");
        }
        match self.number {
            NO_CODEC if self.wraps => None,
            NO_CODEC => Some("0 says that a frame was written by no codec"),
            number if number & MASKED != 0 => Some("the bit 0x10 says that a frame is masked"),
            _ => None,
        }
    }
}

/// The codecs that can be had by name. A value like any other: whoever has a codec of their own makes a registry with
/// it and hands that on; there is no global one.
///
/// ```
/// use laconic_wire::codec::{CodecRegistry, Options};
/// let registry = CodecRegistry::default();
/// assert!(["exact", "half", "quantised", "masked"].iter().all(|name| registry.names().any(|known| known == *name)));
/// let masked = registry.build("masked", &Options::default().with("inner", "half"))?;
/// assert_eq!(masked.id().number, 0x12);
/// # Ok::<(), laconic_wire::WireError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CodecRegistry {
    kinds: Vec<&'static CodecKind>,
}

impl CodecRegistry {
    /// A registry of these codecs, which are not looked at. A codec that wraps another and names none has the first of
    /// them inside.
    pub(super) fn of(kinds: &[&'static CodecKind]) -> CodecRegistry {
        CodecRegistry { kinds: kinds.to_vec() }
    }

    /// The same registry and one more codec.
    ///
    /// # Errors
    ///
    /// [`WireError::UnfitCodec`] if its name or number is taken or breaks the rules of [`CodecKind::number`].
    pub fn with(mut self, kind: &'static CodecKind) -> Result<CodecRegistry> {
        let (name, number) = (kind.name, kind.number);
        let taken = |known: &&&CodecKind| known.name == name || (number != NO_CODEC && known.number == number);
        let clash = self.kinds.iter().find(taken).map(|known| match known.name == name {
            true => "another codec has its name",
            false => "another codec has its number",
        });
        let theirs = (1..MASKED).contains(&number).then_some("the numbers 1 to 15 are those of laconic-wire");
        let flaw = kind.flaw().filter(|_| self.iter().all(|known| known.id() != kind.id()));
        match flaw.or(clash).or(theirs) {
            Some(reason) => Err(WireError::UnfitCodec { name, number, reason }),
            None => {
                self.kinds.push(kind);
                Ok(self)
            }
        }
    }

    /// The codec of this name.
    ///
    /// # Errors
    ///
    /// [`WireError::UnknownCodec`] with the names that there are.
    pub fn get(&self, name: &str) -> Result<&'static CodecKind> {
        let unknown = || {
            let known = self.names().collect::<Vec<_>>().join(", ");
            WireError::UnknownCodec { given: name.to_owned(), known }
        };
        self.iter().find(|kind| kind.name == name).ok_or_else(unknown)
    }

    /// All names, this crate's first and then in the order in which they joined.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.iter().map(|kind| kind.name)
    }

    /// All codecs, this crate's first and then in the order in which they joined.
    pub fn iter(&self) -> impl Iterator<Item = &'static CodecKind> {
        self.kinds.iter().copied()
    }

    /// What is known of a codec of this name with these options and of all that is inside it: it reads what any of them
    /// reads, draws, mixes, remembers, varies, leaves out or prepares if one does, and is lossless if all are. Number
    /// and options are its own.
    ///
    /// # Errors
    ///
    /// [`WireError::UnknownCodec`], also of a codec inside, and [`WireError::BadOption`] if `inner` is not a name.
    pub fn describe(&self, name: &str, options: &Options) -> Result<CodecKind> {
        let outer = *self.get(name)?;
        if !outer.wraps {
            return Ok(outer);
        }
        let inner = self.describe_inner(options)?;
        Ok(CodecKind {
            reads: Reads { ratio: outer.reads.ratio || inner.reads.ratio, bits: outer.reads.bits || inner.reads.bits },
            lossless: outer.lossless && inner.lossless,
            draws: outer.draws || inner.draws,
            mixes: outer.mixes || inner.mixes,
            remembers: outer.remembers || inner.remembers,
            varies: outer.varies || inner.varies,
            leaves_out: outer.leaves_out || inner.leaves_out,
            prepares: outer.prepares || inner.prepares,
            of_matrices: outer.of_matrices || inner.of_matrices,
            ..outer
        })
    }

    /// Makes the codec of this name, as the options say. Options that it does not read are passed over.
    ///
    /// # Errors
    ///
    /// [`WireError::UnknownCodec`], also of a codec inside, [`WireError::BadOption`], and whatever the codec itself
    /// objects to.
    pub fn build(&self, name: &str, options: &Options) -> Result<Box<dyn Codec>> {
        (self.get(name)?.build)(options, self)
    }

    /// Makes the codec that the option `inner` names, `exact` if none is named: for codecs around another. It gets the
    /// same options, but no `inner`, so that what is inside ends somewhere; of `grouped/quantised` the first has the
    /// second inside.
    ///
    /// # Errors
    ///
    /// Those of [`build`](CodecRegistry::build).
    pub fn build_inner(&self, options: &Options) -> Result<Box<dyn Codec>> {
        let (name, options) = self.inside(options)?;
        self.build(name, &options)
    }

    /// What is known of the codec that [`build_inner`](CodecRegistry::build_inner) makes.
    ///
    /// # Errors
    ///
    /// Those of [`describe`](CodecRegistry::describe).
    pub fn describe_inner(&self, options: &Options) -> Result<CodecKind> {
        let (name, options) = self.inside(options)?;
        self.describe(name, &options)
    }

    /// The name of the codec inside one with these options, and its own options.
    ///
    /// # Errors
    ///
    /// [`WireError::BadOption`] if `inner` is not a name.
    pub fn inside<'a>(&self, options: &'a Options) -> Result<(&'a str, Options)> {
        let (name, rest) = (options.text("inner")?.unwrap_or(self.kinds[0].name), options.clone().without("inner"));
        Ok(match name.split_once('/') {
            Some((name, inside)) => (name, rest.with("inner", inside)),
            None => (name, rest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Exact;
    use super::*;

    const FINE: CodecKind = CodecKind { name: "fine", number: 0x20, build: Exact::KIND.build, ..CodecKind::PLAIN };

    fn reason(kind: &'static CodecKind) -> &'static str {
        match CodecRegistry::default().with(&FINE).unwrap().with(kind) {
            Err(WireError::UnfitCodec { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_codec_of_somebody_elses_is_found_and_can_be_masked() {
        let registry = CodecRegistry::default().with(&FINE).unwrap();
        assert_eq!(registry.names().last(), Some("fine"));
        assert!(registry.build("fine", &Options::default()).is_ok());
        assert!(registry.build("masked", &Options::default().with("inner", "fine")).is_ok());
        assert!(CodecRegistry::default().get("fine").is_err());
    }

    #[test]
    fn clashes_of_names_and_numbers_are_errors() {
        assert_eq!(reason(&CodecKind { number: 0x21, ..FINE }), "another codec has its name");
        assert_eq!(reason(&CodecKind { name: "other", ..FINE }), "another codec has its number");
        assert_eq!(reason(&CodecKind { name: "other", number: 2, ..FINE }), "another codec has its number");
        assert_eq!(
            reason(&CodecKind { name: "other", number: 15, ..FINE }),
            "the numbers 1 to 15 are those of laconic-wire"
        );
        for number in [0x10, 0x11, 0x30, 0xff] {
            // A masked frame of codec 0x20 says 0x30.
            let kind: &'static CodecKind = Box::leak(Box::new(CodecKind { name: "other", number, ..FINE }));
            assert_eq!(reason(kind), "the bit 0x10 says that a frame is masked");
        }
        assert_eq!(reason(&CodecKind { name: "", number: 0x40, ..FINE }), "it has no name");
        assert_eq!(
            reason(&CodecKind { name: "other", number: 0, ..FINE }),
            "0 says that a frame was written by no codec"
        );
        let around: &'static CodecKind = &CodecKind { name: "around", number: 0, wraps: true, ..FINE };
        assert!(CodecRegistry::default().with(around).is_ok());
    }
}
