//! Sums of own rows that cross in the place of rows, where that takes fewer ([`laconic_graph::plan::Cuts`]).

use laconic_graph::edges::Edges;
use laconic_nn::kernels::Store;
use laconic_nn::kernels::fold::{sum_fold, sum_fold_adjoint_of_first};
use laconic_nn::{Block, Compute, EdgeData, Matrix};
use laconic_wire::Direction;

/// What goes out, as sums of own rows, of which many are single rows.
pub struct Sums {
    /// Own rows → what goes out.
    block: Block,
    /// Memory for what goes out, and for the gradients that come back.
    room: [Matrix; 2],
}

impl Sums {
    /// Those of these edges from own rows to what goes out.
    pub fn new(outgoing: Edges<u32>, own_rows: usize) -> Sums {
        let offsets = outgoing.offsets.into_iter().map(|offset| offset as usize).collect();
        let data = EdgeData { weights: outgoing.data.weights, relations: None };
        Sums { block: Block::new(own_rows, offsets, outgoing.sources, data), room: Default::default() }
    }

    /// What goes out of these own rows. To be given back with [`Sums::keep`].
    pub fn outgoing(&mut self, compute: &Compute, rows: &Matrix) -> Matrix {
        let mut out = self.take(Direction::Forward, rows);
        sum_fold(compute, &mut out, Store::Set, &self.block, rows);
        out
    }

    /// Zeros, for the gradients of what went out. To be given back with [`Sums::keep`].
    pub fn coming(&mut self, like: &Matrix) -> Matrix {
        let mut coming = self.take(Direction::Reverse, like);
        coming.clear();
        coming
    }

    /// Adds to own rows, or to the first of them where no others go out, the gradients of what went out.
    pub fn add(&self, compute: &Compute, came: &Matrix, into: &mut Matrix) {
        sum_fold_adjoint_of_first(compute, into, Store::Add, &self.block, came);
    }

    /// Takes a matrix back, whose memory is used again.
    pub fn keep(&mut self, direction: Direction, matrix: Matrix) {
        self.room[direction as usize] = matrix;
    }

    /// Lets go of that memory, after an exchange that happens once.
    pub fn release(&mut self) {
        self.room = Default::default();
    }

    fn take(&mut self, direction: Direction, like: &Matrix) -> Matrix {
        let mut room = std::mem::take(&mut self.room[direction as usize]);
        room.store_as(like.precision());
        room.reshape(self.block.destinations(), like.columns());
        room
    }
}
