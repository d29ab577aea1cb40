//! A book of codewords for rows of numbers: k-means at the owner (Lloyd, 1982), whose results depend on nothing but the
//! rows and their order.

/// How many rows codewords are learned from, at most.
const LEARNED_FROM: usize = 8192;

/// A book may have so many words, whatever they take.
const FEW: usize = 64;

/// How often each codeword moves to the mean of the rows that are nearest to it.
const STEPS: usize = 8;

/// Words that are measured at once, which is a few vectors of any processor.
const LANES: usize = 32;

/// Codewords side by side: for each group of [`LANES`] words the values of one column after the other, so that
/// distances to a group are sums of vectors.
struct Words {
    width: usize,
    /// Groups × columns.
    values: Vec<[f32; LANES]>,
    /// Half the square of each word's length; infinite where the last group has no word, which is then never near.
    halves: Vec<[f32; LANES]>,
}

impl Words {
    /// Words in rows, of this width.
    fn of(rows: &[f32], width: usize) -> Words {
        let groups = (rows.len() / width).div_ceil(LANES);
        let (values, halves) = (vec![[0.0; LANES]; groups * width], vec![[f32::INFINITY; LANES]; groups]);
        let mut words = Words { width, values, halves };
        for (word, row) in rows.chunks(width).enumerate() {
            let (group, lane) = (word / LANES, word % LANES);
            let columns = words.values[group * width..].iter_mut();
            columns.zip(row).for_each(|(column, &value)| column[lane] = value);
            words.halves[group][lane] = row.iter().map(|value| value * value).sum::<f32>() / 2.0;
        }
        words
    }

    /// The nearest word to a row, of which only what is not 0 is given, by columns; the first of several.
    #[inline(always)]
    fn nearest(&self, row: &[(usize, f32)]) -> usize {
        let (mut best, mut word) = (f32::INFINITY, 0);
        for (group, halves) in self.halves.iter().enumerate() {
            let (mut near, columns) = (*halves, &self.values[group * self.width..][..self.width]);
            for &(column, value) in row {
                for (near, word) in near.iter_mut().zip(&columns[column]) {
                    *near -= value * word;
                }
            }
            let least = least(near);
            if least < best {
                let lane = near.iter().position(|distance| *distance == least);
                (best, word) = (least, group * LANES + lane.unwrap_or_default());
            }
        }
        word
    }
}

/// The smallest of these, by halves, which are vectors.
#[inline(always)]
fn least(mut of: [f32; LANES]) -> f32 {
    let mut lanes = LANES;
    while lanes > 1 {
        lanes /= 2;
        let (low, high) = of.split_at_mut(lanes);
        for (low, high) in low.iter_mut().zip(high) {
            *low = if *high < *low { *high } else { *low };
        }
    }
    of[0]
}

/// Finds the nearest word to each of these rows: a type, so that it is compiled for each instruction set.
struct Nearest<'a, Rows> {
    book: &'a Words,
    rows: Rows,
}

impl<'a, Rows: Iterator<Item = &'a [f32]>> pulp::NullaryFnOnce for Nearest<'_, Rows> {
    type Output = Vec<usize>;

    #[inline(always)]
    fn call(self) -> Vec<usize> {
        let mut found = Vec::with_capacity(self.rows.size_hint().0);
        let mut given = Vec::with_capacity(self.book.width);
        for row in self.rows {
            given.clear();
            given.extend(row.iter().copied().enumerate().filter(|(_, value)| *value != 0.0));
            found.push(self.book.nearest(&given));
        }
        found
    }
}

/// How many words a book has for so many rows, of which each is told in `code` bytes, where a word takes `word` bytes:
/// no more than `most`, nor than rows; and more than 64 only while the book takes no more than all rows do. So bytes
/// grow with rows alone, however many peers these are divided among, each with a book of its own.
#[must_use]
pub fn words_in_book(rows: usize, [code, word]: [usize; 2], most: usize) -> usize {
    (rows * code / word.max(1)).max(FEW).min(most).min(rows)
}

