//! A peer that sends anything at all can make a collective fail, but not panic, hang or fill the memory.

#[path = "foreign_codecs.rs"]
mod foreign_codecs;

use laconic_wire::collectives::*;
use laconic_wire::transport::End;
use laconic_wire::*;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const TAG: Tag = Tag { round: 5, ..Tag::new(Content::Agreement, FramePurpose::StartUp) };

/// A transport whose peers answer every wait with the next of these payloads, and are gone after the last.
struct Script {
    end: End,
    payloads: std::vec::IntoIter<Vec<u8>>,
    stamped: bool,
    codec: u8,
}

impl Script {
    fn new(rank: u32, size: usize, payloads: Vec<Vec<u8>>) -> Script {
        let end = End::new(Rank(rank), size, Duration::from_secs(10));
        Script { end, payloads: payloads.into_iter(), stamped: false, codec: NO_CODEC }
    }
}

impl Transport for Script {
    fn end(&self) -> &End {
        &self.end
    }

    fn end_mut(&mut self) -> &mut End {
        &mut self.end
    }

    fn send(&mut self, _: Rank, _: Frame) -> Result<()> {
        Ok(())
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        let gone = WireError::Gone { rank: self.rank(), peer: from, tag, sending: false };
        let payload = self.payloads.next().ok_or(gone)?;
        let mut frame = Frame::new(tag, Vec::new());
        frame.payload_mut().extend_from_slice(&payload);
        frame.set_codec(self.codec);
        let mut bytes = frame.into_bytes();
        if self.stamped
            && let Some(rest) = payload.len().checked_sub(8)
        {
            // The last eight bytes are the stamp of a link model.
            bytes[7] = 8;
            bytes[16..24].copy_from_slice(&(rest as u64).to_le_bytes());
        }
        Frame::parse(bytes, 1 << 20)
    }

    fn poll(&mut self, _: Rank) -> Result<Option<Frame>> {
        Ok(None)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..6)
}

proptest! {
    #[test]
    fn collectives_survive_any_payload(
        payloads in payloads(),
        rank in 0u32..3,
        root in 0u32..3,
        len in 0usize..12,
        extras in 0usize..3,
    ) {
        let script = || Script::new(rank, 3, payloads.clone());
        let registry = codec::CodecRegistry::default();
        let foreign = [&foreign_codecs::POWER, &foreign_codecs::SPARSE, &foreign_codecs::SCALE];
        for kind in registry.iter().chain(foreign) {
            let codec = (kind.build)(&codec::Options::default(), &registry).unwrap();
            let mut script = Script { codec: codec.id().number, ..script() };
            let level = codec::Level { ratio: 1.0, bits: codec::Bits::Uniform(8) };
            let coder = VectorCoder::new(codec, kind, level, 1).of_matrices([[2, 3], [len.saturating_sub(6), 1]]);
            let mut reducer = Reducer::new(coder.with_feedback());
            let _ = all_reduce(&mut script, TAG, &mut vec![1.0; len], &mut vec![1.0; extras], &mut reducer);
        }
        let _ = all_reduce_f64(&mut script(), TAG, &mut vec![1.0; len]);
        let _ = all_gather(&mut script(), TAG, &vec![0; len]);
        let _ = all_to_all(&mut script(), TAG, vec![vec![0; len]; 3]);
        let _ = broadcast(&mut script(), TAG, Rank(root), &mut vec![0; len]);
        let all_empty = payloads.len() >= 2 && payloads[..2].iter().all(Vec::is_empty);
        prop_assert_eq!(barrier(&mut script(), TAG).is_ok(), all_empty);
    }

    #[test]
    fn a_link_model_survives_any_stamp(payloads in payloads(), len in 0usize..12) {
        let mut script = Script::new(0, 2, payloads);
        (script.stamped, script.codec) = (true, codec::Exact.id().number);
        let link = "wan-20mbit-80ms".parse().unwrap();
        let mut shaped = Shaped::new(Box::new(script), link, Mode::Virtual, Arc::new(ManualClock::new()));
        for _ in 0..3 {
            let _ = all_reduce(&mut shaped, TAG, &mut vec![1.0; len], &mut [], &mut Reducer::exact());
            let _ = (shaped.virtual_now(), shaped.waited());
        }
    }
}
