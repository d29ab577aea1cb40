//! `low_rank`: a matrix as the product of two narrow ones. For parameters, which come as the matrices that they are.
//!
//! What a few rounds change in a layer that feeds a few classes has little more than that many directions, however wide
//! the layer is. PowerSGD (Vogels, Karimireddy and Jaggi, 2019) takes one step of the power method for each message and
//! relies on many messages and error feedback; here each message is worked out on its own, to the end, so one alone is
//! good.

use super::values::not_finite;
use super::{Codec, CodecId, CodecKind, Half, Level, Message, Options, RowSet, RowsMut, RowsRef, Store};
use crate::error::expect_payload;
use crate::{CodecRegistry, Result, WireError};

/// Sends of a matrix its projection onto the `rank` directions of its shorter side along which it is largest: these
/// directions as bfloat16 numbers, and behind them how far each long column goes along each, as `rank` long rows
/// through another codec. A matrix that is shorter than that, or whose other form takes fewer bytes, goes through the
/// other codec as it is, with its long side along the rows.
///
/// The directions are those of the singular value decomposition, by subspace iteration. The projection is onto what
/// arrives of them, so that what is lost before the other codec is never more than what was there, and little more than
/// nothing, by the rounding of directions, where the matrix has no higher rank. A matrix of `s` times `l` values, `s` ≤
/// `l`, costs about s · l · (s + 2 · rank) + 12 · s² · rank multiplications. Not linear; the backward pass treats it as
/// the identity.
pub struct LowRank {
    rank: usize,
    inner: Box<dyn Codec>,
}

/// Steps of subspace iteration.
const STEPS: usize = 12;

/// Ranks that can be asked for.
const RANKS: std::ops::RangeInclusive<usize> = 1..=1024;

/// The rank where none is named.
const RANK: f64 = 4.0;

/// Bytes of a number of the directions.
const NUMBER: usize = 2;

/// A matrix as it is worked with: `short` rows of `long` values, whichever way it came.
struct Lying {
    short: usize,
    long: usize,
    values: Vec<f64>,
}

impl LowRank {
    /// The entry in registries. Options: `rank`, 4 if not given; `inner`, the codec of what goes along the directions,
    /// `exact` if none is named.
    pub const KIND: CodecKind = CodecKind {
        name: "low_rank",
        number: 5,
        options: &["rank", "inner"],
        wraps: true,
        mixes: true,
        of_matrices: true,
        build: |options, registry| Ok(Box::new(LowRank::with_options(options, registry)?)),
        ..CodecKind::PLAIN
    };

    /// The codec that the options describe, with an inner one of this registry that remembers nothing, since the
    /// directions are others in each message, and sends all values of a row.
    fn with_options(options: &Options, registry: &CodecRegistry) -> Result<LowRank> {
        let rank = options.number("rank")?.unwrap_or(RANK);
        if rank.fract() != 0.0 || !RANKS.contains(&(rank as usize)) {
            return Err(options.refuse("rank", "a whole number from 1 to 1024"));
        }
        let inner = registry.describe_inner(options)?;
        if inner.remembers || inner.leaves_out {
            return Err(options.refuse("inner", "a codec that remembers nothing and sends all values"));
        }
        Ok(LowRank { rank: rank as usize, inner: registry.build_inner(options)? })
    }

    /// How many directions a message of this shape has, where that takes fewer bytes than the matrix itself.
    fn directions(&self, level: &Level<'_>, [short, long]: [usize; 2]) -> Option<usize> {
        let factored = NUMBER * short * self.rank + self.inner.bytes(level, self.rank, long);
        (self.rank < short && factored < self.inner.bytes(level, short, long)).then_some(self.rank)
    }
}

fn sides(rows: usize, columns: usize) -> [usize; 2] {
    [rows.min(columns), rows.max(columns)]
}

impl Codec for LowRank {
    fn id(&self) -> CodecId {
        LowRank::KIND.id()
    }

    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize {
        let (level, [short, long]) = (level.of_all_rows(), sides(rows, columns));
        match self.directions(&level, [short, long]) {
            Some(rank) => NUMBER * short * rank + self.inner.bytes(&level, rank, long),
            None => self.inner.bytes(&level, short, long),
        }
    }

