//! Small whole numbers by how often each occurs: asymmetric numeral systems over ranges (rANS, Duda, 2014) with one
//! static model in front, or bits of one width where these are fewer bytes.
//!
//! A message begins with a byte that says which:
//!
//! - 0: each number in as many bits as the largest that there could be takes, the first in the lowest bits of the first
//!   byte; bits behind the last are 0.
//! - 1: how often each number occurs, of 4096 times in all, as LEB128 variable-length integers, where a 0 is followed
//!   by how many more numbers do not occur; then four states of 32 bits, and 16 bits at a time whenever one of them
//!   falls below 2^16. The number at place `i` comes from state `i` mod 4. States end at 2^16, where their encoder
//!   began.
//!
//! So no message of `n` numbers is longer than by width and one byte.

use crate::{Result, WireError};

const WIDTH: u8 = 0;
const RANGES: u8 = 1;

/// Frequencies add up to two to this.
const SCALE: u32 = 12;

/// The least value of a state between two numbers.
const LEAST: u32 = 1 << 16;

/// Numbers are coded in turns, so that a processor works on several at once.
const STATES: usize = 4;

/// Bits of a number below `end`.
fn width(end: usize) -> usize {
    (usize::BITS - end.saturating_sub(1).leading_zeros()) as usize
}

/// The most bytes that so many numbers below `end` take.
#[must_use]
pub fn most_symbol_bytes(count: usize, end: usize) -> usize {
    1 + (count * width(end)).div_ceil(8)
}

/// Numbers below `end` as bytes.
///
/// # Panics
///
/// If a number is not below `end`.
#[must_use]
pub fn encode_symbols(symbols: &[u32], end: usize) -> Vec<u8> {
    assert!(symbols.iter().all(|&symbol| (symbol as usize) < end), "numbers below {end}");
    let most = most_symbol_bytes(symbols.len(), end);
    match by_ranges(symbols, end) {
        Some(bytes) if bytes.len() < most => bytes,
        _ => by_width(symbols, width(end), most),
    }
}

/// The same back: so many numbers below `end`.
///
/// # Errors
///
/// If the bytes are not of so many such numbers.
pub fn decode_symbols(bytes: &[u8], count: usize, end: usize) -> Result<Vec<u32>> {
    let symbols = match bytes.split_first() {
        // No message is longer, which bounds what is made room for.
        _ if bytes.len() > most_symbol_bytes(count, end) => None,
        Some((&WIDTH, bits)) => from_width(bits, count, width(end)),
        Some((&RANGES, coded)) => from_ranges(coded, count, end),
        _ => None,
    };
    let symbols = symbols.filter(|symbols| symbols.iter().all(|&symbol| (symbol as usize) < end));
    symbols.ok_or_else(|| WireError::malformed(format!("expected {count} numbers below {end} in another form")))
}

