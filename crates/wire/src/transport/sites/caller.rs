//! Who calls in a site's name, and whether that is the process that this one runs with.

use std::time::Duration;

use iroh::endpoint::{Connection, RecvStream, SendStream, VarInt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::endpoint::REFUSED;
use super::hello::{HEAD_BYTES, Hello};

/// What a caller says first, with the streams on which it does.
pub async fn hear(connection: &Connection) -> Option<Said> {
    let (to, mut from) = connection.accept_bi().await.ok()?;
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head).await.ok()?;
    Some((to, from, head))
}

/// The streams of a caller, and the first that came over them.
pub type Said = (SendStream, RecvStream, [u8; HEAD_BYTES]);

/// A connection, and what a peer has said that has called.
pub struct Reached {
    pub connection: Connection,
    pub said: Option<Said>,
}

impl Reached {
    /// Tells a caller why it is not wanted.
    pub fn turn_away(&self, what: &str) {
        self.connection.close(VarInt::from_u32(REFUSED), what.as_bytes());
    }
}

/// What is known of a peer when somebody calls in its name.
pub struct Known<'a> {
    pub hello: &'a Hello,
    /// The incarnation of the peer, once it has come.
    pub theirs: Option<u64>,
    /// How long nothing comes from a process that is no more.
    pub silence: Duration,
}

impl Known<'_> {
    /// Whether this site runs with who says so; false of another process than the one that it runs with.
    ///
    /// # Errors
    /// If that has agreed on something else.
    pub fn accepts(&self, theirs: &Hello) -> Result<bool, String> {
        let short = |digest: &[u8; 32]| digest[..4].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        if theirs.agreement != self.hello.agreement {
            let [there, here] = [&theirs.agreement, &self.hello.agreement].map(short);
            return Err(format!("another contract is joined there ({there}…) than here ({here}…)"));
        }
        Ok(self.theirs.is_none_or(|known| known == theirs.incarnation))
    }

    /// The connection that takes the place of this one. Whoever else calls is turned away: also another process with
    /// the peer's key, unless nothing comes any more from the one that is known.
    pub async fn replaced(&self, connection: &Connection, calls: &mut UnboundedReceiver<Reached>) -> Reached {
        loop {
            let Some(newer) = calls.recv().await else { std::future::pending().await };
            let head =
                newer.said.as_ref().map(|(_, _, head)| Hello::parse(head).and_then(|(hello, _)| self.accepts(&hello)));
            match head {
                Some(Ok(true)) => return newer,
                Some(Ok(false)) => {
                    let before = connection.stats().udp_rx.bytes;
                    sleep(self.silence).await;
                    if connection.stats().udp_rx.bytes == before {
                        return newer;
                    }
                    newer.turn_away("another process with this site's key is in the run already; stop that one first");
                }
                Some(Err(what)) => newer.turn_away(&what),
                None => newer.turn_away(""),
            }
        }
    }
}