    fn expect_feedback(&mut self) {
        self.inner.expect_feedback();
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let Message { key, level, memory } = message;
        let level = level.of_all_rows();
        if (0..rows.rows.len()).any(|position| rows.row(position).iter().any(|value| !value.is_finite())) {
            return Err(not_finite(LowRank::KIND.name, &rows));
        }
        let matrix = Lying::of(&rows);
        let (start, [short, long]) = (into.len(), [matrix.short, matrix.long]);
        let (count, values) = match self.directions(&level, [short, long]) {
            Some(rank) => {
                let directions = written(&matrix.directions(rank), into);
                (rank, matrix.along(&directions, rank))
            }
            None => (short, matrix.values),
        };
        let values: Vec<f32> = values.iter().map(|value| (*value as f32).clamp(f32::MIN, f32::MAX)).collect();
        let rows = RowsRef { data: &values, columns: long, rows: RowSet::Range(0..count) };
        let encoded = self.inner.encode(Message { key, level: &level, memory }, rows, into);
        encoded.inspect_err(|_| into.truncate(start))
    }

    fn decode(&mut self, message: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let Message { key, level, memory } = message;
        let level = level.of_all_rows();
        let (rows, columns) = (into.rows.len(), into.columns);
        let [short, long] = sides(rows, columns);
        let rank = self.directions(&level, [short, long]);
        let front = NUMBER * short * rank.unwrap_or(0);
        let parts = payload.split_at_checked(front);
        let short_of = || expect_payload(LowRank::KIND.name, self.bytes(&level, rows, columns), payload.len());
        let Some((directions, behind)) = parts else { return short_of() };
        let (directions, _) = directions.as_chunks::<NUMBER>();
        if directions.iter().any(|bits| !Half::widened(*bits).is_finite()) {
            return Err(WireError::malformed("low_rank: expected directions of finite numbers"));
        }
        let count = rank.unwrap_or(short);
        let mut along = vec![0.0f32; count * long];
        let rows_of = RowsMut { data: &mut along, columns: long, rows: RowSet::Range(0..count) };
        self.inner.decode(Message { key, level: &level, memory }, behind, rows_of, Store::Set)?;
        let mut line = vec![0.0f32; long];
        for row in 0..short {
            if rank.is_some() {
                line.fill(0.0);
                for (direction, along) in along.chunks_exact(long).enumerate() {
                    let factor = Half::widened(directions[direction * short + row]);
                    line.iter_mut().zip(along).for_each(|(sum, value)| *sum += factor * value);
                }
            } else {
                line.copy_from_slice(&along[row * long..][..long]);
            }
            for (at, &value) in line.iter().enumerate() {
                let (position, column) = if rows <= columns { (row, at) } else { (at, row) };
                let there = &mut into.row(position)[column];
                *there = if store == Store::Set { value } else { *there + value };
            }
        }
        Ok(())
    }
}

impl Lying {
    fn of(rows: &RowsRef<'_>) -> Lying {
        let (count, columns) = (rows.rows.len(), rows.columns);
        let [short, long] = sides(count, columns);
        let mut values = vec![0.0; short * long];
        for position in 0..count {
            for (column, &value) in rows.row(position).iter().enumerate() {
                let at = if count <= columns { position * long + column } else { column * long + position };
                values[at] = value.into();
            }
        }
        Lying { short, long, values }
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.long..][..self.long]
    }

    /// The first directions of the shorter side, one behind the other, each of length 1, or 0 where the matrix has none
    /// left. Subspace iteration on the products of rows, which begins with those rows of them that stand out most from
    /// the ones before: without chance, so that all ends and all runs agree.
    fn directions(&self, rank: usize) -> Vec<f64> {
        let short = self.short;
        let mut products = vec![0.0; short * short];
        for one in 0..short {
            for other in 0..=one {
                let product = dot(self.row(one), self.row(other));
                products[one * short + other] = product;
                products[other * short + one] = product;
            }
        }
        // No number is too large for its square.
        let largest = products.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        products.iter_mut().for_each(|value| *value /= if largest > 0.0 { largest } else { 1.0 });
        let mut directions: Vec<f64> = Vec::with_capacity(rank * short);
        let mut left = products.clone();
        for _ in 0..rank {
            let squares = left.chunks_exact(short).map(|row| dot(row, row));
            let most = squares.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
            let row = most.map_or(0, |(row, _)| row);
            let mut direction = left[row * short..][..short].to_vec();
            unit(&mut direction);
            left.chunks_exact_mut(short).for_each(|row| subtract(row, &direction));
            directions.extend(direction);
        }
        for _ in 0..STEPS {
            let mut next = Vec::with_capacity(rank * short);
            for direction in directions.chunks_exact(short) {
                next.extend(products.chunks_exact(short).map(|row| dot(row, direction)));
            }
            orthonormal(&mut next, short);
            directions = next;
        }
        directions
    }

    /// What multiples of the directions come nearest to the matrix: rank × long.
    fn along(&self, directions: &[f64], rank: usize) -> Vec<f64> {
        let Lying { short, long, .. } = *self;
        let mut products = vec![0.0; rank * rank];
        for (one, row) in directions.chunks_exact(short).enumerate() {
            for (other, column) in directions.chunks_exact(short).enumerate() {
                products[one * rank + other] = dot(row, column);
            }
        }
        let mut sums = vec![0.0; rank * long];
        for (direction, sums) in directions.chunks_exact(short).zip(sums.chunks_exact_mut(long)) {
            for (row, factor) in direction.iter().enumerate() {
                sums.iter_mut().zip(self.row(row)).for_each(|(sum, value)| *sum += factor * value);
            }
        }
        solve(&mut products, &mut sums, rank, long);
        sums
    }
}

