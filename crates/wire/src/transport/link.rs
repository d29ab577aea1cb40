//! The shape of a link: how long a frame takes. A ladder of named links, each with its physical reason.

use crate::{Result, WireError};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A link's latency, one way, and the bandwidth of the sender's uplink.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkShape {
    /// From the last bit sent to the last bit received.
    pub latency: Duration,
    /// How fast bits leave the sender.
    pub bits_per_second: f64,
}

/// A rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedLink {
    /// The name in configurations.
    pub name: &'static str,
    /// Its latency and bandwidth.
    pub shape: LinkShape,
    /// Where such a link is found and what its numbers come from.
    pub reason: &'static str,
}

const fn link(name: &'static str, mbit: f64, latency_us: u64, reason: &'static str) -> NamedLink {
    let shape = LinkShape { latency: Duration::from_micros(latency_us), bits_per_second: mbit * 1e6 };
    NamedLink { name, shape, reason }
}

/// The named links, from the fastest down.
pub const LINKS: [NamedLink; 9] = [
    link("loopback", 20_000.0, 10, "two processes of one machine: the kernel copies every byte twice"),
    link("lan-10gbit-50us", 10_000.0, 50, "servers in one rack: a switch and the network stacks of both ends"),
    link("lan-1gbit-1ms", 1_000.0, 1_000, "an office or a laboratory: copper, several switches, busy machines"),
    link(
        "metro-1gbit-5ms",
        1_000.0,
        5_000,
        "two sites of a region: 200 km of glass take 1 ms, routers and firewalls the rest",
    ),
    link(
        "wan-100mbit-40ms",
        100.0,
        40_000,
        "two sites of a continent: 4,000 km of glass take 20 ms, detours as long again",
    ),
    link(
        "wan-20mbit-80ms",
        20.0,
        80_000,
        "two continents over an ordinary line's uplink: 10,000 km of glass take 50 ms",
    ),
    link(
        "mobile-10mbit-60ms",
        10.0,
        60_000,
        "the uplink of a 4G modem: waiting for a slot, and a detour through the operator's core",
    ),
    link(
        "satellite-20mbit-300ms",
        20.0,
        300_000,
        "geostationary: up and down are 72,000 km, 240 ms at the speed of light",
    ),
    link(
        "bluetooth-1mbit-30ms",
        1.0,
        30_000,
        "a wearable on Bluetooth Low Energy: 1 Mbit/s on the air, a turn every 30 ms",
    ),
];

impl LinkShape {
    /// How long a frame occupies the uplink.
    pub fn transfer(&self, framed_bytes: usize) -> Duration {
        // A cast from f64 saturates, so that the slowest link imaginable is merely very slow.
        Duration::from_nanos((framed_bytes as f64 * 8e9 / self.bits_per_second).round() as u64)
    }
}

/// What a whole run puts on its links, as far as their time depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// What leaves the busiest uplink, framed.
    pub bytes: u64,
    /// How many exchanges wait for one another.
    pub exchanges: u64,
    /// The bytes of a frame of the kind that has the largest.
    pub largest: u64,
    /// How many of the exchanges have frames that are longer than [`EAGER`].
    pub long: u64,
}

/// MPI over TCP sends a frame of up to this size at once; a longer one begins with a question and its answer.
pub const EAGER: u64 = 4 << 20;

/// How many latencies pass before the first exchange and after the last: processes meet over their launcher, connect,
/// tell each other where they are, and take leave. Measured with Open MPI 4.1.4 on three machines.
const START: f64 = 15.0;

/// What passes besides, whatever the link, until processes have started and begin: seconds, measured with the above.
const STARTED: f64 = 0.3;

/// What a connection sends at once before the other end has answered: ten segments of Ethernet.
const FIRST_WINDOW: f64 = 14_600.0;

/// Bytes on the wire for each byte of a frame: headers of TCP, IP and the library, and answers. Measured 1.053 to
/// 1.066.
const HEADERS: f64 = 1.058;

/// What carries frames over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// The model alone: each frame leaves at once and arrives a latency later.
    Nothing,
    /// MPI over TCP, with what connections, first messages and long ones cost besides.
    Tcp,
}

