//! How a site is reached, and how it reaches others: what iroh is asked for, and what not.

use std::time::Duration;

use iroh::endpoint::{Endpoint, IdleTimeout, PortmapperConfig, QuicTransportConfig, RelayMode, VarInt, presets};
use iroh::{EndpointAddr, PublicKey, RelayUrl, SecretKey, TransportAddr};

use super::{Meeting, Paths};
use crate::Rank;

/// What both ends call what they speak.
pub const ALPN: &[u8] = b"laconic/site/1";

/// What iroh has for most of its timers: the longest silence of a path, and how often it is broken.
const PATH_IDLE_MOST: Duration = Duration::from_secs(15);
const BEAT_MOST: Duration = Duration::from_secs(5);

/// Bytes of a stream that may be on their way.
const WINDOW: u32 = 16 << 20;

/// Why a connection is closed: all is said, this site gives up, or it wants nothing of the other.
pub const DONE: u32 = 0;
pub const GONE: u32 = 1;
pub const REFUSED: u32 = 2;

/// Binds the endpoint: this key, these relays and nobody else's, no lookup service, no port mapping, no early data.
pub async fn bind(meeting: &Meeting, relays: &[RelayUrl]) -> Result<Endpoint, String> {
    let mut builder = Endpoint::builder(presets::Minimal)
        .secret_key(SecretKey::from_bytes(&meeting.seed))
        .alpns(vec![ALPN.to_vec()])
        .portmapper_config(PortmapperConfig::Disabled)
        .max_tls_tickets(0)
        .transport_config(quic(meeting)?)
        .proxy_from_env();
    if meeting.paths != Paths::Direct {
        builder = builder.relay_mode(RelayMode::custom(relays.iter().cloned()));
    }
    if meeting.paths == Paths::Relay {
        builder = builder.clear_ip_transports();
    } else if let Some(bind) = meeting.bind {
        builder = builder.clear_ip_transports().bind_addr(bind).map_err(|error| format!("{bind}: {error}"))?;
    }
    builder.bind().await.map_err(|error| format!("listening: {error}"))
}

/// What connections are like: windows for 100 Mbit/s and a second on the way, and no search for addresses that nobody
/// has named, unless any way will do.
fn quic(meeting: &Meeting) -> Result<QuicTransportConfig, String> {
    let idle = IdleTimeout::try_from(meeting.idle).map_err(|error| format!("{:?}: {error}", meeting.idle))?;
    let beat = beat(meeting);
    let config = QuicTransportConfig::builder()
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(beat)
        .default_path_keep_alive_interval(beat)
        .default_path_max_idle_timeout(meeting.idle.min(PATH_IDLE_MOST))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .send_window(2 * u64::from(WINDOW));
    Ok(match meeting.paths {
        Paths::Any => config.build(),
        Paths::Relay | Paths::Direct => config.max_remote_nat_traversal_addresses(0).build(),
    })
}

/// How often a site that has nothing to say shows that it is there.
pub fn beat(meeting: &Meeting) -> Duration {
    (meeting.idle / 4).min(BEAT_MOST)
}

/// Where a site is to be dialled.
pub fn address(meeting: &Meeting, peer: Rank, relays: &[RelayUrl]) -> Result<EndpointAddr, String> {
    let site = &meeting.sites[peer.index()];
    let key = PublicKey::from_bytes(&site.key).map_err(|error| format!("the key of {}: {error}", site.name))?;
    let relays = relays.iter().filter(|_| meeting.paths != Paths::Direct).cloned().map(TransportAddr::Relay);
    let direct = site.addresses.iter().filter(|_| meeting.paths != Paths::Relay).copied().map(TransportAddr::Ip);
    Ok(EndpointAddr::from_parts(key, relays.chain(direct)))
}