/// For each of these rows of `width` values the number of its codeword, of so many that are learned from the rows: the
/// nearest by Euclidean distance. No more words than rows; nothing for rows without columns.
///
/// Costs (8 · min(rows, 8192) + rows) · words additions for each value that is not 0.
#[must_use]
pub fn words_of(rows: &[f32], width: usize, count: usize) -> Vec<usize> {
    let total = rows.len() / width.max(1);
    let (count, arch) = (count.min(total), pulp::Arch::default());
    if count == 0 {
        return Vec::new();
    }
    // Rows at equal distances; so are the words that the search begins with.
    let learned = total.min(LEARNED_FROM);
    let row = |place: usize, of: usize| &rows[place * total / of * width..][..width];
    let mut words: Vec<f32> = (0..count).flat_map(|word| row(word, count).to_vec()).collect();
    for _ in 0..STEPS {
        let (book, mut sums, mut sizes) = (Words::of(&words, width), vec![0.0; words.len()], vec![0.0f32; count]);
        let rows = || (0..learned).map(|place| row(place, learned));
        for (word, row) in arch.dispatch(Nearest { book: &book, rows: rows() }).into_iter().zip(rows()) {
            sizes[word] += 1.0;
            sums[word * width..][..width].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        // A word that no row is nearest to stays where it is.
        for (word, size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0.0) {
            let sums = &sums[word * width..][..width];
            words[word * width..][..width].iter_mut().zip(sums).for_each(|(word, sum)| *word = sum / size);
        }
    }
    let book = Words::of(&words, width);
    arch.dispatch(Nearest { book: &book, rows: rows.chunks_exact(width) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_few_kinds_get_a_word_for_each_kind() {
        let kinds = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 3.0]];
        let rows: Vec<f32> = (0..300).flat_map(|row| kinds[row * 7 % 3]).collect();
        let words = words_of(&rows, 3, 8);
        for (row, word) in words.iter().enumerate() {
            for (other, another) in words.iter().enumerate() {
                assert_eq!(row % 3 == other % 3, word == another, "rows {row} and {other}");
            }
        }
    }

    /// The law holds against the plain search: of all words, one by one, the first that is nearest.
    #[test]
    fn every_row_gets_the_first_of_the_words_nearest_to_it() {
        let stream = laconic_key::Key::new(3, laconic_key::Purpose::Test);
        // Small whole numbers, so that distances are exact and some are equal; many zeros.
        let value = |at: usize| (stream.with(at as u64).unit() * 5.0).floor() as f32 - 2.0;
        for (width, count, total) in [(1, 2, 9), (3, 31, 40), (4, 33, 70), (7, 256, 300)] {
            let (rows, words): (Vec<f32>, Vec<f32>) =
                ((0..total * width).map(value).collect(), (1000..1000 + count * width).map(value).collect());
            let book = Words::of(&words, width);
            let found = pulp::Arch::default().dispatch(Nearest { book: &book, rows: rows.chunks_exact(width) });
            for (row, found) in rows.chunks_exact(width).zip(found) {
                let distance = |word: &[f32]| word.iter().zip(row).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
                let distances: Vec<f32> = words.chunks_exact(width).map(distance).collect();
                let least = distances.iter().copied().fold(f32::INFINITY, f32::min);
                assert_eq!(Some(found), distances.iter().position(|distance| *distance == least), "{row:?}");
            }
        }
    }

    #[test]
    fn a_book_takes_no_more_than_its_rows_or_has_few_words() {
        for (rows, code, word, most, expected) in [
            (0, 1, 44, 256, 0),
            (10, 1, 44, 256, 10),
            (1000, 1, 44, 256, 64),
            (4200, 1, 44, 256, 95),
            (31_500, 1, 44, 256, 256),
            (4200, 4, 80, 255, 210),
            (300, 1, 0, 256, 256),
        ] {
            assert_eq!(words_in_book(rows, [code, word], most), expected, "{rows} rows");
        }
    }

    #[test]
    fn there_are_no_more_words_than_rows() {
        assert_eq!(words_of(&[], 2, 4), Vec::<usize>::new());
        assert_eq!(words_of(&[5.0, 1.0], 2, 4), [0]);
    }
}
