//! What a hostile Parquet file claims is compared with its bytes before the `parquet` crate makes room for it.

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

/// Looks at each page before the `parquet` crate does, because it makes room for as many values as a dictionary page or
/// the header of a delta encoding claims to have.
pub struct Guard {
    pages: Box<dyn PageReader>,
    descr: ColumnDescPtr,
    /// Whether the dictionary was there.
    dictionary: bool,
    /// So many bytes may lists, and texts that repeat parts of others, still unpack to: a run repeats a value for
    /// nothing.
    left: u64,
}

impl Guard {
    /// Of the pages of a column, whose lists and texts may unpack to so many bytes.
    pub fn new(pages: Box<dyn PageReader>, descr: ColumnDescPtr, left: u64) -> Guard {
        Guard { pages, descr, dictionary: false, left }
    }

    fn check(&mut self, page: &Page) -> parquet::errors::Result<()> {
        let refuse = |what: &str| Err(ParquetError::General(what.to_owned()));
        let values = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let fits = holds(buf, *num_values as usize, &self.descr);
                return if fits { Ok(()) } else { refuse("a dictionary larger than its page") };
            }
            Page::DataPage { buf, .. } => {
                let levels = [self.descr.max_rep_level(), self.descr.max_def_level()];
                let behind = |buf: &'_ [u8]| -> Option<usize> {
                    let length = u32::from_le_bytes(*buf.first_chunk()?) as usize;
                    buf.get(4 + length..).map(|_| 4 + length)
                };
                levels.iter().filter(|&&level| level > 0).try_fold(&buf[..], |rest, _| rest.get(behind(rest)?..))
            }
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..)
            }
        };
        let Some(values) = values else { return refuse("a page shorter than its levels") };
        if matches!(page.encoding(), Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY) && !self.dictionary {
            return refuse("a page that needs a dictionary before there is one");
        }
        let is_bytes = matches!(self.descr.physical_type(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
        let (most, encoding) = (u64::from(page.num_values()), page.encoding());
        if !is_bytes || !matches!(encoding, Encoding::DELTA_BYTE_ARRAY | Encoding::DELTA_LENGTH_BYTE_ARRAY) {
            return Ok(());
        }
        let Some((mut sum, mut rest)) = lengths(values, most) else { return refuse("broken lengths of texts") };
        if encoding == Encoding::DELTA_BYTE_ARRAY {
            // The first lengths are of what each text has in common with the one before, the others of the rest.
            let Some((of_rest, after)) = lengths(rest, most) else { return refuse("broken lengths of texts") };
            let left = self.left.checked_sub(sum);
            self.left = left.ok_or_else(|| ParquetError::General("texts unpack to too many bytes".to_owned()))?;
            (sum, rest) = (of_rest, after);
        }
        if sum <= rest.len() as u64 { Ok(()) } else { refuse("texts longer than their page") }
    }
}

