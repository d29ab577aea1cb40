#!/usr/bin/env bash
# flate2 1.1.10 with zlib-rs 0.6.8: after `flush()` a `write::DeflateEncoder` may still hold part of what was written.
#
# Whoever packs pieces on several threads flushes an encoder for each, takes the bytes and joins them: a deflated stream
# may end at a flush and go on in another encoder. Seen for 1 MiB at level 1, by what stands in the encoder's vector
# after `flush()`:
#   flate2 1.1.10, zlib-rs       not readable: the last bytes come at `finish()` alone, and `flush()` says Ok
#   flate2 1.1.10, miniz_oxide   readable
#   flate2 1.1.11, zlib-rs       readable
# Which of the two packs is decided by features that any crate of a build may switch on. With 1.1.10, ask the stream itself
# (`Compress::compress_vec` with `FlushCompress::Sync`) until room is left in the vector.
#
# Exit code 0: as described. 1: something of it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset CARGO_TARGET_DIR
mkdir "$folder/src"
cat > "$folder/src/main.rs" <<'RUST'
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use std::io::{Read, Write};

fn main() {
    let given: Vec<u8> = (0..1u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(1));
    encoder.write_all(&given).unwrap();
    encoder.flush().unwrap();
    let flushed = encoder.get_ref().clone();
    let mut found = vec![0; given.len()];
    let is_whole = DeflateDecoder::new(&flushed[..]).read_exact(&mut found).is_ok() && found == given;
    println!("{}", if is_whole { "readable" } else { "not readable" });
}
RUST
say() {
    printf '[package]\nname = "flush"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s\n' "$2" > "$folder/Cargo.toml"
    rm -f "$folder/Cargo.lock"
    cargo install --quiet --force --path "$folder" --root "$folder"
    seen=$("$folder/bin/flush")
    echo "$1: $seen"
    [ "$seen" = "$3" ] || { echo "expected: $3"; exit 1; }
}
zlib='flate2 = { version = "=VERSION", default-features = false, features = ["zlib-rs"] }
zlib-rs = "=0.6.8"'
say "1.1.10, zlib-rs" "${zlib/VERSION/1.1.10}" "not readable"
say "1.1.10, miniz_oxide" 'flate2 = "=1.1.10"' "readable"
say "1.1.11, zlib-rs" "${zlib/VERSION/1.1.11}" "readable"