/// Appends directions as bfloat16 numbers; what is read of them.
fn written(directions: &[f64], into: &mut Vec<u8>) -> Vec<f64> {
    let write = |value: &f64| {
        let bytes = Half::rounded(*value as f32).to_le_bytes();
        into.extend(bytes);
        f64::from(Half::widened(bytes))
    };
    directions.iter().map(write).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Makes a direction 1 long; one of nothing stays nothing.
fn unit(direction: &mut [f64]) {
    let length = dot(direction, direction).sqrt();
    let factor = if length > 1e-150 { 1.0 / length } else { 0.0 };
    direction.iter_mut().for_each(|value| *value *= factor);
}

/// Takes from a row what it has of a direction of length 1.
fn subtract(row: &mut [f64], direction: &[f64]) {
    let part = dot(row, direction);
    row.iter_mut().zip(direction).for_each(|(value, direction)| *value -= part * direction);
}

/// Gram-Schmidt, twice, since once leaves what rounding has made of nearly parallel ones. One that has nothing of its
/// own becomes 0.
fn orthonormal(directions: &mut [f64], width: usize) {
    for at in 0..directions.len() / width {
        let (before, rest) = directions.split_at_mut(at * width);
        let own = &mut rest[..width];
        let length = dot(own, own).sqrt();
        for _ in 0..2 {
            before.chunks_exact(width).for_each(|direction| subtract(own, direction));
        }
        if dot(own, own).sqrt() <= 1e-12 * length {
            own.fill(0.0);
        }
        unit(own);
    }
}

/// Solves for the unknowns of each column of `sums`, in their place, by Gauss's elimination: `products` are those of
/// directions with one another, nearly 1 with themselves and nearly 0 else, so that no row need change its place. A
/// direction of nothing gets nothing.
fn solve(products: &mut [f64], sums: &mut [f64], rank: usize, long: usize) {
    for at in 0..rank {
        let pivot = products[at * rank + at];
        if pivot < 0.5 {
            sums[at * long..][..long].fill(0.0);
            continue;
        }
        for value in products[at * rank..][..rank].iter_mut().chain(&mut sums[at * long..][..long]) {
            *value /= pivot;
        }
        let (product, sum) = (products[at * rank..][..rank].to_vec(), sums[at * long..][..long].to_vec());
        for row in (0..rank).filter(|&row| row != at) {
            let factor = products[row * rank + at];
            let of = |into: &mut [f64], from: &[f64]| {
                into.iter_mut().zip(from).for_each(|(value, from)| *value -= factor * from);
            };
            of(&mut products[row * rank..][..rank], &product);
            of(&mut sums[row * long..][..long], &sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};

    use super::*;
    use crate::codec::Memory;
    use crate::{Content, FramePurpose, MessageKey, Rank, Tag};

    /// What arrives of a matrix in so many directions, and in how many bytes.
    fn sent(values: &[f32], columns: usize, rank: usize) -> (Vec<f32>, usize) {
        let options = Options::default().with("rank", rank as f64);
        let mut codec = CodecRegistry::default().build("low_rank", &options).expect("a codec");
        let tag = Tag::new(Content::ParameterGradients, FramePurpose::Training);
        let key = MessageKey { seed: 1, tag, from: Rank(0), to: Rank(1), drawn: 0 };
        let (count, mut payload, mut found) = (values.len() / columns, Vec::new(), vec![0.0; values.len()]);
        let mut memory = Memory::default();
        let source = RowsRef { data: values, columns, rows: RowSet::Range(0..count) };
        let message = Message { key: &key, level: &Level::WHOLE, memory: &mut memory };
        codec.encode(message, source, &mut payload).expect("finite");
        let into = RowsMut { data: &mut found, columns, rows: RowSet::Range(0..count) };
        let message = Message { key: &key, level: &Level::WHOLE, memory: &mut memory };
        codec.decode(message, &payload, into, Store::Set).expect("its own payload");
        (found, payload.len())
    }

    fn normal(seed: u64, count: usize) -> Vec<f64> {
        let key = Key::new(seed, Purpose::Test);
        (0..count as u64).map(|at| f64::from(key.with(at).normal() as f32)).collect()
    }

    /// The product of rows × rank and rank × columns normal numbers, whose directions are worth less and less.
    fn of_rank([rows, columns, rank]: [usize; 3]) -> Vec<f32> {
        let (left, right) = (normal(1, rows * rank), normal(2, rank * columns));
        let value = |at: usize| {
            let (row, column) = (at / columns, at % columns);
            (0..rank).map(|k| left[row * rank + k] * right[k * columns + column] * 0.5f64.powi(k as i32)).sum::<f64>()
        };
        (0..rows * columns).map(|at| value(at) as f32).collect()
    }

    fn lost(values: &[f32], found: &[f32]) -> f64 {
        let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
        let pairs = values.iter().zip(found);
        let left = squares(&mut pairs.map(|(value, found)| f64::from(*value) - f64::from(*found)));
        left / squares(&mut values.iter().map(|value| f64::from(*value)))
    }

    #[test]
    fn a_matrix_of_no_higher_rank_arrives_but_for_the_rounding_of_directions_lying_or_standing() {
        for shape in [[40, 12, 3], [12, 40, 3], [300, 64, 8], [9, 9, 2]] {
            let [rows, columns, rank] = shape;
            let values = of_rank(shape);
            let (found, bytes) = sent(&values, columns, rank);
            // The directions are rounded by up to 2^-9 of themselves.
            assert!(lost(&values, &found) < 2f64.powi(-16), "{shape:?}: {} is lost", lost(&values, &found));
            assert_eq!(bytes, 2 * rank * rows.min(columns) + 4 * rank * rows.max(columns), "{shape:?}");
        }
    }

    #[test]
    fn what_is_lost_is_hardly_more_than_by_the_singular_values_that_are_left_out() {
        // Each direction is worth a fourth of the squares of the one before it, up to the chance of its numbers.
        let values = of_rank([200, 30, 8]);
        let mut before = 1.0;
        for rank in 1..8 {
            let (found, _) = sent(&values, 30, rank);
            let lost = lost(&values, &found);
            assert!(lost < 0.5 * before, "{rank} directions lose {lost}, one fewer {before}");
            before = lost;
        }
        assert!(before < 1e-4, "seven of eight lose {before}");
    }

    #[test]
    fn nothing_and_what_is_no_wider_than_the_rank_travel_as_they_are() {
        for (values, columns) in [(vec![0.0; 60], 6), (vec![1.5; 12], 3), (vec![2.0], 1), (vec![-0.5; 7], 7)] {
            let (found, _) = sent(&values, columns, 3);
            assert!(values.iter().zip(&found).all(|(value, found)| (value - found).abs() < 1e-6), "{found:?}");
        }
        assert_eq!(sent(&[3.0, -1.0, 2.0], 1, 4), (vec![3.0, -1.0, 2.0], 12));
    }

    #[test]
    fn numbers_near_the_largest_that_there_are_do_no_harm() {
        let values: Vec<f32> = (0..240).map(|at| if at % 7 == 0 { f32::MAX } else { f32::MIN / 3.0 }).collect();
        let (found, _) = sent(&values, 12, 2);
        assert!(found.iter().all(|value| value.is_finite() || value.abs() > 1e38), "{found:?}");
    }
}
