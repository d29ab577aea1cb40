//! The networks that a model of a stated shape comes to: end to end, or stage by stage.

use std::collections::BTreeMap;

use crate::after::{ActivationKind, After, Norm, NormKind};
use crate::kernels::joining::Joining;
use crate::layer::{Aggregator, LayerKind, LayerSpec, Linear};
use crate::network::{ACT, ACTS, BOTTLENECKS, HEADS, INPUTS, LIN, MLP, NORMS, Network, Unit};

/// What the last of a model's layers reads: a linear map where it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jumping {
    /// The last hidden rows.
    Last,
    /// Those of all layers.
    Joined(Joining),
}

/// Every kind of JumpingKnowledge by its name.
pub const JUMPING_KINDS: [(&str, Jumping); 3] = [
    ("last", Jumping::Last),
    ("cat", Jumping::Joined(Joining::Concatenated)),
    ("max", Jumping::Joined(Joining::Largest)),
];

/// What a stage of lazy training hands on to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// Its hidden rows, after norm and activation.
    Hidden,
    /// Its class scores.
    Scores,
    /// So many columns: a linear map of the hidden rows, which the stage's classifier reads and which is trained with
    /// the stage.
    Columns(usize),
}

/// The shape of a model, as a user states it.
#[derive(Debug, Clone, PartialEq)]
pub struct Architecture {
    /// The number of layers, the last one included.
    pub layers: usize,
    /// Width of the rows that come in: the features.
    pub inputs: usize,
    /// Width of the rows that a linear map and ReLU make of the features before the first layer; 0 without one.
    pub input_width: usize,
    /// Width of the rows between two layers.
    pub hidden: usize,
    /// The number of classes: width of the last rows.
    pub classes: usize,
    /// The number of attention heads (gat).
    pub heads: usize,
    /// Whether the heads of hidden layers are concatenated (hidden / heads columns each, one averaged head in the last
    /// layer, as in PyTorch Geometric's examples) or averaged in every layer (hidden / heads columns go on, as in
    /// RETEXO).
    pub concatenate: bool,
    /// How `sage` aggregates its neighbours.
    pub aggregator: Aggregator,
    /// Whether `gin` learns ε.
    pub learn_epsilon: bool,
    /// How many relations the graph's edges are of, 1 where there is one kind of edge.
    pub relations: usize,
    /// Of how many bases `rgcn` mixes relations; 0 where each has a weight of its own.
    pub bases: usize,
    /// The share of input values that dropout removes in training, each layer.
    pub dropout: f32,
    /// The norm after each hidden layer.
    pub norm: Option<NormKind>,
    /// What follows it.
    pub activation: ActivationKind,
    /// What a linear map behind the last layer reads; `None` where the last layer outputs the classes itself.
    pub jumping: Option<Jumping>,
    /// Whether what goes into a layer is added to what comes out, times a matrix where widths differ.
    pub residual: bool,
    /// Numbers that only some layer of somebody else's knows; see [`LayerSpec::options`].
    pub options: BTreeMap<String, f64>,
}

impl Architecture {
    /// Width of the rows that layer `index` passes on (after merging heads).
    pub fn width(&self, kind: &LayerKind, index: usize) -> usize {
        if self.is_last(index) { self.classes } else { self.hidden_width(kind) }
    }

    /// Whether layer `index` outputs the classes.
    fn is_last(&self, index: usize) -> bool {
        index + 1 == self.layers && self.jumping.is_none()
    }

    /// Width of the rows that a hidden layer passes on (after merging heads).
    pub fn hidden_width(&self, kind: &LayerKind) -> usize {
        if kind.has_heads && !self.concatenate { self.hidden / self.heads } else { self.hidden }
    }

    /// The specification of layer `index` between these widths.
    fn layer_spec(&self, kind: &LayerKind, inputs: usize, outputs: usize, last: bool) -> LayerSpec {
        let attention = kind.has_heads;
        LayerSpec {
            heads: if attention && !(last && self.concatenate) { self.heads } else { 1 },
            concatenate: self.concatenate && !last,
            inner: if last { self.hidden } else { outputs },
            aggregator: self.aggregator,
            learn_epsilon: self.learn_epsilon,
            relations: self.relations,
            bases: self.bases,
            residual: self.residual,
            options: self.options.clone(),
            ..LayerSpec::new(inputs, outputs)
        }
    }

    /// Names and layer of `convs.index` between these widths.
    pub fn unit(&self, kind: &LayerKind, index: usize, widths: (usize, usize), last: bool, frozen: bool) -> Unit {
        let mut spec = self.layer_spec(kind, widths.0, widths.1, last);
        spec.aggregate_first = frozen;
        let after = if last { After::Nothing } else { self.after(index, ACTS) };
        let name = format!("{}.{index}", kind.prefix);
        Unit { name, layer: kind.layer(&spec), dropout: self.dropout, after }
    }

    /// What follows hidden layer `index`, with a slope of its own in this list, or one under this name for all.
    fn after(&self, index: usize, slopes: &str) -> After {
        let norm = self.norm.map(|kind| Norm { kind, name: format!("{NORMS}.{index}") });
        let own = if slopes == ACTS { format!("{ACTS}.{index}") } else { slopes.to_owned() };
        After::Activation { norm, slope: (self.activation == ActivationKind::Prelu).then_some(own) }
    }

