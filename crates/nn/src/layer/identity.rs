//! A layer that outputs what it reads: class scores that somebody else has made, where a network is asked for.

use super::{At, Closing, EdgeWeights, Facts, Layer, Senders, Sources, Wanted};
use crate::kernels::Store;
use crate::kernels::elementwise::copy_scaled;
use crate::matrix::{Matrix, Rows};

/// The layer; see the module's documentation.
pub struct Identity {
    width: usize,
    facts: Facts,
}

impl Identity {
    /// The identity of rows of this width.
    pub fn new(width: usize) -> Self {
        let facts = Facts {
            message_width: 0,
            fold_width: 0,
            edge_weights: EdgeWeights::Unread,
            takes_bf16: true,
            reads_own_row: true,
            pyg: "Identity()".to_owned(),
            ..Facts::new(width, width, Vec::new())
        };
        Identity { width, facts }
    }
}

impl Layer for Identity {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn message(&self, _at: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        out.reshape(x.rows(), 0);
    }

    fn fold(&self, _at: &mut At<'_>, Sources { block, .. }: Sources<'_>, folded: &mut Matrix) {
        folded.reshape(block.destinations(), 0);
    }

    fn close(&self, At { compute, .. }: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        out.reshape(input.x.rows(), self.width);
        copy_scaled(compute, out, Store::Set, input.x, 1.0, None);
    }

    fn add_close_gradients(&self, _at: &mut At<'_>, _g: &mut [f32], _input: Closing<'_>, _dz: &Matrix) {}

    fn close_adjoint(&self, _at: &mut At<'_>, dz: &mut Matrix, Wanted { dx, .. }: Wanted<'_>) {
        if let Some(dx) = dx {
            std::mem::swap(dx, dz);
        }
    }

    fn fold_adjoint(
        &self,
        _at: &mut At<'_>,
        _g: &mut [f32],
        Sources { block, .. }: Sources<'_>,
        _dfolded: &Matrix,
        dmessages: &mut Matrix,
    ) {
        dmessages.reshape(block.sources(), 0);
    }

    fn message_adjoint(
        &self,
        _at: &mut At<'_>,
        _g: &mut [f32],
        _senders: Senders<'_>,
        _dmessages: &mut Matrix,
        _dx: Option<(&mut Matrix, Store)>,
    ) {
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Nodes, State};
    use crate::threads::Compute;

    #[test]
    fn rows_go_out_and_gradients_come_back_as_they_are() {
        let (layer, mut compute, mut state) = (Identity::new(2), Compute::new(1), State::default());
        let x = Matrix::from_vec(2, 2, vec![1.0, -2.0, 0.5, 3.0]);
        let nodes = Nodes { ids: &[0, 1], inverse_degree: &[1.0; 2], inverse_root_degree: &[1.0; 2] };
        let at = &mut At { compute: &mut compute, p: &[], nodes, state: &mut state };
        let (mut out, nothing) = (Matrix::default(), Matrix::zeros(2, 0));
        layer.close(at, Closing { x: Rows::Dense(&x), folded: Rows::Dense(&nothing) }, &mut out);
        assert_eq!(out, x);
        let (mut dz, mut dx) = (x.clone(), Matrix::default());
        layer.close_adjoint(at, &mut dz, Wanted { dx: Some(&mut dx), dfolded: None });
        assert_eq!(dx, x);
    }
}
