//! `label_sums`: labels of others as sums. For each node of a peer its neighbours tell together what each class counts
//! for among those of them that train, and nothing where these are fewer than `policy.label_group`. Columns are those
//! of `labels`, made of own neighbours' labels and of these sums.
//!
//! No label leaves by itself, but a sum of nodes of one class tells the class of each, and two sums that differ by one
//! node tell that one's: a least size makes this rare and does not rule it out.
//!
//! Owners add up over the edges that lead from a peer's node to theirs, which are those that lead back wherever edges
//! lead both ways. A digest of these comes first, so that two who see different edges say so. Behind it come, by how
//! often each occurs: for each node how many classes are told of, which, and what they count for, seven bits a symbol.

use laconic_graph::plan::{DIGEST, IdDigest};
use laconic_nn::{Matrix, Operand};
use laconic_wire::codec::{decode_symbols, encode_symbols, most_symbol_bytes};
use laconic_wire::{Content, Rank};

use super::labels::{Counts, Said, as_column_values, clip, said_of_own};
use super::response::Unbiased;
use super::{Heard, InputKind, LinkRows, Telling, Wide};
use crate::error::{Result, TrainError};

pub(super) const KIND: InputKind = InputKind {
    name: "label_sums",
    content: Some(Content::TrainingLabels),
    from: &[],
    tells_labels: true,
    tells_sums: true,
    // What is withheld of few neighbours, of which one worker knows.
    loses: true,
    columns: |wide| wide.classes,
    most,
    tell,
};

/// The most bytes about the nodes of a peer that gets so many rows and sends so many.
fn most(rows: LinkRows, Wide { classes, .. }: Wide) -> usize {
    let entries = rows.come * classes;
    let lists = [(rows.come, classes + 1), (entries, classes), (entries * SEVENS, SYMBOLS)];
    DIGEST + 3 * LENGTH + lists.map(|(count, end)| most_symbol_bytes(count, end)).iter().sum::<usize>()
}

/// Fewer training neighbours are not told of, where no policy says how many.
pub const LEAST: u32 = 5;

/// Bytes of a length.
const LENGTH: usize = 4;
/// Seven bits of a sum, and whether more follow.
const SYMBOLS: usize = 256;
/// Symbols of the largest sum.
const SEVENS: usize = 4;
/// The largest sum: floats of 32 bits count no further.
const MOST: u32 = (1 << f32::MANTISSA_DIGITS) - 1;

fn tell(telling: &mut Telling<'_>, _: &mut Heard) -> Result<Operand> {
    let (neighbours, classes, rank) = (telling.neighbours, telling.classes, telling.transport.rank());
    let links = &telling.links.links;
    let Around { edges, mut sums } = Around::of(telling)?;
    sums.iter_mut().filter(|sum| sum.nodes < telling.least).for_each(|sum| sum.entries.clear());
    let came = telling.exchange(most, |peer, _| {
        let range = links[peer].receive.clone();
        let of_peer = &sums[range.start as usize..range.end as usize];
        Ok([&edges[peer].0[..], &encoded(of_peer, classes)].concat())
    })?;
    let mut own = said_of_own(telling);
    own.resize(neighbours.rows() + telling.links.halo_rows(), Said::default());
    let heard = Heard { said: own, ..Heard::default() };
    let mut counts = Counts::of(neighbours, &heard, (classes, Unbiased::TRUE));
    let Unbiased { scale, each } = telling.unbiased();
    for peer in rank.others(came.len()) {
        let (digest, told) = came[peer.index()].split_at_checked(DIGEST).unwrap_or_default();
        if digest != edges[peer.index()].0 {
            return Err(one_way(rank, peer));
        }
        let send = &links[peer.index()].send;
        let told = decoded(told, send.len(), classes);
        let told = told.map_err(|what| telling.malformed(peer, &format!("sums of labels: {what}")))?;
        for (&row, entries) in send.iter().zip(told) {
            let (row, mass) = (counts.row_mut(row as usize), entries.iter().map(|entry| entry.1 as f32).sum::<f32>());
            entries.iter().for_each(|&(class, sum)| row[class as usize] += sum as f32 * scale);
            if mass > 0.0 {
                row.iter_mut().for_each(|count| *count -= mass * each);
            }
        }
    }
    for row in 0..neighbours.rows() {
        clip(counts.row_mut(row));
        as_column_values(counts.row_mut(row));
    }
    Ok(Operand::Dense(Matrix::from_vec(neighbours.rows(), classes, counts.values)))
}

/// What neighbours of a node of another worker come to.
#[derive(Debug, Clone, Default)]
struct Sum {
    /// How many of them train.
    nodes: u32,
    /// Classes, ascending, and what each counts for.
    entries: Vec<(u32, u32)>,
}

/// What a worker sees of others' nodes that it has edges from.
struct Around {
    /// For each peer a digest of the edges between its nodes and own ones, the same at both ends where they lead both
    /// ways.
    edges: Vec<IdDigest>,
    /// For each halo row what own nodes come to that it has edges to.
    sums: Vec<Sum>,
}

