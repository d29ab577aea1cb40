//! Which rows of a part layers have to output, when only some of what the last layer outputs is read: these, then
//! what these read, and so on. Rows in the order of who reads them make what a layer outputs the first rows there are.

use crate::edges::Edges;
use crate::plan::HaloPlan;

/// How far each own row is from rows that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// For each own row, over how many edges it is read by one that is wanted; one more than the most where by none.
    of_rows: Vec<u16>,
    most: u16,
}

impl Steps {
    /// Counts steps along `own` edges up to `most` from the rows that are `wanted`. What other workers need, by
    /// `links`, counts as read over one edge: what they do with it is theirs.
    pub fn to(wanted: impl Fn(usize) -> bool, own: &Edges<u32>, links: &HaloPlan, most: u16) -> Steps {
        let beyond = most.saturating_add(1);
        let mut of_rows: Vec<u16> = (0..own.rows()).map(|row| if wanted(row) { 0 } else { beyond }).collect();
        let mut left = of_rows.iter().filter(|&&steps| steps == beyond).count();
        let mut reached: Vec<u32> = (0..own.rows() as u32).filter(|&row| of_rows[row as usize] == 0).collect();
        for step in 1..=most {
            if left == 0 {
                break;
            }
            let mut next = Vec::new();
            let mut reach = |row: u32| {
                if of_rows[row as usize] == beyond {
                    of_rows[row as usize] = step;
                    next.push(row);
                }
            };
            reached.iter().flat_map(|&row| own.in_neighbours(row as usize)).for_each(|&source| reach(source));
            if step == 1 {
                links.links.iter().flat_map(|link| &link.send).for_each(|&row| reach(row));
            }
            left -= next.len();
            reached = next;
        }
        Steps { of_rows, most }
    }

    /// Whether a row that is wanted reads this one over so many edges at most.
    pub fn reach(&self, row: usize) -> bool {
        self.of_rows[row] <= self.most
    }

    /// These steps, and after their last the steps to other rows that are wanted, of all that are further than these
    /// say.
    #[must_use]
    pub fn then(&self, next: &Steps) -> Steps {
        let first = self.most.saturating_add(1);
        let of = |(&own, &next): (&u16, &u16)| if own < first { own } else { first.saturating_add(next) };
        let of_rows = self.of_rows.iter().zip(&next.of_rows).map(of).collect();
        Steps { of_rows, most: first.saturating_add(next.most) }
    }

    /// These steps and those to other rows that are wanted in turn: step k of these is 2k, step k of the others 2k + 1.
    #[must_use]
    pub fn in_turn(&self, others: &Steps) -> Steps {
        let most = self.most.max(others.most).saturating_mul(2).saturating_add(1);
        let beyond = most.saturating_add(1);
        let turn = |steps: u16, of: &Steps, after: u16| {
            if steps <= of.most { steps.saturating_mul(2).saturating_add(after) } else { beyond }
        };
        let of = |(&own, &other): (&u16, &u16)| turn(own, self, 0).min(turn(other, others, 1));
        Steps { of_rows: self.of_rows.iter().zip(&others.of_rows).map(of).collect(), most }
    }

    /// For each number of steps from 0 on, how many rows are within so many.
    pub fn within(&self) -> Vec<usize> {
        let within = |steps: u16| self.of_rows.iter().filter(|&&of_row| of_row <= steps).count();
        (0..=self.most).map(within).collect()
    }

    /// How many own rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.of_rows.len()
    }

    /// The steps of an own row.
    pub(crate) fn of(&self, row: u32) -> u16 {
        self.of_rows[row as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Order;
    use crate::plan::Link;

    #[test]
    fn rows_are_counted_by_who_reads_them_and_put_in_that_order() {
        // Row 4 reads 2 and itself, 2 reads 0, 3 reads 4; somebody else reads 1.
        let own = Edges::new(vec![0, 0, 0, 1, 2, 4], vec![0, 4, 2, 4]);
        let link = Link { send: vec![1], receive: 0..0 };
        let links = HaloPlan { rank: 0, links: vec![Link::default(), link] };
        let steps = Steps::to(|row| row == 4, &own, &links, 2);
        assert_eq!(steps.of_rows, [2, 1, 1, 3, 0]);
        assert_eq!(steps.within(), [1, 3, 4]);
        assert_eq!(Order::by_steps(None, &steps).map(|order| order.rows().to_vec()), Some(vec![4, 1, 2, 0, 3]));
        let reversed = Order::new(vec![4, 3, 2, 1, 0]);
        assert_eq!(
            Order::by_steps(Some(reversed), &steps).map(|order| order.rows().to_vec()),
            Some(vec![4, 2, 1, 0, 3])
        );
        // Then whoever is read by 3 or by those that are wanted already.
        let chained = Steps::to(|row| row == 4, &own, &links, 0).then(&Steps::to(|row| row >= 3, &own, &links, 1));
        assert_eq!((chained.of_rows.as_slice(), chained.within()), (&[3, 2, 2, 1, 0][..], vec![1, 2, 4]));
        // Wanted, then what others want, then what reads the wanted, and so on.
        let in_turn = steps.in_turn(&Steps::to(|row| row >= 3, &own, &links, 1));
        assert_eq!((in_turn.of_rows.as_slice(), in_turn.within()), (&[4, 2, 2, 1, 0][..], vec![1, 2, 4, 4, 5, 5]));
        assert_eq!((0..5).filter(|&row| steps.reach(row)).collect::<Vec<_>>(), [0, 1, 2, 4]);
        let all = Steps::to(|_| true, &own, &links, 2);
        assert_eq!((all.within(), Order::by_steps(None, &all)), (vec![5; 3], None));
    }
}
