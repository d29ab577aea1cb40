//! `laconic-relay-tests [ADDRESS]`: a relay without TLS until it is killed.

use laconic_relay_tests::Relay;

fn main() {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3340".to_owned());
    let relay = Relay::start(address.parse().expect("an address such as 127.0.0.1:3340"));
    println!("{}", relay.url);
    loop {
        std::thread::park();
    }
}
