//! Numbers by how often each occurs: bytes from anywhere are so many numbers below the end, or an error; and what is
//! encoded comes back.
#![no_main]

use laconic_wire::codec::{decode_symbols, encode_symbols, most_symbol_bytes};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([count, end, more], bytes)) = input.split_first_chunk::<3>() else { return };
    let (count, end) = (usize::from(*count), usize::from(*end) * if more % 2 == 1 { 300 } else { 1 });
    if let Ok(symbols) = decode_symbols(bytes, count, end) {
        assert!(symbols.len() == count && symbols.iter().all(|&symbol| (symbol as usize) < end));
        let coded = encode_symbols(&symbols, end);
        assert!(coded.len() <= most_symbol_bytes(count, end));
        assert_eq!(decode_symbols(&coded, count, end).expect("what was encoded"), symbols);
    }
    let symbols: Vec<u32> = bytes.iter().map(|&byte| byte.into()).collect();
    let coded = encode_symbols(&symbols, 256);
    assert_eq!(decode_symbols(&coded, symbols.len(), 256).expect("what was encoded"), symbols);
});
