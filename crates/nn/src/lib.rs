//! Graph neural networks on one worker's rows: kernels, layers, losses, optimisers, metrics.
//!
//! Nothing here knows of a network or of files. A layer is three pairs of functions ([`layer::Layer`]); whoever drives
//! it decides what stands between them. A whole undivided layer is the special case with an empty halo:
//!
//! ```
//! use laconic_nn::{At, Block, Closing, Compute, Ending, LayerSpec, Matrix, Nodes, Rows, Side, Sources, State};
//! use laconic_nn::layer_kind;
//!
//! let mut compute = Compute::new(1);
//! // Edges 0 → 1 and 1 → 1, 0 → 0 (self-loops are edges).
//! let block = Block::new(2, vec![0, 1, 3], vec![0, 0, 1], None);
//! let x = Matrix::from_vec(2, 1, vec![2.0, 4.0]);
//! let gcn = layer_kind("gcn").unwrap().layer(&LayerSpec::new(1, 1));
//! let parameters = [1.0, 0.5]; // weight, bias
//! let (half, one) = (0.5f32.sqrt(), 1.0);
//! let nodes = Nodes { ids: &[0, 1], inverse_degree: &[1.0, 0.5], inverse_root_degree: &[one, half] };
//! let (mut messages, mut folded, mut z, mut state) =
//!     (Matrix::default(), Matrix::default(), Matrix::default(), State::default());
//! let at = &mut At { compute: &mut compute, p: &parameters, nodes, state: &mut state };
//! gcn.message(at, Rows::Dense(&x), &mut messages);
//! gcn.fold(at, Sources::new(Side::Own, &block, &messages), &mut folded);
//! gcn.finish_fold(at, &mut folded, Ending::Folds);
//! gcn.close(at, Closing { x: Rows::Dense(&x), folded: Rows::Dense(&folded) }, &mut z);
//! assert!((z.row(1)[0] - (2.0 * half + 4.0 * half * half + 0.5)).abs() < 1e-6);
//! ```

pub mod after;
pub mod architecture;
pub mod block;
pub mod decisions;
pub mod decoder;
pub mod dropout;
pub mod kernels;
pub mod laws;
pub mod layer;
pub mod links;
mod long;
pub mod loss;
pub mod matrix;
pub mod metric;
pub mod network;
pub mod optimiser;
pub mod parameters;
pub mod ranking;
pub mod registry;
pub mod roc;
pub mod threads;

pub use block::{Block, EdgeData};
pub use dropout::Dropout;
pub use layer::{
    Absence, At, Closing, EdgeWeights, Ending, Facts, Layer, LayerSpec, NodeWeight, Nodes, Product, Senders, Side,
    Slot, Sources, State, Undivided, Wanted, Whole, layer_kind,
};
pub use matrix::{DenseRows, Matrix, Operand, Precision, Rows, Span, SparseRows, SparseSpan};
pub use network::{Network, Unit};
pub use registry::Registry;
pub use threads::Compute;
