//! A relay of this machine, without TLS, for tests and rehearsals.

use std::net::SocketAddr;

use iroh_relay::server::{RelayConfig, Server, ServerConfig};

/// A relay that is running.
pub struct Relay {
    runtime: Option<tokio::runtime::Runtime>,
    server: Option<Server>,
    /// Where it is reached, such as `http://127.0.0.1:3340`.
    pub url: String,
    /// The address that it listens on.
    pub address: SocketAddr,
}

impl Relay {
    /// Starts one.
    ///
    /// # Panics
    /// If it cannot listen there.
    pub fn start(address: SocketAddr) -> Relay {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut config = ServerConfig::default();
        config.relay = Some(RelayConfig::new(address));
        let server = runtime.block_on(Server::spawn(config)).expect("a free address");
        let address = server.http_addr().expect("an address");
        let url = format!("http://{address}");
        Relay { runtime: Some(runtime), server: Some(server), url, address }
    }

    /// Stops it: its connections end.
    pub fn stop(&mut self) {
        if let (Some(runtime), Some(server)) = (self.runtime.take(), self.server.take()) {
            let _ = runtime.block_on(server.shutdown());
            runtime.shutdown_background();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop();
    }
}
