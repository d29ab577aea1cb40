//! What follows a layer, by the names in configurations: a norm, then an activation.

/// A kind of norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// LayerNorm: over the values of each row.
    Layer,
    /// BatchNorm: over all rows of all workers in each column; evaluations take running means and variances.
    Batch,
}

/// A kind of activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivationKind {
    /// max(x, 0).
    Relu,
    /// The same with a learned slope below 0.
    Prelu,
}

/// Every norm by its name.
pub const NORM_KINDS: [(&str, NormKind); 2] = [("layer", NormKind::Layer), ("batch", NormKind::Batch)];

/// Every activation by its name.
pub const ACTIVATION_KINDS: [(&str, ActivationKind); 2] =
    [("relu", ActivationKind::Relu), ("prelu", ActivationKind::Prelu)];

/// What has this name.
pub fn by_name<K: Copy>(kinds: &[(&str, K)], name: &str) -> Option<K> {
    kinds.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// A norm in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Norm {
    /// What it is over.
    pub kind: NormKind,
    /// The name that its parameters carry in front, such as `norms.0`.
    pub name: String,
}

/// What follows a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// Nothing: the layer's output goes on as it is, or is the logits.
    Nothing,
    /// A norm, then an activation.
    Activation {
        /// The norm, where there is one.
        norm: Option<Norm>,
        /// The name that the slope of PReLU carries in front, such as `act`; `None` for ReLU. Units that name the same
        /// slope share it.
        slope: Option<String>,
    },
}

impl After {
    /// ReLU and nothing else.
    pub const RELU: After = After::Activation { norm: None, slope: None };

    /// The norm, where there is one.
    pub fn norm(&self) -> Option<&Norm> {
        match self {
            After::Activation { norm, .. } => norm.as_ref(),
            After::Nothing => None,
        }
    }

    /// The name of PReLU's slope, where there is one.
    pub fn slope(&self) -> Option<&str> {
        match self {
            After::Activation { slope, .. } => slope.as_deref(),
            After::Nothing => None,
        }
    }

    /// Whether it is ReLU and nothing else, whose output tells all that its adjoint has to know.
    pub fn is_relu_alone(&self) -> bool {
        *self == After::RELU
    }

    /// Whether columns are normalised over rows.
    pub fn normalises_columns(&self) -> bool {
        self.norm().is_some_and(|norm| norm.kind == NormKind::Batch)
    }
}