fn by_width(symbols: &[u32], width: usize, bytes: usize) -> Vec<u8> {
    let mut into = Vec::with_capacity(bytes);
    into.push(WIDTH);
    let (mut held, mut bits) = (0u64, 0);
    for &symbol in symbols {
        held |= u64::from(symbol) << bits;
        bits += width;
        while bits >= 8 {
            into.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        into.push(held as u8);
    }
    into
}

fn from_width(bytes: &[u8], count: usize, width: usize) -> Option<Vec<u32>> {
    if bytes.len() != (count * width).div_ceil(8) || width > 32 {
        return None;
    }
    let mut symbols = Vec::with_capacity(count);
    let (mut held, mut bits, mut next) = (0u64, 0, bytes.iter());
    for _ in 0..count {
        while bits < width {
            held |= u64::from(*next.next()?) << bits;
            bits += 8;
        }
        symbols.push((held & ((1 << width) - 1)) as u32);
        held >>= width;
        bits -= width;
    }
    (held == 0).then_some(symbols)
}

/// How often each number occurs, of 2^12; none that occurs has 0. `None` where none occurs, or too many do.
fn frequencies(symbols: &[u32], end: usize) -> Option<Vec<u32>> {
    let mut counts = vec![0u64; end];
    symbols.iter().for_each(|&symbol| counts[symbol as usize] += 1);
    let occur = counts.iter().filter(|&&count| count > 0).count();
    let (total, all) = (symbols.len() as u64, 1i64 << SCALE);
    if occur == 0 || occur as i64 > all / 2 {
        return None;
    }
    let scaled = |&count: &u64| if count == 0 { 0 } else { ((count << SCALE) / total).max(1) as i64 };
    let mut scaled: Vec<i64> = counts.iter().map(scaled).collect();
    let mut left = all - scaled.iter().sum::<i64>();
    // What rounding has left goes to the most frequent, or comes from them: that changes their shares least.
    let mut order: Vec<usize> = (0..end).filter(|&symbol| counts[symbol] > 0).collect();
    order.sort_by_key(|&symbol| (std::cmp::Reverse(counts[symbol]), symbol));
    while left != 0 {
        for &symbol in &order {
            let step = if left > 0 { 1 } else { -1 };
            if left != 0 && scaled[symbol] + step > 0 {
                scaled[symbol] += step;
                left -= step;
            }
        }
    }
    Some(scaled.into_iter().map(|frequency| frequency as u32).collect())
}

/// Where each number's range of states begins.
fn starts(frequencies: &[u32]) -> Vec<u32> {
    let mut start = 0;
    let next = |frequency: &u32| {
        start += frequency;
        start - frequency
    };
    frequencies.iter().map(next).collect()
}

fn by_ranges(symbols: &[u32], end: usize) -> Option<Vec<u8>> {
    let frequencies = frequencies(symbols, end)?;
    let starts = starts(&frequencies);
    let mut states = [LEAST; STATES];
    let mut words = Vec::new();
    for (place, &symbol) in symbols.iter().enumerate().rev() {
        let (frequency, start) = (frequencies[symbol as usize], starts[symbol as usize]);
        let state = &mut states[place % STATES];
        // Above this the next step would leave 32 bits.
        if u64::from(*state) >= u64::from(frequency) << (32 - SCALE) {
            words.push(*state as u16);
            *state >>= 16;
        }
        *state = ((*state / frequency) << SCALE) + *state % frequency + start;
    }
    let mut bytes = vec![RANGES];
    put_model(&frequencies, &mut bytes);
    states.iter().for_each(|state| bytes.extend(state.to_le_bytes()));
    words.iter().rev().for_each(|word| bytes.extend(word.to_le_bytes()));
    Some(bytes)
}

fn put_model(frequencies: &[u32], into: &mut Vec<u8>) {
    let mut at = 0;
    while at < frequencies.len() {
        put(frequencies[at], into);
        at += 1;
        if frequencies[at - 1] == 0 {
            let more = frequencies[at..].iter().take_while(|&&frequency| frequency == 0).count();
            put(more as u32, into);
            at += more;
        }
    }
}

fn put(mut number: u32, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// A number of up to 21 bits, and what is behind it.
fn take(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0;
    for place in 0..3 {
        let byte = *bytes.get(place)?;
        number |= u32::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

/// Frequencies of numbers below `end`, and what is behind them; `None` unless they add up.
fn take_model(mut bytes: &[u8], end: usize) -> Option<(Vec<u32>, &[u8])> {
    let (mut frequencies, mut left) = (Vec::new(), 1u32 << SCALE);
    while frequencies.len() < end {
        let (frequency, rest) = take(bytes)?;
        bytes = rest;
        left = left.checked_sub(frequency)?;
        frequencies.push(frequency);
        if frequency == 0 {
            let (more, rest) = take(bytes)?;
            bytes = rest;
            let len = frequencies.len().checked_add(more as usize).filter(|&len| len <= end)?;
            frequencies.resize(len, 0);
        }
    }
    (left == 0).then_some((frequencies, bytes))
}

fn from_ranges(bytes: &[u8], count: usize, end: usize) -> Option<Vec<u32>> {
    let (frequencies, bytes) = take_model(bytes, end)?;
    // The number, and its range, of each value of the last bits of a state.
    let mut slots = Vec::with_capacity(1 << SCALE);
    for (symbol, (&frequency, start)) in frequencies.iter().zip(starts(&frequencies)).enumerate() {
        slots.extend(std::iter::repeat_n((symbol as u32, frequency as u16, start as u16), frequency as usize));
    }
    let (first, words) = bytes.split_at_checked(STATES * size_of::<u32>())?;
    let (words, []) = words.as_chunks::<2>() else { return None };
    let mut states = [0u32; STATES];
    states.iter_mut().zip(first.as_chunks().0).for_each(|(state, &bytes)| *state = u32::from_le_bytes(bytes));
    if states.iter().any(|&state| state < LEAST) {
        return None;
    }
    let (mut symbols, mut next) = (Vec::with_capacity(count), 0);
    for place in 0..count {
        let state = &mut states[place % STATES];
        let slot = *state & ((1 << SCALE) - 1);
        let (symbol, frequency, start) = slots[slot as usize];
        // A frequency of all of 2^12 leaves a state as it is; below 2^32 in any case.
        *state = u32::from(frequency) * (*state >> SCALE) + slot - u32::from(start);
        if *state < LEAST {
            *state = *state << 16 | u32::from(u16::from_le_bytes(*words.get(next)?));
            next += 1;
        }
        symbols.push(symbol);
    }
    // What was changed on its way ends elsewhere than it began, or is other numbers.
    (next == words.len() && states == [LEAST; STATES]).then_some(symbols)
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};
    use proptest::prelude::*;

    use super::*;

    /// So many numbers below `end`, of which low ones are likelier the larger `skew` is.
    fn drawn(count: usize, end: usize, skew: i32, seed: u64) -> Vec<u32> {
        let key = Key::new(seed, Purpose::Test);
        let number = |place: usize| (key.with(place as u64).unit().powi(skew) * end as f64) as usize;
        (0..count).map(|place| number(place).min(end - 1) as u32).collect()
    }

    fn entropy(symbols: &[u32]) -> f64 {
        let mut counts = std::collections::BTreeMap::<u32, f64>::new();
        symbols.iter().for_each(|&symbol| *counts.entry(symbol).or_default() += 1.0);
        counts.values().map(|count| count * (symbols.len() as f64 / count).log2()).sum()
    }

    proptest! {
        #[test]
        fn numbers_come_back_from_no_more_bytes_than_by_width_and_one(
            count in 0usize..3000, end in prop_oneof![1usize..5, 1usize..400, 1usize..65_537], skew in 1i32..12,
            seed in any::<u64>(),
        ) {
            let symbols = drawn(count, end, skew, seed);
            let bytes = encode_symbols(&symbols, end);
            prop_assert!(bytes.len() <= most_symbol_bytes(count, end));
            prop_assert_eq!(&decode_symbols(&bytes, count, end).unwrap(), &symbols);
            // They are none of one more, but for the same number again and again.
            let is_one = symbols.iter().all(|symbol| *symbol == symbols[0]);
            prop_assert!(bytes[0] == WIDTH || is_one || decode_symbols(&bytes, count + 1, end).is_err());
        }

        #[test]
        fn changed_bytes_are_refused_or_are_numbers_below_the_end(
            count in 0usize..300, end in 1usize..300, cut in 0usize..3, seed in any::<u64>(),
            changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..5),
        ) {
            let mut bytes = encode_symbols(&drawn(count, end, 6, seed), end);
            for (place, byte) in changes {
                let place = usize::from(place) % bytes.len();
                bytes[place] = byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            if let Ok(symbols) = decode_symbols(&bytes, count, end) {
                prop_assert_eq!(symbols.len(), count);
                prop_assert!(symbols.iter().all(|&symbol| (symbol as usize) < end));
            }
        }

        #[test]
        fn bytes_from_anywhere_are_refused_or_are_numbers_below_the_end(
            bytes in proptest::collection::vec(any::<u8>(), 0..60), form in 0u8..3, count in 0usize..80,
            end in 0usize..70_000,
        ) {
            let bytes = [vec![form], bytes].concat();
            if let Ok(symbols) = decode_symbols(&bytes, count, end) {
                prop_assert!(symbols.len() == count && symbols.iter().all(|&symbol| (symbol as usize) < end));
            }
        }
    }

    #[test]
    fn many_numbers_take_their_entropy_and_a_model() {
        for (end, skew) in [(2, 6), (40, 3), (246, 2), (256, 1), (1000, 8)] {
            let symbols = drawn(40_000, end, skew, 7);
            let (bytes, least) = (8.0 * encode_symbols(&symbols, end).len() as f64, entropy(&symbols));
            // A byte or two for each number that occurs, four states, and what 4096 shares round.
            assert!(bytes < 1.01 * least + 16.0 * end as f64 + 300.0, "{end} {skew}: {bytes} bits of {least}");
        }
    }

    #[test]
    fn numbers_that_are_all_the_same_take_a_model_alone() {
        for count in [1000, 100_000] {
            assert!(encode_symbols(&vec![7; count], 40).len() < 30);
        }
    }

    #[test]
    fn messages_are_what_the_format_says() {
        assert_eq!(encode_symbols(&[], 40), [WIDTH]);
        assert_eq!(encode_symbols(&[1, 2, 3], 4), [WIDTH, 0b11_10_01]);
        assert_eq!(encode_symbols(&[0; 9], 1), [WIDTH]);
        let all = encode_symbols(&[1; 1000], 3);
        assert_eq!(all[..6], [RANGES, 0, 0, 0x80, 0x20, 0]);
        assert_eq!(all[7..], LEAST.to_le_bytes().repeat(STATES));
    }
}
