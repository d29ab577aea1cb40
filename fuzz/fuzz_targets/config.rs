//! Configurations: a file and, after a NUL each, overrides. What is accepted is the same when read back.
#![no_main]

use laconic_fuzz::apply;
use laconic_train::Config;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut bytes = Config::default().to_toml().expect("plain values").into_bytes();
    apply(input, &mut bytes);
    let Ok(text) = String::from_utf8(bytes) else { return };
    let mut pieces = text.split('\0').map(str::to_owned);
    let text = pieces.next().unwrap_or_default();
    match Config::parse(&text, &pieces.collect::<Vec<_>>()) {
        Ok(config) => {
            let resolved = config.to_toml().expect("what was read can be written");
            let again = Config::parse(&resolved, &[]).expect("a resolved configuration is a configuration");
            assert_eq!(again.to_toml().expect("as before"), resolved);
        }
        Err(error) => assert!(!input.is_empty(), "the default configuration is refused: {error}"),
    }
});