impl LinkShape {
    /// How long a run is on this link if nothing overlaps, in seconds, and how much of it passes before the first
    /// exchange, in first messages and after the last.
    pub fn seconds(&self, load: &Load, carrier: Carrier) -> [f64; 2] {
        let (latency, rate) = (self.latency.as_secs_f64(), self.bits_per_second / 8.0);
        let plain = load.bytes as f64 / rate + load.exchanges as f64 * latency;
        if carrier == Carrier::Nothing {
            return [plain, 0.0];
        }
        // What a connection has under way doubles with each answer, until it fills the link.
        let fills = (load.largest as f64).min(2.0 * latency * rate);
        let flights = (fills / FIRST_WINDOW + 1.0).log2().ceil().max(1.0);
        let start = STARTED + latency * (START + 2.0 * (flights - 1.0));
        let more = (HEADERS - 1.0) * load.bytes as f64 / rate + 2.0 * load.long as f64 * latency;
        [plain + more + start, start]
    }
}

/// As numbers: `100mbit,40ms`, which parses back.
impl fmt::Display for LinkShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}mbit,{}ms", self.bits_per_second / 1e6, self.latency.as_secs_f64() * 1e3)
    }
}

/// Reads a name of the ladder, or bandwidth and latency such as `100mbit,40ms` (units: `kbit`, `mbit`,
/// `gbit` per second; `us`, `ms`, `s`).
impl FromStr for LinkShape {
    type Err = WireError;

    fn from_str(text: &str) -> Result<LinkShape> {
        let given = text.trim();
        if let Some(link) = LINKS.iter().find(|link| link.name == given) {
            return Ok(link.shape);
        }
        numbers(given).map_err(|reason| WireError::UnknownLink {
            given: given.to_owned(),
            reason,
            known: LINKS.map(|link| link.name).join(", "),
        })
    }
}

fn numbers(text: &str) -> std::result::Result<LinkShape, &'static str> {
    let (bandwidth, latency) = text.split_once(',').ok_or("no comma between bandwidth and latency")?;
    let bits_per_second = with_unit(bandwidth, &[("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)])
        .filter(|&bits| bits >= 1.0)
        .ok_or("the bandwidth must be positive, in kbit, mbit or gbit")?;
    let latency = with_unit(latency, &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)])
        .filter(|&seconds| (0.0..=3600.0).contains(&seconds))
        .ok_or("the latency must be 0 to 3600 s, in us, ms or s")?;
    // Through whole nanoseconds, so that 0.04 s and 40 ms are the same link.
    Ok(LinkShape { latency: Duration::from_nanos((latency * 1e9).round() as u64), bits_per_second })
}

fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let (number, factor) = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let number: f64 = number.trim().parse().ok()?;
    (number * factor).is_finite().then_some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_tells_its_own_numbers_and_numbers_parse_back() {
        for link in LINKS {
            assert_eq!(link.name.parse::<LinkShape>().unwrap(), link.shape);
            assert_eq!(link.shape.to_string().parse::<LinkShape>().unwrap(), link.shape, "{}", link.name);
            if let [_, bandwidth, latency] = link.name.split('-').collect::<Vec<_>>()[..] {
                assert_eq!(format!("{bandwidth},{latency}").parse::<LinkShape>().unwrap(), link.shape);
            }
        }
    }

    #[test]
    fn a_thousand_bytes_take_the_closed_form() {
        let shape: LinkShape = "100mbit, 40 ms".parse().unwrap();
        assert_eq!(shape.transfer(1000), Duration::from_micros(80));
    }

    #[test]
    fn a_run_over_tcp_takes_what_its_connections_and_long_frames_cost_besides() {
        let shape: LinkShape = "8mbit,100ms".parse().unwrap();
        let load = Load { bytes: 1_000_000, exchanges: 20, largest: 10_000, long: 0 };
        assert_eq!(shape.seconds(&load, Carrier::Nothing), [3.0, 0.0]);
        let close = |load: &Load, expected: [f64; 2]| {
            let found = shape.seconds(load, Carrier::Tcp);
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}, {expected:?}");
        };
        close(&load, [3.0 + 0.058 + 1.8, 1.8]);
        // 43,800 bytes are three windows, 14,600 and twice as many: one answer is waited for.
        close(&Load { largest: 43_800, ..load }, [3.0 + 0.058 + 2.0, 2.0]);
        // What fills the link, 200 kB in an answer's time, is as fast as it gets: 3.88 windows, so four.
        close(&Load { largest: 5_000_000, long: 3, ..load }, [3.0 + 0.058 + 0.6 + 2.4, 2.4]);
    }

    #[test]
    fn what_is_no_link_is_refused_with_the_names() {
        for text in [
            "",
            "wan",
            "100mbit",
            "100mbit,",
            "mbit,1ms",
            "0mbit,1ms",
            "-1mbit,1ms",
            "nanmbit,1ms",
            "1mbit,infs",
            "1mbit,2h",
        ] {
            let error = text.parse::<LinkShape>().unwrap_err().to_string();
            assert!(error.contains("wan-100mbit-40ms") && error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
