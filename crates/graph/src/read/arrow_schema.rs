//! What Parquet has no types for, as Arrow's writers note it in the file: durations, which are else plain integers.
//!
//! The note is Arrow's schema, a FlatBuffers message in the letters of base 64. Whatever in it is not as it should be
//! is as if there were no note.

/// The key of the note.
pub const KEY: &str = "ARROW:schema";

/// The number of durations in Arrow's list of types.
const DURATION: u8 = 18;

/// The columns that are durations, and how many of their units a day has.
pub fn durations(note: &str) -> Vec<(String, f64)> {
    let bytes = decoded(note);
    fields(&bytes).unwrap_or_default()
}

fn fields(bytes: &[u8]) -> Option<Vec<(String, f64)>> {
    // Older messages begin with their length alone.
    let start = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let of = Buffer(bytes.get(start..)?);
    let message = of.follow(0)?;
    let schema = of.follow(of.field(message, 2)?)?;
    let fields = of.follow(of.field(schema, 1)?)?;
    let mut found = Vec::new();
    for number in 0..of.word(fields)? {
        let field = of.follow(fields + 4 + 4 * number as usize)?;
        let is_duration = of.field(field, 2).and_then(|at| of.0.get(at)) == Some(&DURATION);
        if let (true, Some(name), Some(kind)) = (is_duration, of.field(field, 0), of.field(field, 3)) {
            // Milliseconds are what is meant where nothing is said.
            let unit = of.field(of.follow(kind)?, 0).and_then(|at| of.0.get(at)).copied().unwrap_or(1);
            found.push((of.text(of.follow(name)?)?, 86_400.0 * 1000f64.powi(unit.into())));
        }
    }
    Some(found)
}

/// Tables of fields, each of which says where the others are.
struct Buffer<'a>(&'a [u8]);

impl Buffer<'_> {
    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    fn short(&self, at: usize) -> Option<usize> {
        Some(u16::from_le_bytes(*self.0.get(at..)?.first_chunk()?).into())
    }

    /// Where the offset at `at` leads to.
    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(self.word(at)? as usize)
    }

    /// Where a field of a table is, if it is there.
    fn field(&self, table: usize, number: usize) -> Option<usize> {
        let back = self.word(table)? as i32;
        let fields = usize::try_from(i64::try_from(table).ok()? - i64::from(back)).ok()?;
        let place = 4 + 2 * number;
        let offset = if place + 2 <= self.short(fields)? { self.short(fields + place)? } else { 0 };
        (offset > 0).then_some(table + offset)
    }

    fn text(&self, at: usize) -> Option<String> {
        let bytes = self.0.get(at + 4..)?.get(..self.word(at)? as usize)?;
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

/// Bytes in the letters of base 64, up to the first that is none.
fn decoded(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::with_capacity(text.len() / 4 * 3));
    for six in text.bytes().map_while(value) {
        (bits, count) = (bits << 6 | u32::from(six), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As pyarrow 26 writes a table of `id` (integers), `wait` (µs), `x` (numbers) and `p` (ms), and Polars 2.1 one of
    /// `w` (ms).
    const NOTES: [&str; 2] = [
        "/////wgBAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAQAAACgAAAAXAAAADAAAAAEAAAAgP///wAA\
         ARIQAAAAGAAAAAQAAAAAAAAAAQAAAHAAAAAEAAQABAAAAKj///8AAAEDEAAAABQAAAAEAAAAAAAAAAEAAAB4AAAA1v///wAAAgDQ////\
         AAABEhAAAAAcAAAABAAAAAAAAAAEAAAAd2FpdAAABgAIAAYABgAAAAAAAgAQABQACAAGAAcADAAAABAAEAAAAAAAAQIQAAAAHAAAAAQA\
         AAAAAAAAAgAAAGlkAAAIAAwACAAHAAgAAAAAAAABQAAAAAAAAAA=",
        "/////2oAAAAEAAAA8v///xQAAAAEAAEAAAAKAAsACAAKAAQA+P///wwAAAAIAAgAAAAEAAEAAAAEAAAA7P///ywAAAAgAAAAGAAAAAES\
         AAAQABIABAAQABEACAAAAAwAAAAAAPz///8EAAQAAQAAAHcA",
    ];

    #[test]
    fn durations_are_found_and_broken_notes_say_nothing() {
        assert_eq!(durations(NOTES[0]), [("wait".to_owned(), 86_400e6), ("p".to_owned(), 86_400e3)]);
        assert_eq!(durations(NOTES[1]), [("w".to_owned(), 86_400e3)]);
        let mut bytes = NOTES[0].as_bytes().to_vec();
        for place in 0..bytes.len() {
            for letter in [b'A', b'/', b'g', b'='] {
                let before = std::mem::replace(&mut bytes[place], letter);
                assert!(durations(std::str::from_utf8(&bytes).unwrap()).len() <= 4);
                bytes[place] = before;
            }
            assert!(durations(&NOTES[0][..place]).len() <= 2);
        }
    }
}
