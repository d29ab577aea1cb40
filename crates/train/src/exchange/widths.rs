//! The adaptive bit-width assigner (AdaQP, Wan et al., 2023): traces how wide the rows of each message range, and every
//! so many rounds gives each message a width of its menu so that variance and time are smallest together
//! ([`crate::messages::assign`]).
//!
//! A message's β is (Σ α)² · D/6 · span², span being how wide the codec's grid of its row is (a mean over messages)
//! and Σ α what its row counts for in all rows that it is folded into: one noisy row feeds them all, so the weights add
//! before they are squared. Receivers compute Σ α once from their own edges and the layer and tell the senders, anew in
//! every run. A gradient returns to one row, whose owner multiplies it by what it multiplies the row by; where a layer
//! has such a factor, owners tell theirs. Only training is traced, and of a row that has never travelled nothing is
//! known.
//!
//! An assignment is an all-gather of every message's β (4 bytes) and, to each peer, a map of 2 bits a message (4 where
//! there are more than four widths). Every worker solves the same problem; no part of it depends on the clock unless
//! `messages.costs = "measured"`.

use laconic_graph::plan::Link;
use laconic_wire::{Direction, Ledger, LinkShape, Rank, Tag, Transport, WireError, collectives};

use super::halo::Halo;
use super::shapes::PeerRows;
use super::staged;
use super::steps::Step;
use crate::error::{Result, TrainError};
use crate::messages::assign::{self, LinkCost, Menu};
use crate::messages::coders::End;

/// A peer's frame that is not what this run's shapes say.
fn malformed(rank: Rank, peer: usize, tag: Tag, what: &str) -> TrainError {
    WireError::malformed(what).from_peer(rank, Rank(peer as u32), tag).into()
}

/// Tells every peer what its rows count for here: `halo_weights` has one value a halo row. And, where the gradients of
/// own rows are multiplied by `own_weights` when they have come back, what theirs of own rows count for.
///
/// # Errors
/// If another worker does not answer, or sends something else.
pub fn exchange_scores(
    halo: &mut Halo,
    transport: &mut dyn Transport,
    halo_weights: &[f32],
    own_weights: Option<&[f32]>,
) -> Result<()> {
    let bytes = |weights: Vec<f32>| weights.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
    let of_halo = |link: &Link| halo_weights[link.receive.start as usize..link.receive.end as usize].to_vec();
    let outgoing = halo.links.iter().map(|link| bytes(of_halo(link))).collect();
    halo.assigner.scores[Direction::Forward as usize] =
        cross(halo, transport, Step::Weights, outgoing, |link| link.send.len())?;
    if let Some(weights) = own_weights {
        let of_own = |link: &Link| link.send.iter().map(|&row| weights[row as usize]).collect();
        let outgoing = halo.links.iter().map(|link| bytes(of_own(link))).collect();
        halo.assigner.scores[Direction::Reverse as usize] =
            cross(halo, transport, Step::OwnWeights, outgoing, |link| link.receive.len())?;
    }
    Ok(())
}

/// Sends each peer its values and reads those of each, as many as the link says.
fn cross(
    halo: &Halo,
    transport: &mut dyn Transport,
    step: Step,
    outgoing: Vec<Vec<u8>>,
    count: impl Fn(&Link) -> usize,
) -> Result<Vec<Vec<f32>>> {
    let (rank, tag) = (halo.rank, step.tag(0));
    let came = collectives::all_to_all(transport, tag, outgoing)?;
    let read = |(peer, bytes): (usize, &Vec<u8>)| {
        if peer != rank.index() && bytes.len() != 4 * count(&halo.links[peer]) {
            return Err(malformed(rank, peer, tag, "weights of another shape"));
        }
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    };
    came.iter().enumerate().map(read).collect()
}

/// Enters what [`exchange_scores`] sends, own weights too if they are exchanged.
pub fn forecast_scores(links: &[PeerRows], rank: Rank, own_weights: bool, ledger: &mut Ledger) {
    let lens: Vec<usize> = links.iter().map(|link| link.receive * 4).collect();
    collectives::forecast_all_to_all(ledger, Step::Weights.tag(0), rank, &lens);
    if own_weights {
        let lens: Vec<usize> = links.iter().map(|link| link.send * 4).collect();
        collectives::forecast_all_to_all(ledger, Step::OwnWeights.tag(0), rank, &lens);
    }
}

/// The shape that costs follow where the configuration names none: a data centre's.
const NOMINAL: &str = "1gbit,1ms";

