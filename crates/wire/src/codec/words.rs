//! A book of codewords for rows of numbers: k-means at the owner (Lloyd, 1982), whose results depend on nothing but the
//! rows and their order.

/// How many rows codewords are learned from, at most.
const LEARNED_FROM: usize = 8192;

/// How often each codeword moves to the mean of the rows that are nearest to it.
const STEPS: usize = 8;

/// Codewords in columns: the values of one column for all words stand together, so that distances to all are sums of
/// vectors.
struct Words {
    count: usize,
    /// Columns × words.
    values: Vec<f32>,
    /// Half the square of each word's length.
    halves: Vec<f32>,
}

impl Words {
    /// Words in rows, of this width.
    fn of(rows: &[f32], width: usize) -> Words {
        let count = rows.len() / width;
        let mut words = Words { count, values: vec![0.0; rows.len()], halves: vec![0.0; count] };
        for (word, row) in rows.chunks(width).enumerate() {
            row.iter().enumerate().for_each(|(column, &value)| words.values[column * count + word] = value);
            words.halves[word] = row.iter().map(|value| value * value).sum::<f32>() / 2.0;
        }
        words
    }

    /// The nearest word to a row, the first of several; `near` is memory for a value a word.
    fn nearest(&self, row: &[f32], near: &mut Vec<f32>) -> usize {
        near.clear();
        near.extend_from_slice(&self.halves);
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            let of_column = &self.values[column * self.count..][..self.count];
            near.iter_mut().zip(of_column).for_each(|(near, word)| *near -= value * word);
        }
        let mut best = 0;
        for (word, distance) in near.iter().enumerate() {
            if *distance < near[best] {
                best = word;
            }
        }
        best
    }
}

/// For each of these rows of `width` values the number of its codeword, of so many that are learned from the rows: the
/// nearest by Euclidean distance. No more words than rows; nothing for rows without columns.
///
/// Costs (8 · min(rows, 8192) + rows) · words additions for each value that is not 0.
#[must_use]
pub fn words_of(rows: &[f32], width: usize, count: usize) -> Vec<usize> {
    let total = rows.len() / width.max(1);
    let (count, mut near) = (count.min(total), Vec::new());
    if count == 0 {
        return Vec::new();
    }
    // Rows at equal distances; so are the words that the search begins with.
    let learned = total.min(LEARNED_FROM);
    let row = |place: usize, of: usize| &rows[place * total / of * width..][..width];
    let mut words: Vec<f32> = (0..count).flat_map(|word| row(word, count).to_vec()).collect();
    for _ in 0..STEPS {
        let (book, mut sums, mut sizes) = (Words::of(&words, width), vec![0.0; words.len()], vec![0.0f32; count]);
        for row in (0..learned).map(|place| row(place, learned)) {
            let word = book.nearest(row, &mut near);
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
    rows.chunks(width).map(|row| book.nearest(row, &mut near)).collect()
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

    #[test]
    fn there_are_no_more_words_than_rows() {
        assert_eq!(words_of(&[], 2, 4), Vec::<usize>::new());
        assert_eq!(words_of(&[5.0, 1.0], 2, 4), [0]);
    }
}