impl Around {
    fn of(telling: &Telling<'_>) -> Result<Around> {
        let (neighbours, links) = (telling.neighbours, &telling.links.links);
        let (rank, rows) = (telling.transport.rank(), neighbours.rows());
        let weights = said_of_own(telling);
        let mut sums = vec![Sum::default(); telling.links.halo_rows()];
        let mut edges = Vec::with_capacity(links.len());
        for (peer, link) in links.iter().enumerate() {
            let mut place = vec![None; rows];
            link.send.iter().zip(0..).for_each(|(&row, at)| place[row as usize] = Some(at));
            let mut of_peer: Vec<u64> = Vec::new();
            for (row, here) in place.into_iter().enumerate() {
                for halo in neighbours.of_row(row).iter().filter_map(|&source| neighbours.halo(source)) {
                    if !link.receive.contains(&(halo as u32)) {
                        continue;
                    }
                    // A node that the peer does not need has no edge in return.
                    let here: u64 = here.ok_or_else(|| one_way(rank, Rank(peer as u32)))?;
                    let there = halo as u64 - u64::from(link.receive.start);
                    let [low, high] = if rank.index() < peer { [here, there] } else { [there, here] };
                    of_peer.push(low << 32 | high);
                    if let Some(class) = telling.answers[row] {
                        sums[halo].add(class, weights[row].weight);
                    }
                }
            }
            of_peer.sort_unstable();
            edges.push(IdDigest::of(&of_peer));
        }
        Ok(Around { edges, sums })
    }
}

impl Sum {
    fn add(&mut self, class: u32, weight: u32) {
        self.nodes += 1;
        match self.entries.binary_search_by_key(&class, |entry| entry.0) {
            Ok(at) => self.entries[at].1 = (self.entries[at].1 + weight).min(MOST),
            Err(at) => self.entries.insert(at, (class, weight)),
        }
    }
}

/// Sums as they cross: how many classes each tells of, which, how many sevens of bits follow, and sums in these; the
/// two first behind their lengths in bytes.
fn encoded(sums: &[Sum], classes: usize) -> Vec<u8> {
    let entries = || sums.iter().flat_map(|sum| &sum.entries);
    let counts: Vec<u32> = sums.iter().map(|sum| sum.entries.len() as u32).collect();
    let named: Vec<u32> = entries().map(|entry| entry.0).collect();
    let sevens: Vec<u32> = entries().flat_map(|entry| in_sevens(entry.1)).collect();
    let (counts, named) = (encode_symbols(&counts, classes + 1), encode_symbols(&named, classes));
    let number = |number: usize| (number as u32).to_le_bytes();
    let lists = [&number(counts.len())[..], &counts, &number(named.len()), &named, &number(sevens.len())];
    [&lists.concat()[..], &encode_symbols(&sevens, SYMBOLS)].concat()
}

/// The entries of so many sums back.
fn decoded(bytes: &[u8], rows: usize, classes: usize) -> std::result::Result<Vec<Vec<(u32, u32)>>, String> {
    let short = || "fewer bytes than they say".to_owned();
    let number = |bytes: &mut &[u8]| {
        let (number, rest) = bytes.split_first_chunk::<LENGTH>().ok_or_else(short)?;
        *bytes = rest;
        Ok::<_, String>(u32::from_le_bytes(*number) as usize)
    };
    let list = |bytes: &mut &[u8], count: usize, end: usize| {
        let length = number(bytes)?;
        let (list, rest) = bytes.split_at_checked(length).ok_or_else(short)?;
        *bytes = rest;
        decode_symbols(list, count, end).map_err(|error| error.to_string())
    };
    let mut bytes = bytes;
    let counts = list(&mut bytes, rows, classes + 1)?;
    let entries = counts.iter().map(|&count| count as usize).sum();
    let mut named = list(&mut bytes, entries, classes)?.into_iter();
    let count = number(&mut bytes)?;
    if count > entries * SEVENS {
        return Err(format!("{count} sevens of bits for {entries} sums"));
    }
    let mut sevens = decode_symbols(bytes, count, SYMBOLS).map_err(|error| error.to_string())?.into_iter();
    let mut all = Vec::with_capacity(rows);
    for count in counts {
        let of_row: Option<Vec<(u32, u32)>> =
            named.by_ref().take(count as usize).map(|class| Some((class, of_sevens(&mut sevens)?))).collect();
        let of_row = of_row.filter(|of_row| of_row.is_sorted_by(|a, b| a.0 < b.0));
        all.push(of_row.ok_or("classes that do not ascend, or a sum that is none")?);
    }
    if sevens.next().is_some() { Err("more sums than classes".to_owned()) } else { Ok(all) }
}

/// A number in sevens of bits, the lowest first; all but the last say that more follow.
fn in_sevens(mut number: u32) -> Vec<u32> {
    let mut sevens = vec![number & 127];
    while number > 127 {
        number >>= 7;
        *sevens.last_mut().expect("one at least") |= 128;
        sevens.push(number & 127);
    }
    sevens
}

/// The same back, of a sum that there may be; `None` where there is none.
fn of_sevens(sevens: &mut impl Iterator<Item = u32>) -> Option<u32> {
    let mut number = 0u32;
    for place in 0..SEVENS as u32 {
        let seven = sevens.next()?;
        number |= (seven & 127) << (7 * place);
        if seven < 128 {
            return Some(number).filter(|number| (1..=MOST).contains(number));
        }
    }
    None
}

/// That a worker adds up over other edges than another looks for.
fn one_way(rank: Rank, peer: Rank) -> TrainError {
    TrainError::config(format!(
        "model.inputs has \"label_sums\": worker {} and worker {} see different edges between them; it takes edges \
        that lead both ways (data.symmetrise = true)",
        rank.0, peer.0
    ))
}