/// Sets the costs of all links from a link's shape.
///
/// # Errors
/// If the shape is unknown.
pub fn costs_of_shape(halo: &mut Halo, workers: usize, shape: &str) -> Result<()> {
    let shape: LinkShape = if shape.is_empty() { NOMINAL } else { shape }.parse()?;
    let seconds_per_byte = 8.0 / shape.bits_per_second;
    let cost = LinkCost { seconds_per_byte, latency: shape.latency.as_secs_f64() };
    halo.assigner.costs = vec![cost; workers * workers];
    Ok(())
}

/// Sizes that a profile sends, and how often each.
const PROFILE_BYTES: [usize; 8] = [1 << 10, 8 << 10, 16 << 10, 24 << 10, 32 << 10, 40 << 10, 48 << 10, 64 << 10];
const PROFILE_REPEATS: usize = 5;

/// Measures every link by sending frames of several sizes, all workers at once, and fits seconds = θ · bytes + γ to the
/// medians. What is measured is shared, so that all workers assign by the same costs; another run measures something
/// else.
///
/// # Errors
/// If another worker does not answer.
pub fn measure_costs(halo: &mut Halo, transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let mut fits = vec![0.0; 2 * size * size];
    let clock = halo.timeline.clock();
    for shift in 1..size {
        let to = Rank(((rank.index() + shift) % size) as u32);
        let from = Rank(((rank.index() + size - shift) % size) as u32);
        let mut points = Vec::new();
        for bytes in PROFILE_BYTES {
            let mut times = Vec::new();
            for _ in 0..PROFILE_REPEATS {
                let start = clock.now();
                let mut frame = laconic_wire::Frame::new(Step::Profile.tag(0), transport.buffer_of(bytes));
                frame.payload_mut().resize(laconic_wire::HEADER_BYTES + bytes, 0);
                transport.send(to, frame)?;
                let came = transport.recv(from, Step::Profile.tag(0))?;
                transport.recycle(came);
                times.push(clock.now().saturating_sub(start).as_secs_f64());
            }
            times.sort_by(f64::total_cmp);
            points.push((bytes as f64, times[PROFILE_REPEATS / 2]));
        }
        let (slope, start) = fit_line(&points);
        fits[2 * (from.index() * size + rank.index())..][..2].copy_from_slice(&[slope, start]);
    }
    collectives::all_reduce_f64(transport, Step::LinkCosts.tag(0), &mut fits)?;
    let cost = |fit: &[f64; 2]| LinkCost { seconds_per_byte: fit[0], latency: fit[1].max(0.0) };
    halo.assigner.costs = fits.as_chunks::<2>().0.iter().map(cost).collect();
    Ok(())
}

/// Enters what [`measure_costs`] sends.
pub fn forecast_measure(rank: Rank, size: usize, ledger: &mut Ledger) {
    for peer in rank.others(size) {
        for bytes in PROFILE_BYTES {
            (0..PROFILE_REPEATS).for_each(|_| ledger.record(Step::Profile.tag(0), peer, bytes));
        }
    }
    collectives::forecast_all_reduce_f64(ledger, Step::LinkCosts.tag(0), size, rank, 2 * size * size);
}

/// Least squares: slope and value at 0.
fn fit_line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let variance: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = covariance / variance;
    (slope, y - slope * x)
}

/// Whether an assignment is due before the round that follows `done` rounds.
pub fn is_due(done: u32, period: u32) -> bool {
    done > 0 && done.is_multiple_of(period)
}

/// Assigns bits to the messages of these exchanges from what was traced since the last time, to each by its own λ.
/// Called on every worker at once, with the same exchanges, each with its width, in the same order.
///
/// # Errors
/// If another worker does not answer, or sends something else.
pub fn assign_widths(
    halo: &mut Halo,
    transport: &mut dyn Transport,
    exchanges: &[(Tag, usize)],
    round: u32,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    for (number, (tag, columns)) in exchanges.iter().enumerate() {
        let everyones = gather_betas(halo, transport, *tag, Step::Variances.of_exchange(round, number))?;
        let costs = &halo.assigner.costs;
        let channels: Vec<assign::Channel<'_>> = everyones
            .iter()
            .map(|(from, to, beta)| assign::Channel {
                from: from.0,
                to: to.0,
                beta,
                bytes_per_bit: *columns as f64 / 8.0,
                overhead: PARAMETER_BYTES,
                cost: costs[from.index() * size + to.index()],
            })
            .collect();
        let coding = halo.coders.coding(*tag);
        let menu = coding.menu().cloned().unwrap_or_default();
        let assignment = assign::assign(&channels, size as u32, coding.lambda(), &menu);
        let mut mine: Vec<Vec<u8>> = vec![Vec::new(); size];
        for ((from, to, _), bits) in everyones.iter().zip(assignment.bits) {
            if *from == rank {
                mine[to.index()] = bits;
            }
        }
        let maps = mine.iter().map(|bits| menu.pack(bits)).collect();
        let came = collectives::all_to_all(transport, Step::WidthMaps.of_exchange(round, number), maps)?;
        for peer in rank.others(size) {
            let rows = incoming_rows(halo, *tag, peer);
            let bits = menu.unpack(&came[peer.index()], rows).ok_or_else(|| {
                malformed(
                    rank,
                    peer.index(),
                    Step::WidthMaps.of_exchange(round, number),
                    "a map of widths of another shape",
                )
            })?;
            let (coder, _) = halo.coders.coder(*tag)?;
            coder.set_widths((peer, false), bits);
            coder.set_widths((peer, true), std::mem::take(&mut mine[peer.index()]));
        }
    }
    Ok(())
}

