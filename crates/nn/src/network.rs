//! A stack of layers and the layout of its parameters in one flat slice.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::layer::{Aggregator, Layer, LayerKind, LayerSpec, Linear, RESIDUAL};
use crate::parameters::{Initial, ParameterSpec, initialise};
use laconic_key::Key;

/// The list under which the norms after hidden layers have their names, such as `norms.0.weight`.
pub const NORMS: &str = "norms";
/// The list of the matrices of residual connections, such as `residuals.0.weight`.
pub const RESIDUALS: &str = "residuals";
/// The list of the linear map of features to the width that the first layer reads, such as `inputs.0.weight`.
pub const INPUTS: &str = "inputs";
/// The list of the linear classifiers on top of a stage's layer, such as `heads.0.weight`.
pub const HEADS: &str = "heads";
/// The list of the linear maps to the few columns that a stage hands on, such as `bottlenecks.0.weight`.
pub const BOTTLENECKS: &str = "bottlenecks";
/// The list of the two layers of the perceptron on own features, such as `mlp.0.weight`.
pub const MLP: &str = "mlp";

/// One layer of a network with what stands around it.
pub struct Unit {
    /// The name that its parameters carry in front, such as `convs.0`.
    pub name: String,
    /// The layer itself.
    pub layer: Box<dyn Layer>,
    /// The share of input values that dropout removes in training.
    pub dropout: f32,
    /// What follows. After the last layer of a network nothing does.
    pub after: After,
}

impl Unit {
    /// The name of the list that the layer is in, such as `convs`, and its place there.
    pub fn place(&self) -> (&str, &str) {
        self.name.split_once('.').unwrap_or((&self.name, ""))
    }

    /// The name of a layer's parameter in the network. The matrix of a residual connection is in a list of its own:
    /// the layers of other libraries have no such part.
    fn parameter(&self, of_layer: &str) -> String {
        match of_layer.strip_prefix(RESIDUAL) {
            Some(part) => format!("{RESIDUALS}.{}.{part}", self.place().1),
            None => format!("{}.{of_layer}", self.name),
        }
    }
}

/// What follows a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// Nothing: the layer's output goes on as it is, or is the logits.
    Nothing,
    /// ReLU and nothing else.
    Relu,
    /// LayerNorm, its parameters under this name, then ReLU.
    NormRelu(String),
}

/// Where the parameters of one unit stand in the flat slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitRanges {
    /// The layer's own parameters.
    pub layer: Range<usize>,
    /// γ of the norm, empty without one.
    pub norm_weight: Range<usize>,
    /// β of the norm, empty without one.
    pub norm_bias: Range<usize>,
}

/// A stack of layers.
pub struct Network {
    units: Vec<Unit>,
    ranges: Vec<UnitRanges>,
    specs: Vec<ParameterSpec>,
    len: usize,
    /// Where parameters stand that no layer reads.
    tail: Range<usize>,
}

impl Network {
    /// A network of these layers, first to last.
    ///
    /// # Panics
    /// If dropout stands between two layers where nothing else does: the rows there are not masked.
    pub fn new(units: Vec<Unit>) -> Self {
        let masked = |pair: &[Unit]| pair[0].after == After::Nothing && pair[1].dropout > 0.0;
        assert!(!units.windows(2).any(masked), "dropout after a layer that nothing follows");
        let (mut ranges, mut specs, mut len) = (Vec::new(), Vec::new(), 0);
        for unit in &units {
            let start = len;
            for mut spec in unit.layer.parameters() {
                spec.name = unit.parameter(&spec.name);
                len += spec.len();
                specs.push(spec);
            }
            let layer = start..len;
            let mut norm = [len..len, len..len];
            if let After::NormRelu(name) = &unit.after {
                let width = unit.layer.outputs();
                for (range, (part, initial)) in
                    norm.iter_mut().zip([("weight", Initial::Ones), ("bias", Initial::Zeros)])
                {
                    specs.push(ParameterSpec::new(&format!("{name}.{part}"), &[width], initial));
                    *range = len..len + width;
                    len += width;
                }
            }
            let [norm_weight, norm_bias] = norm;
            ranges.push(UnitRanges { layer, norm_weight, norm_bias });
        }
        Network { units, ranges, specs, len, tail: len..len }
    }

