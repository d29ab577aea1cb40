//! What two ends of a link say first.

/// The first bytes, with the version of what follows.
const MAGIC: &[u8; 16] = b"laconic site v1\n";

/// The most that a site may say for itself, in bytes.
pub const WORD_BYTES_MAX: usize = 1024;

/// The bytes before the word.
pub const HEAD_BYTES: usize = MAGIC.len() + 32 + 8 + 8 + 2;

/// What one end says when a connection begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The digest of what all sites have agreed on.
    pub agreement: [u8; 32],
    /// A number that this process has drawn: another one of the same site has forgotten everything.
    pub incarnation: u64,
    /// How many records of the peer have come.
    pub received: u64,
    /// What the site says for itself, such as a signature; at most [`WORD_BYTES_MAX`] bytes.
    pub word: Vec<u8>,
}

impl Hello {
    /// The bytes that are sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let word = &self.word[..self.word.len().min(WORD_BYTES_MAX)];
        let length = word.len() as u16;
        let numbers = [self.incarnation.to_le_bytes(), self.received.to_le_bytes()].concat();
        [&MAGIC[..], &self.agreement, &numbers, &length.to_le_bytes(), word].concat()
    }

    /// The hello whose word is still to come, and how long that is.
    ///
    /// # Errors
    ///
    /// If these are not the bytes of one, or its word is too long.
    pub fn parse(head: &[u8; HEAD_BYTES]) -> Result<(Hello, usize), String> {
        let (magic, rest) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err("it speaks another version, or is none of ours".to_owned());
        }
        let (agreement, rest) = rest.split_first_chunk().unwrap_or((&[0; 32], &[]));
        let (incarnation, rest) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let (received, rest) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let length = rest.first_chunk().map_or(0, |length| usize::from(u16::from_le_bytes(*length)));
        if length > WORD_BYTES_MAX {
            return Err(format!("its word has {length} bytes, and at most {WORD_BYTES_MAX} are read"));
        }
        let [incarnation, received] = [incarnation, received].map(|number| u64::from_le_bytes(*number));
        Ok((Hello { agreement: *agreement, incarnation, received, word: Vec::new() }, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_said_is_heard() {
        let hello = Hello { agreement: [7; 32], incarnation: 1 << 40, received: 3, word: b"a word".to_vec() };
        let bytes = hello.to_bytes();
        let (head, word) = bytes.split_first_chunk().expect("a head");
        let (heard, length) = Hello::parse(head).expect("a hello");
        assert_eq!((length, Hello { word: word.to_vec(), ..heard }), (6, hello));
    }

    proptest! {
        #[test]
        fn no_bytes_break_a_hello(head in prop::collection::vec(any::<u8>(), HEAD_BYTES), is_ours: bool) {
            let mut head: [u8; HEAD_BYTES] = head.try_into().expect("as many as were drawn");
            if is_ours {
                head[..MAGIC.len()].copy_from_slice(MAGIC);
            }
            if let Ok((_, length)) = Hello::parse(&head) {
                prop_assert!(is_ours && length <= WORD_BYTES_MAX);
            }
        }
    }
}
