//! Statistics of columns over the rows of all workers, for norms that need them: two exchanges a norm and round, of
//! as many numbers as its rows have, whatever their number.

use laconic_nn::kernels::batch_norm::Moments;
use laconic_wire::collectives::{self, Reducer};
use laconic_wire::{Content, Direction, FramePurpose, Ledger, Rank, Tag, Transport, WireError};

use crate::error::{Result, TrainError};

/// The step of statistics under the tag of the layer whose outputs they are of.
const STEP: u16 = 5;

/// The tag of statistics of a layer's outputs, or in reverse of the sums of gradients that depend on them.
pub fn tag(layer: u16, direction: Direction, round: u32) -> Tag {
    let (content, purpose) = (Content::Statistics, FramePurpose::Training);
    Tag { content, purpose, direction, layer, round, step: STEP }
}

/// The statistics of every worker's rows, in rank order.
///
/// # Errors
/// If another worker does not answer, or with other columns.
pub fn share(transport: &mut dyn Transport, tag: Tag, own: Moments) -> Result<Vec<Moments>> {
    let width = own.means.len();
    if transport.size() == 1 {
        return Ok(vec![own]);
    }
    let mut bytes = own.rows.to_le_bytes().to_vec();
    bytes.extend(own.means.iter().chain(&own.variances).flat_map(|value| value.to_le_bytes()));
    let rank = transport.rank();
    let all = collectives::all_gather(transport, tag, &bytes)?;
    let read = |(peer, bytes): (usize, &Vec<u8>)| match read(bytes, width) {
        Some(moments) => Ok(moments),
        None => {
            let what = format!("expected statistics of {width} columns, found {} bytes", bytes.len());
            Err(WireError::malformed(what).from_peer(rank, Rank(peer as u32), tag).into())
        }
    };
    all.iter().enumerate().map(read).collect()
}

fn read(bytes: &[u8], width: usize) -> Option<Moments> {
    let (rows, values) = bytes.split_first_chunk()?;
    let (values, rest) = values.as_chunks();
    if values.len() != 2 * width || !rest.is_empty() {
        return None;
    }
    let floats = |values: &[[u8; 4]]| values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let (means, variances) = values.split_at(width);
    Some(Moments { rows: f64::from_le_bytes(*rows), means: floats(means), variances: floats(variances) })
}

/// Adds up over workers the sums of gradients that statistics have.
///
/// # Errors
/// If another worker does not answer.
pub fn sum(transport: &mut dyn Transport, tag: Tag, sums: &mut [f32]) -> Result<()> {
    collectives::all_reduce(transport, tag, sums, &mut [], &mut Reducer::exact()).map_err(TrainError::from)
}

/// Enters what [`share`] and [`sum`] send in a round about a layer's outputs of so many columns.
pub fn forecast(ledger: &mut Ledger, layer: u16, round: u32, rank: Rank, size: usize, width: usize) {
    let len = size_of::<f64>() + 2 * width * size_of::<f32>();
    collectives::forecast_all_gather(ledger, tag(layer, Direction::Forward, round), size, rank, len);
    let back = tag(layer, Direction::Reverse, round);
    collectives::forecast_all_reduce(ledger, back, size, rank, 2 * width, 0, &Reducer::exact());
}