    /// The same network with parameters behind those of its layers, which whoever reads its rows has: a decoder's.
    #[must_use]
    pub fn with_tail(mut self, specs: Vec<ParameterSpec>) -> Self {
        let start = self.len;
        self.len += specs.iter().map(ParameterSpec::len).sum::<usize>();
        self.specs.extend(specs);
        self.tail = start..self.len;
        self
    }

    /// Where the parameters stand that came with [`Network::with_tail`].
    pub fn tail(&self) -> Range<usize> {
        self.tail.clone()
    }

    /// The layers, first to last.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Where the parameters of unit `index` stand.
    pub fn ranges(&self, index: usize) -> &UnitRanges {
        &self.ranges[index]
    }

    /// All parameters in the order of the flat slice.
    pub fn parameters(&self) -> &[ParameterSpec] {
        &self.specs
    }

    /// The number of values of all parameters.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no parameters, and so nothing to train.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Initial values of all parameters.
    pub fn initial(&self, key: Key) -> Vec<f32> {
        let mut values = vec![0.0; self.len];
        initialise(&mut values, &self.specs, key);
        values
    }

    /// Each parameter with its name, shape and values.
    pub fn named<'a>(&'a self, values: &'a [f32]) -> impl Iterator<Item = (&'a ParameterSpec, &'a [f32])> {
        let mut at = 0;
        self.specs.iter().map(move |spec| {
            let start = at;
            at += spec.len();
            (spec, &values[start..at])
        })
    }
}

/// What a stage of lazy training hands on to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// Its hidden rows, after norm and ReLU.
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
    /// Whether LayerNorm follows each hidden layer.
    pub norm: bool,
    /// Whether what goes into a layer is added to what comes out, times a matrix where widths differ.
    pub residual: bool,
    /// Numbers that only some layer of somebody else's knows; see [`LayerSpec::options`].
    pub options: BTreeMap<String, f64>,
}

impl Architecture {
    /// Width of the rows that layer `index` passes on (after merging heads).
    pub fn width(&self, kind: &LayerKind, index: usize) -> usize {
        if index + 1 == self.layers { self.classes } else { self.hidden_width(kind) }
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
        let after = match (last, self.norm) {
            (true, _) => After::Nothing,
            (false, true) => After::NormRelu(format!("{NORMS}.{index}")),
            (false, false) => After::Relu,
        };
        let name = format!("{}.{index}", kind.prefix);
        Unit { name, layer: kind.layer(&spec), dropout: self.dropout, after }
    }

    /// The whole model end to end. Features never change, so a layer that reads them folds them as they are.
    pub fn end_to_end(&self, kind: &LayerKind) -> Network {
        let is_mapped = self.input_width > 0;
        let map = is_mapped.then(|| {
            let layer = Box::new(Linear::new(self.inputs, self.input_width));
            Unit { name: format!("{INPUTS}.0"), layer, dropout: self.dropout, after: After::Relu }
        });
        let mut inputs = if is_mapped { self.input_width } else { self.inputs };
        let units = (0..self.layers).map(|index| {
            let outputs = self.width(kind, index);
            let unit = self.unit(kind, index, (inputs, outputs), index + 1 == self.layers, index == 0 && !is_mapped);
            inputs = outputs;
            unit
        });
        Network::new(map.into_iter().chain(units).collect())
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
            let after = if self.norm { After::NormRelu(format!("{NORMS}.0")) } else { After::Relu };
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
        let layer = Box::new(Linear::new(classifier.layer.inputs(), columns));
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
