//! Features from arrays: dense, or compressed sparse rows.

use super::arrays::{Npz, each_of_npy, open_npy, read_npy};
use super::numbers::each_row;
use crate::dataset::Features;
use crate::error::{GraphError, Result};
use crate::exact::{Exact, ExactColumn, Groups, Spread, Wide, is_never_lost};
use crate::limits::Limits;
use crate::memory::afford;
use crate::npy::{Header, Kind};
use std::path::Path;

/// The features in `path`, an `.npz` with the members of [`npz_features`] or a `.npy`, for a graph of `nodes` nodes.
pub fn read_features(path: &Path, nodes: usize, limits: &Limits) -> Result<(Features, Exact)> {
    if super::extension(path) == "npy" {
        return DenseArray::File(path).read(nodes, limits);
    }
    let mut npz = Npz::open(path, limits)?;
    let is_scipy = ["format", "shape", "data"].iter().all(|member| npz.has(member));
    if is_scipy && !["features", "features_data", "x"].iter().any(|member| npz.has(member)) {
        return scipy_features(&mut npz, nodes, limits);
    }
    match npz_features(&mut npz, (nodes, Groups::ONE), limits)? {
        (Features::None, _) => {
            Err(GraphError::format(path, "archive", "expected the array 'features', 'features_data' or 'x'"))
        }
        features => Ok(features),
    }
}

/// A matrix of `scipy.sparse.save_npz` in rows.
fn scipy_features(npz: &mut Npz, nodes: usize, limits: &Limits) -> Result<(Features, Exact)> {
    match npz.word("format")?.as_str() {
        "csr" => csr_of_groups(npz, "", (nodes, Groups::ONE), limits),
        other => {
            let way = "scipy.sparse.save_npz(FILE, matrix.tocsr()) writes what is read here";
            Err(npz.error("format", format!("expected csr for features, found {other}; {way}")))
        }
    }
}

/// What dense features are called: by us, or else by PyTorch Geometric.
pub fn name(npz: &Npz) -> &'static str {
    if npz.has("features") || npz.has("features_data") { "features" } else { "x" }
}

