//! What is known of a layer whatever the values of its parameters.

use super::{Absence, EdgeWeights, Nodes};
use crate::parameters::ParameterSpec;

/// What is known of a layer whatever the values of its parameters. Networks, exchanges, forecasts and exports ask here.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Width of the rows that come in.
    pub inputs: usize,
    /// Width of the rows that go out.
    pub outputs: usize,
    /// Width of messages; 0 for a layer that reads no neighbours.
    pub message_width: usize,
    /// Width of folds.
    pub fold_width: usize,
    /// Shapes, names (PyTorch Geometric's) and initial values of the parameters, in the order of the flat slice.
    pub parameters: Vec<ParameterSpec>,
    /// The dense products that the layer's equations have for each row. A product costs as much on rows as on their
    /// folds, so it does not matter which of the two the layer multiplies.
    pub products: Vec<Product>,
    /// The name of the parameter that is added to every row that goes out, where there is one. A norm over rows takes
    /// away what it adds.
    pub shift: Option<&'static str>,
    /// Whether messages, or how they are folded, depend on parameters. Where neither does, the fold is a sum of
    /// messages, and that of frozen inputs can be computed once and kept.
    pub message_has_parameters: bool,
    /// Whether messages are rows as they are, but for what their senders multiply them by.
    pub message_is_row: bool,
    /// Whether folds are sums of messages times the weights of edges, and messages linear in rows: then a sum of
    /// neighbours' messages, so weighed, may stand in their place, and a message of summed rows is the sum of messages.
    pub is_linear: bool,
    /// What a message is multiplied by for its sender's sake, which only the sender's owner knows. Nothing else of
    /// nodes may enter a message, and the row may be multiplied in its place: whoever gets rows so multiplied makes
    /// the same messages of them, with nodes of weight 1.
    pub sender_weight: NodeWeight,
    /// What a message counts for at its destination besides the edge's weight, about (for models of quantisation's
    /// variance).
    pub destination_weight: NodeWeight,
    /// Values a row that the layer keeps in [`State`](super::State), stored as rows are.
    pub state_columns: usize,
    /// Values of four bytes that the layer keeps in [`State`](super::State) besides, for each own row, and for each
    /// edge that ends there.
    pub state_values: [usize; 2],
    /// How many scores each edge has that its message is weighed by, each made of a value of either end and compared
    /// with those of its destination's other edges. Counts of the work ask.
    pub scores: usize,
    /// Whether the adjoint of the fold reads something of each edge, so that it goes by
    /// [`Block::positions`](crate::Block::positions) even where edges have no weights.
    pub reads_positions: bool,
    /// How the fold takes halo rows of which only some are there.
    pub absence: Absence,
    /// What the layer makes of the weights of edges.
    pub edge_weights: EdgeWeights,
    /// Whether every function of the layer takes matrices that store values as bf16, and others beside them.
    pub takes_bf16: bool,
    /// Whether [`Layer::close`](super::Layer::close) reads the node's own row besides the fold.
    pub reads_own_row: bool,
    /// Whether output rows are folds with something done to each value that can be done in its place, so that a layer
    /// whose messages have parameters need not have both: then it knows [`Ending::Outputs`](super::Ending::Outputs).
    pub outputs_are_folds: bool,
    /// The call that makes the same layer in PyTorch Geometric (or PyTorch), for exported models; `{self_loops}` stands
    /// for whether it adds self-loops.
    pub pyg: String,
}

/// A weight that nodes have by their degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeWeight {
    /// 1.
    One,
    /// [`Nodes::inverse_degree`].
    InverseDegree,
    /// [`Nodes::inverse_root_degree`].
    InverseRootDegree,
}

impl NodeWeight {
    /// That of each of these nodes; `None` stands for 1.
    pub fn of<'a>(self, nodes: &Nodes<'a>) -> Option<&'a [f32]> {
        match self {
            NodeWeight::One => None,
            NodeWeight::InverseDegree => Some(nodes.inverse_degree),
            NodeWeight::InverseRootDegree => Some(nodes.inverse_root_degree),
        }
    }
}

/// A matrix that every row is multiplied by, for counts of the work: 2 · values flops a row forward, as many for the
/// gradient of the matrix, and as many for that of what it multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// The number of values of the matrix.
    pub values: usize,
    /// Whether it multiplies the rows that come in, or sums of them; else something that depends on other parameters,
    /// whose gradient is wanted even where nobody wants that of the rows.
    pub of_inputs: bool,
}

impl Product {
    /// A matrix of so many values that multiplies rows that come in.
    pub fn of_inputs(values: usize) -> Product {
        Product { values, of_inputs: true }
    }

    /// A matrix of so many values that multiplies what other parameters have made of them.
    pub fn of_inner(values: usize) -> Product {
        Product { values, of_inputs: false }
    }
}

impl Facts {
    /// Those of the plainest layer of these widths: messages are rows as they are, folds are as wide, and the products
    /// are those of the parameters of two dimensions and more.
    pub fn new(inputs: usize, outputs: usize, parameters: Vec<ParameterSpec>) -> Facts {
        let matrices = parameters.iter().filter(|spec| spec.shape.len() > 1);
        Facts {
            inputs,
            outputs,
            message_width: inputs,
            fold_width: inputs,
            products: matrices.map(|spec| Product::of_inputs(spec.len())).collect(),
            parameters,
            shift: None,
            message_has_parameters: false,
            message_is_row: true,
            is_linear: false,
            sender_weight: NodeWeight::One,
            destination_weight: NodeWeight::One,
            state_columns: 0,
            state_values: [0; 2],
            scores: 0,
            reads_positions: false,
            absence: Absence::Scaled,
            edge_weights: EdgeWeights::Factors,
            takes_bf16: false,
            reads_own_row: false,
            outputs_are_folds: false,
            pyg: String::new(),
        }
    }

    /// The same with messages of this width that are rows times parameters, and folds as wide.
    #[must_use]
    pub fn with_transformed_messages(self, width: usize) -> Facts {
        Facts { message_width: width, fold_width: width, message_has_parameters: true, message_is_row: false, ..self }
    }

    /// Whether messages are rows and nothing else, so that who has these at hand need not make a copy, and the gradient
    /// of messages is that of rows.
    pub fn messages_are_rows(&self) -> bool {
        let plain = self.message_width > 0 && self.message_is_row && !self.message_has_parameters;
        plain && self.sender_weight == NodeWeight::One
    }

    /// Values of four bytes that the layer keeps besides rows, for so many own rows, and edges that end there.
    pub fn kept_values(&self, rows: usize, edges: usize) -> usize {
        rows * self.state_values[0] + edges * self.state_values[1]
    }
}
