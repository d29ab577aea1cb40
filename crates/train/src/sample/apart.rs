//! Rows of other workers that are here already, apart from own ones: a batch reads them and makes none of them.

use laconic_graph::sample::Hop;
use laconic_nn::EdgeData;

/// The edges of a hop that start on one side, by place there.
#[derive(Default)]
pub(super) struct SideEdges {
    pub sources: usize,
    pub offsets: Vec<usize>,
    pub columns: Vec<u32>,
    pub data: EdgeData,
}

/// Where each row of a batch stands among own rows, or among the others.
pub(super) struct Sides {
    /// How many rows before each one, and at last of all, are own.
    own_before: Vec<u32>,
}

impl Sides {
    /// The sides of nodes in the order of a batch's rows.
    pub fn new(nodes: &[u32], is_foreign: impl Fn(u32) -> bool) -> Sides {
        let mut own_before = Vec::with_capacity(nodes.len() + 1);
        own_before.push(0);
        for &node in nodes {
            own_before.push(own_before[own_before.len() - 1] + u32::from(!is_foreign(node)));
        }
        Sides { own_before }
    }

    fn is_own(&self, row: usize) -> bool {
        self.own_before[row + 1] > self.own_before[row]
    }

    /// Own rows among the first so many.
    fn own(&self, rows: usize) -> usize {
        self.own_before[rows] as usize
    }

    /// These values of a batch's rows, own ones' and the others'.
    pub fn split<T: Copy>(&self, values: &[T]) -> [Vec<T>; 2] {
        let (mut own, mut others) = (Vec::with_capacity(self.own(values.len())), Vec::new());
        for (row, &value) in values.iter().enumerate() {
            if self.is_own(row) { own.push(value) } else { others.push(value) }
        }
        [own, others]
    }

    /// The edges into own rows, those from own rows and those from others. The rest is dropped: rows of others are not
    /// made here.
    pub fn edges(&self, hop: &Hop) -> [SideEdges; 2] {
        let own = self.own(hop.sources);
        let mut sides = [own, hop.sources - own].map(|sources| SideEdges {
            sources,
            offsets: vec![0],
            columns: Vec::new(),
            data: EdgeData {
                weights: hop.weights.is_some().then(Vec::new),
                relations: hop.relations.is_some().then(Vec::new),
            },
        });
        for row in (0..hop.destinations).filter(|&row| self.is_own(row)) {
            for edge in hop.offsets[row]..hop.offsets[row + 1] {
                let source = hop.columns[edge] as usize;
                let before = self.own(source);
                let (side, place) = if self.is_own(source) { (0, before) } else { (1, source - before) };
                let SideEdges { columns, data, .. } = &mut sides[side];
                columns.push(place as u32);
                if let (Some(into), Some(from)) = (&mut data.weights, &hop.weights) {
                    into.push(from[edge]);
                }
                if let (Some(into), Some(from)) = (&mut data.relations, &hop.relations) {
                    into.push(from[edge]);
                }
            }
            sides.iter_mut().for_each(|side| side.offsets.push(side.columns.len()));
        }
        sides
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_divided_by_where_they_start_and_end_at_own_rows_alone() {
        // Rows 1 and 3 are others'.
        let sides = Sides::new(&[4, 9, 2, 8, 5], |node| node > 7);
        assert_eq!(sides.split(&[10, 11, 12, 13, 14]), [vec![10, 12, 14], vec![11, 13]]);
        let hop = Hop {
            destinations: 3,
            sources: 5,
            offsets: vec![0, 3, 4, 6],
            columns: vec![0, 3, 4, 2, 1, 2],
            weights: Some(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            relations: None,
            degrees: vec![3, 1, 2],
            loops: false,
        };
        let [own, others] = sides.edges(&hop);
        assert_eq!((own.sources, &own.offsets[..], &own.columns[..]), (3, &[0, 2, 3][..], &[0, 2, 1][..]));
        assert_eq!((others.sources, &others.offsets[..], &others.columns[..]), (2, &[0, 1, 2][..], &[1, 0][..]));
        assert_eq!(own.data.weights, Some(vec![1.0, 3.0, 6.0]));
        assert_eq!(others.data.weights, Some(vec![2.0, 5.0]));
    }
}
