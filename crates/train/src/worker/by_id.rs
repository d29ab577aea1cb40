//! Own rows by global id, in whichever order they stand.

use laconic_graph::order::Order;

/// Rows of nodes in the order of their global ids.
#[derive(Debug, Clone, Default)]
pub struct ById {
    /// Ids that ascend, and their rows in this order; `None` where rows stand so.
    sorted: Option<(Vec<u64>, Order)>,
}

impl ById {
    /// For rows of nodes with these ids, each another one.
    pub fn of(ids: &[u64]) -> ById {
        if ids.is_sorted() {
            return ById::default();
        }
        let mut rows: Vec<u32> = (0..ids.len() as u32).collect();
        rows.sort_unstable_by_key(|&row| ids[row as usize]);
        let sorted = rows.iter().map(|&row| ids[row as usize]).collect();
        ById { sorted: Some((sorted, Order::new(rows))) }
    }

    /// The ids, ascending; `ids` are those that it was made for.
    pub fn ids<'a>(&'a self, ids: &'a [u64]) -> &'a [u64] {
        self.sorted.as_ref().map_or(ids, |(sorted, _)| sorted)
    }

    /// The row of the node whose id has this place among all.
    pub fn row(&self, place: u32) -> u32 {
        self.sorted.as_ref().map_or(place, |(_, order)| order.rows()[place as usize])
    }

    /// What puts rows into the order of ids; `None` where they stand so.
    pub fn order(&self) -> Option<&Order> {
        self.sorted.as_ref().map(|(_, order)| order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_the_place_of_their_id_in_whichever_order_they_stand() {
        for ids in [vec![], vec![7], vec![1, 5, 9, 40], vec![9, 40, 1, 5], vec![40, 9, 5, 1]] {
            let by_id = ById::of(&ids);
            let ascending = by_id.ids(&ids);
            assert!(ascending.is_sorted() && ascending.len() == ids.len(), "{ids:?}: {ascending:?}");
            for (&id, place) in ascending.iter().zip(0..) {
                assert_eq!(ids[by_id.row(place) as usize], id, "{ids:?}");
            }
            assert_eq!(by_id.order().is_none(), ids.is_sorted());
        }
    }
}