    /// The whole model end to end. Features never change, so a layer that reads them folds them as they are.
    pub fn end_to_end(&self, kind: &LayerKind) -> Network {
        let is_mapped = self.input_width > 0;
        let map = is_mapped.then(|| {
            let layer = Box::new(Linear::new(self.inputs, self.input_width));
            Unit { name: format!("{INPUTS}.0"), layer, dropout: self.dropout, after: After::RELU }
        });
        let mut inputs = if is_mapped { self.input_width } else { self.inputs };
        let units = (0..self.layers).map(|index| {
            let outputs = self.width(kind, index);
            let last = self.is_last(index);
            let mut unit = self.unit(kind, index, (inputs, outputs), last, index == 0 && !is_mapped);
            if !last {
                unit.after = self.after(index, ACT);
            }
            inputs = outputs;
            unit
        });
        let units: Vec<Unit> = map.into_iter().chain(units).collect();
        let Some(jumping) = self.jumping else { return Network::new(units) };
        let (width, dropout) = (self.hidden_width(kind), self.dropout);
        let inputs = if let Jumping::Joined(joining) = jumping { joining.width(self.layers, width) } else { width };
        let layer = Box::new(Linear::new(inputs, self.classes));
        let lin = Unit { name: LIN.to_owned(), layer, dropout, after: After::Nothing };
        let network = Network::new(units.into_iter().chain([lin]).collect());
        match jumping {
            Jumping::Last => network,
            Jumping::Joined(joining) => network.joining(joining, usize::from(is_mapped)),
        }
    }

    /// The model that lazy training fits in stage `index`: layer `index` on frozen inputs and, except in the last
    /// stage, a throw-away linear classifier on top (RETEXO).
    pub fn stage(&self, kind: &LayerKind, index: usize, handed: Handed) -> Network {
        let last = index + 1 == self.layers;
        let inputs = match index {
            0 => self.inputs,
            _ => self.handed_width(handed, self.width(kind, index - 1)),
        };
        let outputs = self.width(kind, index);
        let conv = self.unit(kind, index, (inputs, outputs), last, true);
        let mut units = vec![if index == 0 { conv } else { self.reading(handed, conv) }];
        if !last {
            let head = Unit { dropout: 0.0, ..self.head(index, outputs) };
            units.extend(self.narrowed(handed, index, head));
        }
        Network::new(units)
    }

    /// Stage `index` of the variant in which raw features stay where they are (RETEXO's first version): stage 0 is a
    /// perceptron on own features, each later one a layer on what the one before handed on, then a linear classifier.
    pub fn stage_after_mlp(&self, kind: &LayerKind, index: usize, handed: Handed) -> Network {
        if index == 0 {
            let after = self.after(0, ACTS);
            let first = Box::new(Linear::new(self.inputs, self.hidden));
            let second = Box::new(Linear::new(self.hidden, self.classes));
            let dropout = self.dropout;
            let second = Unit { name: format!("{MLP}.1"), layer: second, dropout, after: After::Nothing };
            let first = Unit { name: format!("{MLP}.0"), layer: first, dropout, after };
            return Network::new(std::iter::once(first).chain(self.narrowed(handed, 0, second)).collect());
        }
        let width = self.hidden_width(kind);
        let inputs = self.handed_width(handed, if index == 1 { self.hidden } else { width });
        let conv = self.reading(handed, self.unit(kind, index, (inputs, width), false, true));
        // The last stage hands nothing on.
        let handed = if index == self.layers { Handed::Hidden } else { handed };
        let above = self.narrowed(handed, index, self.head(index, width));
        Network::new(std::iter::once(conv).chain(above).collect())
    }

    /// The width of what a stage with hidden rows of this width hands on.
    fn handed_width(&self, handed: Handed, hidden: usize) -> usize {
        match handed {
            Handed::Hidden => hidden,
            Handed::Scores => self.classes,
            Handed::Columns(columns) => columns,
        }
    }

    /// A layer that reads what was handed on.
    fn reading(&self, handed: Handed, unit: Unit) -> Unit {
        match handed {
            Handed::Hidden => unit,
            // They are few and each one counts: dropping some scores would drop a node's whole opinion.
            Handed::Scores | Handed::Columns(_) => Unit { dropout: 0.0, ..unit },
        }
    }

    /// A classifier, and before it the map to the columns that are handed on, where there is one. Dropout stays where
    /// the hidden rows are read.
    fn narrowed(&self, handed: Handed, index: usize, classifier: Unit) -> Vec<Unit> {
        let Handed::Columns(columns) = handed else { return vec![classifier] };
        let layer = Box::new(Linear::new(classifier.layer.facts().inputs, columns));
        let (name, dropout) = (format!("{BOTTLENECKS}.{index}"), classifier.dropout);
        let layer_above = Box::new(Linear::new(columns, self.classes));
        vec![
            Unit { name, layer, dropout, after: After::Nothing },
            Unit { layer: layer_above, dropout: 0.0, ..classifier },
        ]
    }

    /// The linear classifier of stage `index` on rows of this width.
    fn head(&self, index: usize, inputs: usize) -> Unit {
        let layer = Box::new(Linear::new(inputs, self.classes));
        Unit { name: format!("{HEADS}.{index}"), layer, dropout: self.dropout, after: After::Nothing }
    }
}