/// Bytes that a quantised row carries besides its codes.
const PARAMETER_BYTES: f64 = 4.0;

fn outgoing_rows(halo: &Halo, tag: Tag, peer: Rank) -> usize {
    let link = &halo.links[peer.index()];
    if tag.direction == Direction::Forward { link.send.len() } else { link.receive.len() }
}

fn incoming_rows(halo: &Halo, tag: Tag, peer: Rank) -> usize {
    let link = &halo.links[peer.index()];
    if tag.direction == Direction::Forward { link.receive.len() } else { link.send.len() }
}

/// β of every message of an exchange: sender, receiver, values.
fn gather_betas(
    halo: &mut Halo,
    transport: &mut dyn Transport,
    tag: Tag,
    frame: Tag,
) -> Result<Vec<(Rank, Rank, Vec<f32>)>> {
    let (rank, size) = (transport.rank(), transport.size());
    let mut bytes = Vec::new();
    for peer in Rank::all(size) {
        let rows = if peer == rank { 0 } else { outgoing_rows(halo, tag, peer) };
        bytes.extend((rows as u32).to_le_bytes());
        let trace = halo.coders.coder(tag)?.0.take_trace(peer);
        let betas = halo.assigner.betas(tag, peer, trace, rows);
        bytes.extend(betas.iter().flat_map(|beta| beta.to_le_bytes()));
    }
    let mut channels = Vec::new();
    for (from, bytes) in collectives::all_gather(transport, frame, &bytes)?.iter().enumerate() {
        let mut words = bytes.as_chunks::<4>().0.iter().copied();
        for to in 0..size {
            let malformed = || malformed(rank, from, frame, "traces of another shape");
            let count = words.next().map(u32::from_le_bytes).ok_or_else(malformed)? as usize;
            let beta: Vec<f32> = words.by_ref().take(count).map(f32::from_le_bytes).collect();
            if beta.len() != count {
                return Err(malformed());
            }
            if to != from {
                channels.push((Rank(from as u32), Rank(to as u32), beta));
            }
        }
    }
    Ok(channels)
}

/// Enters what [`assign_widths`] sends for exchanges with these menus.
pub fn forecast_assign(links: &[PeerRows], rank: Rank, exchanges: &[(Tag, &Menu)], round: u32, ledger: &mut Ledger) {
    let size = links.len();
    for (number, (tag, menu)) in exchanges.iter().enumerate() {
        let rows = |link: &PeerRows| if tag.direction == Direction::Forward { link.send } else { link.receive };
        let all: usize = links.iter().map(rows).sum();
        collectives::forecast_all_gather(
            ledger,
            Step::Variances.of_exchange(round, number),
            size,
            rank,
            4 * (size + all),
        );
        let maps: Vec<usize> = links.iter().map(|link| menu.map_bytes(rows(link))).collect();
        collectives::forecast_all_to_all(ledger, Step::WidthMaps.of_exchange(round, number), rank, &maps);
    }
}

/// Traces the rows of an exchange that happens once, so that its bits can be assigned before it.
///
/// # Errors
/// If the codec cannot be made.
pub fn trace_once(halo: &mut Halo, tag: Tag, rows: &laconic_nn::Matrix) -> Result<()> {
    let Halo { links, coders, rank, .. } = halo;
    let ((coder, _), mut room) = (coders.coder(tag)?, Vec::new());
    for (peer, link) in links.iter().enumerate() {
        let end = End { rank: *rank, peer: Rank(peer as u32), outgoing: true, rows: link.send.len(), drawn: None };
        let set = laconic_wire::codec::RowSet::Indices(&link.send);
        coder.trace(end, &staged::outgoing(rows, set, &mut room));
    }
    Ok(())
}