/// The sum of lengths at the start of `bytes`, at most so many, as Parquet packs differences, and the bytes behind.
fn lengths(bytes: &[u8], most: u64) -> Option<(u64, &[u8])> {
    let mut rest = bytes.iter();
    let mut next = || varint(&mut rest.by_ref().copied());
    let [block, parts, count, first] = [next()?, next()?, next()?, next()?];
    let each = block.checked_div(parts).filter(|each| (1..=1 << 16).contains(each) && parts <= 1 << 16)?;
    let signed = |zigzag: u64| (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
    // A run of no bits promises values for nothing, so their number is held to a multiple of the page.
    let most = most.min((bytes.len() as u64).saturating_mul(1 << 12));
    let (mut value, mut left) = (signed(first), count);
    let mut sum = u64::try_from(value).ok().filter(|_| count > 0 && count <= most);
    if count == 0 {
        return Some((0, rest.as_slice()));
    }
    left -= 1;
    while left > 0 {
        let step = signed(varint(&mut rest.by_ref().copied())?);
        let (widths, behind) = rest.as_slice().split_at_checked(parts as usize)?;
        rest = behind.iter();
        for &width in widths {
            if left == 0 {
                break;
            }
            let (packed, behind) = rest.as_slice().split_at_checked(usize::from(width) * each as usize / 8)?;
            rest = behind.iter();
            for place in 0..each.min(left) as usize {
                value = value.checked_add(step)?.checked_add(bits(packed, place, usize::from(width))?)?;
                sum = Some(sum?.checked_add(u64::try_from(value).ok()?)?);
            }
            left -= each.min(left);
        }
    }
    Some((sum?, rest.as_slice()))
}

/// Number `place` of numbers of so many bits.
fn bits(packed: &[u8], place: usize, width: usize) -> Option<i64> {
    let (start, end) = (place * width, (place + 1) * width);
    if width > 64 {
        return None;
    }
    let mut word = [0; 16];
    let bytes = packed.get(start / 8..end.div_ceil(8))?;
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let value = u128::from_le_bytes(word) >> (start % 8) & ((1u128 << width) - 1);
    i64::try_from(value).ok()
}

/// Whether plainly encoded `bytes` hold so many values.
fn holds(bytes: &[u8], values: usize, of: &ColumnDescPtr) -> bool {
    let mut rest = bytes;
    match of.physical_type() {
        Type::FIXED_LEN_BYTE_ARRAY => values <= bytes.len() / of.type_length().max(1) as usize,
        Type::BYTE_ARRAY => (0..values).all(|_| {
            let after =
                rest.split_first_chunk().and_then(|(size, rest)| rest.get(u32::from_le_bytes(*size) as usize..));
            rest = after.unwrap_or(&[]);
            after.is_some()
        }),
        Type::INT64 | Type::DOUBLE => values <= bytes.len() / 8,
        Type::INT32 | Type::FLOAT => values <= bytes.len() / 4,
        _ => values <= bytes.len(),
    }
}

/// A number of seven bits a byte.
pub fn varint(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = bytes.next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

impl Iterator for Guard {
    type Item = parquet::errors::Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Guard {
    fn get_next_page(&mut self) -> parquet::errors::Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        self.dictionary |= matches!(page, Some(Page::DictionaryPage { .. }));
        if let Some(page @ (Page::DataPage { .. } | Page::DataPageV2 { .. })) = &page
            && self.descr.max_rep_level() > 0
        {
            let left = self.left.checked_sub(u64::from(page.num_values()) * 8);
            self.left = left.ok_or_else(|| ParquetError::General("lists unpack to too many values".to_owned()))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> parquet::errors::Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> parquet::errors::Result<()> {
        self.pages.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of 128 differences in parts of 32, as the format's description has it: 7, 5, 3, 1, 2, 3, 4, 5.
    const EXAMPLE: [u8; 40] = {
        let mut bytes = [0; 40];
        // 128 values in 4 parts, 8 numbers, the first of them 7; steps are counted from -2, two bits each.
        let head = [0x80, 0x01, 0x04, 0x08, 0x0e, 0x03, 0x02, 0x00, 0x00, 0x00];
        let mut at = 0;
        while at < head.len() {
            bytes[at] = head[at];
            at += 1;
        }
        // 0, 0, 0, 3, 3, 3, 3 from the lowest bit on, and a byte that belongs to what follows.
        bytes[10] = 0b1100_0000;
        bytes[11] = 0b0011_1111;
        bytes[18] = 0xaa;
        bytes
    };

    #[test]
    fn lengths_are_those_of_the_formats_own_example() {
        let (sum, rest) = lengths(&EXAMPLE, 8).unwrap();
        assert_eq!((sum, rest.len(), rest[0]), (30, 22, 0xaa));
        assert!(lengths(&EXAMPLE, 7).is_none(), "more than the page has");
        assert!(lengths(&EXAMPLE[..12], 8).is_none() && lengths(&[0x80, 0x01, 0, 8, 0], 8).is_none());
    }
}