/// The features of the interchange format: `features`, or the CSR parts `features_data`, `features_indices`,
/// `features_indptr` and `features_shape`, or else `x`. What 32 bits lose is asked of each group of nodes.
pub(crate) fn npz_features(
    npz: &mut Npz,
    (nodes, groups): (usize, Groups<'_>),
    limits: &Limits,
) -> Result<(Features, Exact)> {
    let name = name(npz);
    if npz.has(name) {
        return DenseArray::Member(npz, name).read_groups((nodes, groups), limits);
    }
    match npz.has("features_data") {
        true => csr_of_groups(npz, "features_", (nodes, groups), limits),
        false => Ok((Features::None, Exact::default())),
    }
}

/// Whether `f32` holds all numbers of this array.
fn is_narrow(header: &Header) -> bool {
    header.item_bytes <= 2 || header.kind == Kind::Float && header.item_bytes == 4
}

/// A dense array of features.
pub enum DenseArray<'a> {
    /// In an archive.
    Member(&'a mut Npz, &'a str),
    /// In a file of its own.
    File(&'a Path),
}

impl DenseArray<'_> {
    /// Reads it, and of numbers that `f32` may round those columns apart of which too much would be lost. Goes through
    /// it once more for these.
    pub fn read(&mut self, nodes: usize, limits: &Limits) -> Result<(Features, Exact)> {
        self.read_groups((nodes, Groups::ONE), limits)
    }

    fn read_groups(&mut self, (nodes, groups): (usize, Groups<'_>), limits: &Limits) -> Result<(Features, Exact)> {
        let most = limits.features_values_max;
        let header = match self {
            DenseArray::Member(npz, name) => npz.values(name, most)?.header().clone(),
            DenseArray::File(path) => open_npy(path, limits, most)?.0,
        };
        let shape: Vec<usize> = header.shape.iter().map(|&size| size as usize).collect();
        let (rows, columns) = (shape.first().copied().unwrap_or(0), shape.get(1).copied().unwrap_or(1));
        if let DenseArray::Member(npz, name) = self
            && rows == nodes
            && shape.len() == 2
            && columns > 0
            && let Some(values) = npz.lent(name)
        {
            return Ok((Features::Dense { columns, values }, Exact::default()));
        }
        if is_narrow(&header) || rows != nodes || shape.len() > 2 || columns == 0 {
            let array = match self {
                DenseArray::Member(npz, name) => npz.read(name, most)?,
                DenseArray::File(path) => read_npy(path, limits, most)?,
            };
            let features = dense(array.shape, array.values, nodes).map_err(|what| self.error(what))?;
            return Ok((features, Exact::default()));
        }
        let bytes = ((rows * columns) as u64).saturating_mul(size_of::<f32>() as u64);
        let of_spreads = (groups.count as u64).saturating_mul((columns * size_of::<Spread>()) as u64);
        afford(bytes.saturating_add(of_spreads)).map_err(|what| self.error(what))?;
        let place = |at: usize| if header.fortran { (at % rows, at / rows) } else { (at / columns, at % columns) };
        let (mut values, mut spreads) =
            (laconic_array::with_capacity(rows * columns), vec![Spread::default(); groups.count * columns]);
        // At once in the order that they are to have, so that there is one copy whatever the file's order is.
        values.resize(rows * columns, 0.0);
        let mut at = 0;
        self.each((limits, most), &mut |numbers| {
            for &number in numbers {
                let (row, column) = place(at);
                spreads[groups.of_row(row) * columns + column].add(number);
                values[row * columns + column] = number.value as f32;
                at += 1;
            }
        })?;
        let mut exact = Exact::of_groups(&spreads, columns, rows);
        if !exact.is_empty() {
            let mut kept = vec![None; columns];
            exact.columns.iter().enumerate().for_each(|(number, of)| kept[of.column] = Some(number));
            let mut at = 0;
            self.each((limits, most), &mut |numbers| {
                for &number in numbers {
                    let (row, column) = place(at);
                    if let Some(kept) = kept[column] {
                        exact.columns[kept].values[row] = number;
                    }
                    at += 1;
                }
            })?;
        }
        Ok((Features::Dense { columns, values: values.into() }, exact))
    }

    fn each(&mut self, (limits, most): (&Limits, u64), each: &mut dyn FnMut(&[Wide])) -> Result<()> {
        match self {
            DenseArray::Member(npz, name) => npz.each(name, most, each),
            DenseArray::File(path) => each_of_npy(path, (limits, most), each),
        }
    }

    fn error(&self, what: String) -> GraphError {
        match self {
            DenseArray::Member(npz, name) => npz.error(name, what),
            DenseArray::File(path) => GraphError::format(path, "array", what),
        }
    }
}

/// Dense features from a text file of comma-separated numbers, one line a node; as [`DenseArray::read`].
pub fn text_features(path: &Path, nodes: usize, limits: &Limits) -> Result<(Features, Exact)> {
    let most = (limits, limits.features_values_max);
    let (mut values, mut spreads) = (Vec::new(), Vec::new());
    let shape = each_row(path, most, &mut |row: &[Wide]| {
        spreads.resize(row.len(), Spread::default());
        spreads.iter_mut().zip(row).for_each(|(spread, &number)| spread.add(number));
        values.extend(row.iter().map(|number| number.value as f32));
    })?;
    let features = dense(shape, values, nodes).map_err(|what| GraphError::format(path, "lines", what))?;
    let mut exact = Exact::of(&spreads, nodes);
    if !exact.is_empty() {
        let mut line = 0;
        each_row(path, most, &mut |row: &[Wide]| {
            exact.columns.iter_mut().for_each(|of| of.values[line] = row[of.column]);
            line += 1;
        })?;
    }
    Ok((features, exact))
}

/// The CSR matrix `<name>_{data,indices,indptr,shape}`, and of numbers that `f32` may round those columns apart of
/// which too much would be lost.
pub fn npz_csr_features(npz: &mut Npz, name: &str, nodes: usize, limits: &Limits) -> Result<(Features, Exact)> {
    csr_of_groups(npz, &format!("{name}_"), (nodes, Groups::ONE), limits)
}

/// The same of the arrays whose names begin so.
fn csr_of_groups(
    npz: &mut Npz,
    prefix: &str,
    (nodes, groups): (usize, Groups<'_>),
    limits: &Limits,
) -> Result<(Features, Exact)> {
    let member = |part: &str| format!("{prefix}{part}");
    let shape = npz.read::<i64>(&member("shape"), 2)?.values;
    let &[rows, columns] = &shape[..] else {
        return Err(npz.error(&member("shape"), format!("expected rows and columns, found {shape:?}")));
    };
    if rows != nodes as i64 {
        return Err(npz.error(&member("shape"), format!("expected {nodes} rows, one a node, found {rows}")));
    }
    let offsets = npz.read(&member("indptr"), limits.features_values_max)?.values;
    let indices = npz.read(&member("indices"), limits.features_values_max)?.values;
    let values: Vec<f32> = npz.read(&member("data"), limits.features_values_max)?.values;
    let columns = limits.accept_columns(columns, values.len()).map_err(|what| npz.error(&member("shape"), what))?;
    let check = check_sparse((nodes, columns), &offsets, &indices, values.len());
    check.map_err(|what| npz.error(&member("indptr"), what))?;
    let stored = Stored { columns: columns as usize, offsets: &offsets, indices: &indices };
    let exact = match is_narrow(&npz.header(&member("data"))?) {
        true => Exact::default(),
        false => exact_csr(npz, &member("data"), &stored, groups, limits)?,
    };
    Ok((in_order(columns, offsets, indices, values), exact))
}

/// Where the numbers of sparse rows stand.
struct Stored<'a> {
    columns: usize,
    /// Where each row begins among the numbers, and where the last one ends.
    offsets: &'a [i64],
    /// The column of each number.
    indices: &'a [u32],
}

/// A column of a group of rows with so few zeros that `f32` may lose too much of its numbers.
struct Place {
    group: usize,
    /// How many rows of the group store no number there.
    zeros: usize,
    /// How the stored numbers lie.
    spread: Spread,
}

/// All such places: far fewer than groups times columns, since almost all rows of a group store a number there.
struct Full {
    /// Ascending by column, then by group.
    places: Vec<Place>,
    /// Where the places of each column begin, and where the last ones end.
    starts: Vec<usize>,
    /// Whether some row has several numbers of the column.
    is_repeated: Vec<bool>,
}

impl Full {
    fn find(stored: &Stored<'_>, groups: Groups<'_>) -> Full {
        let &Stored { columns, offsets, indices } = stored;
        let mut of_group = vec![Vec::new(); groups.count];
        (0..offsets.len() - 1).for_each(|row| of_group[groups.of_row(row)].push(row));
        let (mut counts, mut last, mut is_repeated) =
            (vec![0; columns], vec![usize::MAX; columns], vec![false; columns]);
        let mut found = Vec::new();
        for (group, rows) in of_group.iter().enumerate() {
            let stored = |row: usize| indices[offsets[row] as usize..offsets[row + 1] as usize].iter();
            for &row in rows {
                for &column in stored(row) {
                    let column = column as usize;
                    counts[column] += 1;
                    is_repeated[column] |= std::mem::replace(&mut last[column], row) == row;
                }
            }
            for &column in rows.iter().flat_map(|&row| stored(row)) {
                let count = std::mem::take(&mut counts[column as usize]);
                if count > 0 && !is_never_lost(count, rows.len()) {
                    found.push((column as usize, group, rows.len().saturating_sub(count)));
                }
            }
        }
        found.sort_unstable();
        let starts = (0..=columns).map(|column| found.partition_point(|place| place.0 < column)).collect();
        let place = |(_, group, zeros)| Place { group, zeros, spread: Spread::default() };
        let places = found.into_iter().map(place).collect();
        Full { places, starts, is_repeated }
    }

    fn of_column(&mut self, column: usize) -> &mut [Place] {
        &mut self.places[self.starts[column]..self.starts[column + 1]]
    }

    /// The columns of which too much would be lost in one of the groups, once all stored numbers have been added.
    fn lost(mut self) -> Vec<usize> {
        self.places.iter_mut().for_each(|place| place.spread.add_zeros(place.zeros));
        let is_lost = |column: &usize| {
            let places = &self.places[self.starts[*column]..self.starts[column + 1]];
            // Numbers of one row are added up later, so that their spread says nothing yet.
            !places.is_empty() && (self.is_repeated[*column] || places.iter().any(|place| place.spread.is_lost()))
        };
        (0..self.starts.len() - 1).filter(is_lost).collect()
    }
}

/// Goes through the stored numbers once more for how they lie, and once more for those of the columns of which `f32`
/// may lose too much; in most others there are more zeros than in these.
fn exact_csr(npz: &mut Npz, name: &str, stored: &Stored<'_>, groups: Groups<'_>, limits: &Limits) -> Result<Exact> {
    let &Stored { columns, offsets, indices } = stored;
    let rows = offsets.len() - 1;
    // The rows by group, and of each column a count, a row, a start, and whether it is repeated.
    let bytes = (rows as u64 * 16).saturating_add(columns as u64 * 25);
    afford(bytes).map_err(|what| npz.error(name, what))?;
    let mut full = Full::find(stored, groups);
    if full.places.is_empty() {
        return Ok(Exact::default());
    }
    let most = limits.features_values_max;
    let each = |npz: &mut Npz, each: &mut dyn FnMut((usize, usize), Wide)| {
        let (mut at, mut row) = (0, 0);
        npz.each(name, most, &mut |numbers: &[Wide]| {
            for &number in numbers {
                while offsets[row + 1] as usize <= at {
                    row += 1;
                }
                each((row, indices[at] as usize), number);
                at += 1;
            }
        })
    };
    each(npz, &mut |(row, column), number| {
        let places = full.of_column(column);
        if let Ok(at) = places.binary_search_by_key(&groups.of_row(row), |place| place.group) {
            places[at].spread.add(number);
        }
    })?;
    let lost = full.lost();
    let bytes = (lost.len() as u64).saturating_mul((rows * size_of::<Wide>()) as u64);
    afford(bytes).map_err(|what| npz.error(name, what))?;
    // The place of each column among these, or none.
    let mut last = vec![usize::MAX; columns];
    lost.iter().enumerate().for_each(|(place, &column)| last[column] = place);
    let of = |column| ExactColumn { column, values: vec![Wide::default(); rows] };
    let mut lost: Vec<ExactColumn> = lost.into_iter().map(of).collect();
    each(npz, &mut |(row, column), number| {
        if let Some(of) = lost.get_mut(last[column]) {
            of.values[row] = of.values[row].and(number);
        }
    })?;
    Ok(Exact::among(lost, groups))
}

/// Dense features of shape [nodes, columns]; a vector is one column.
pub fn dense(shape: Vec<usize>, values: Vec<f32>, nodes: usize) -> std::result::Result<Features, String> {
    match shape[..] {
        [rows] if rows == nodes => Ok(Features::Dense { columns: 1, values: values.into() }),
        [rows, 0] if rows == nodes => Ok(Features::None),
        [rows, columns] if rows == nodes => Ok(Features::Dense { columns, values: values.into() }),
        _ => Err(format!("expected {nodes} rows, one a node, found the shape {shape:?}")),
    }
}

/// Sparse features; checks everything, sorts the columns of a row where they are not ascending and adds duplicates.
pub fn sparse(
    rows: usize,
    columns: u32,
    offsets: Vec<i64>,
    indices: Vec<u32>,
    values: Vec<f32>,
) -> std::result::Result<Features, String> {
    check_sparse((rows, columns), &offsets, &indices, values.len())?;
    Ok(in_order(columns, offsets, indices, values))
}

fn check_sparse(
    (rows, columns): (usize, u32),
    offsets: &[i64],
    indices: &[u32],
    values: usize,
) -> std::result::Result<(), String> {
    check_offsets(offsets, rows, indices.len())?;
    if indices.len() != values {
        return Err(format!("{} column indices but {values} values", indices.len()));
    }
    match indices.iter().position(|&column| column >= columns) {
        Some(place) => Err(format!("column index {place} is {}, but there are {columns} columns", indices[place])),
        None => Ok(()),
    }
}

/// Sparse features of what [`check_sparse`] accepts.
fn in_order(columns: u32, offsets: Vec<i64>, mut indices: Vec<u32>, mut values: Vec<f32>) -> Features {
    let rows = offsets.len() - 1;
    let mut offsets: Vec<u64> = offsets.into_iter().map(|o| o as u64).collect();
    let mut end = 0;
    let mut row_items: Vec<(u32, f32)> = Vec::new();
    let mut start = 0;
    for row in 0..rows {
        // `start` is where the row begins in what was read, `end` where the rows written so far end.
        let range = start..offsets[row + 1] as usize;
        start = range.end;
        let sorted = indices[range.clone()].windows(2).all(|pair| pair[0] < pair[1]);
        if sorted {
            indices.copy_within(range.clone(), end);
            values.copy_within(range.clone(), end);
            end += range.len();
        } else {
            row_items.clear();
            row_items.extend(range.map(|i| (indices[i], values[i])));
            row_items.sort_by_key(|item| item.0);
            let first = end;
            for &(column, value) in &row_items {
                if end > first && indices[end - 1] == column {
                    values[end - 1] += value;
                } else {
                    (indices[end], values[end]) = (column, value);
                    end += 1;
                }
            }
        }
        offsets[row + 1] = end as u64;
    }
    indices.truncate(end);
    values.truncate(end);
    Features::Sparse { columns: columns as usize, offsets, indices, values }
}

/// Checks that `offsets` are the boundaries of `rows` rows over `stored` items.
pub fn check_offsets(offsets: &[i64], rows: usize, stored: usize) -> std::result::Result<(), String> {
    if offsets.len() != rows + 1 {
        return Err(format!("{} row boundaries, expected {} for {rows} rows", offsets.len(), rows + 1));
    }
    if offsets[0] != 0 || offsets[rows] != stored as i64 {
        let (first, last) = (offsets[0], offsets[rows]);
        return Err(format!("row boundaries go from {first} to {last}, expected from 0 to {stored}"));
    }
    match offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        Some(row) => Err(format!("row {row} ends at {} before it starts at {}", offsets[row + 1], offsets[row])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsorted_rows_are_sorted_and_duplicates_added() {
        let got = sparse(3, 4, vec![0, 3, 3, 5], vec![2, 0, 2, 1, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let (offsets, indices, values) = (vec![0, 2, 2, 4], vec![0, 2, 1, 3], vec![2.0, 4.0, 4.0, 5.0]);
        assert_eq!(got, Features::Sparse { columns: 4, offsets, indices, values });
    }

    #[test]
    fn broken_row_boundaries_are_named() {
        assert!(sparse(2, 4, vec![0, 2, 1], vec![0], vec![1.0]).unwrap_err().contains("row 1 ends at 1"));
        assert!(sparse(2, 4, vec![0, 1], vec![0], vec![1.0]).unwrap_err().contains("expected 3"));
        assert!(sparse(1, 4, vec![0, 1], vec![4], vec![1.0]).unwrap_err().contains("is 4, but there are 4 columns"));
    }

    /// 4,096 groups and a million columns: only pairs that store numbers take memory.
    #[test]
    fn only_places_with_few_zeros_are_kept() {
        let (groups, columns) = (4096, 1 << 20);
        // A row of each group, every second one with a number, then 300 rows of group 7 with the last column.
        let of: Vec<u16> = (0..groups).chain([7; 300]).collect();
        let indices: Vec<u32> =
            (0..u32::from(groups) / 2).map(|row| 2 * row).chain([columns as u32 - 1; 300]).collect();
        let stored = |row: usize| (row / 2).min(usize::from(groups) / 2) + row.saturating_sub(usize::from(groups));
        let offsets: Vec<i64> = (0..=of.len()).map(|row| stored(row) as i64).collect();
        assert_eq!(offsets.last(), Some(&(indices.len() as i64)));
        let groups = Groups::of(&of);
        let mut full = Full::find(&Stored { columns, offsets: &offsets, indices: &indices }, groups);
        let last = full.of_column(columns - 1);
        assert_eq!(last.iter().map(|place| (place.group, place.zeros)).collect::<Vec<_>>(), [(7, 1)]);
        (0..300).for_each(|step| last[0].spread.add(Wide::integer(1_000_000_000 + step)));
        assert_eq!(full.lost(), [columns - 1]);
    }
}
