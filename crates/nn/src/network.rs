//! A stack of layers and the layout of its parameters in one flat slice.

use std::ops::Range;

use crate::after::{After, Norm};
use crate::kernels::joining::Joining;
use crate::layer::{Layer, RESIDUAL};
use crate::parameters::{Initial, ParameterSpec, initialise};
use laconic_key::Key;

/// The list under which the norms after hidden layers have their names, such as `norms.0.weight`.
pub const NORMS: &str = "norms";
/// The linear map of what JumpingKnowledge has put together, as in PyTorch Geometric's basic models: `lin.weight`.
pub const LIN: &str = "lin";
/// The slope of PReLU that all layers of a model share, as in PyTorch Geometric's basic models: `act.weight`.
pub const ACT: &str = "act";
/// The list of slopes where layers are trained apart, such as `acts.0.weight`.
pub const ACTS: &str = "acts";
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

    /// Where the parameter stands that changes nothing, if the layer's stand from `start` on.
    fn idle(&self, mut start: usize) -> Option<Range<usize>> {
        let shift = self.layer.facts().shift.filter(|_| self.after.normalises_columns())?;
        for spec in &self.layer.facts().parameters {
            if spec.name == shift {
                return Some(start..start + spec.len());
            }
            start += spec.len();
        }
        None
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

/// Where the parameters of one unit stand in the flat slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitRanges {
    /// The layer's own parameters.
    pub layer: Range<usize>,
    /// γ of the norm, empty without one.
    pub norm_weight: Range<usize>,
    /// β of the norm, empty without one.
    pub norm_bias: Range<usize>,
    /// The slope of PReLU, empty without one. Several units may share it.
    pub slope: Range<usize>,
    /// Running means and variances of a norm over rows, empty without one.
    pub running: [Range<usize>; 2],
}

impl UnitRanges {
    /// Appends the parameters of a unit; where running statistics stand is counted from their own begin.
    fn of(unit: &Unit, table: &mut Table, running: &mut Table) -> UnitRanges {
        let start = table.len;
        for spec in &unit.layer.facts().parameters {
            table.push(ParameterSpec { name: unit.parameter(&spec.name), ..spec.clone() });
        }
        let layer = start..table.len;
        let (width, norm) = (unit.layer.facts().outputs, unit.after.norm());
        let of_norm = |table: &mut Table, part: &str, initial| match norm {
            Some(Norm { name, .. }) => table.push(ParameterSpec::new(&format!("{name}.{part}"), &[width], initial)),
            None => table.len..table.len,
        };
        let norm_weight = of_norm(table, "weight", Initial::Ones);
        let norm_bias = of_norm(table, "bias", Initial::Zeros);
        let slope = match unit.after.slope() {
            Some(name) => {
                table.share(ParameterSpec::new(&format!("{name}.weight"), &[1], Initial::Constant { value: SLOPE }))
            }
            None => table.len..table.len,
        };
        let statistics = [(RUNNING[0], Initial::Zeros), (RUNNING[1], Initial::Ones)];
        let running = statistics.map(|(part, initial)| match unit.after.normalises_columns() {
            true => of_norm(running, part, initial),
            false => 0..0,
        });
        UnitRanges { layer, norm_weight, norm_bias, slope, running }
    }

    fn move_running(&mut self, by: usize) {
        for range in &mut self.running {
            *range = range.start + by..range.end + by;
        }
    }
}

/// Parameters, one after the other.
#[derive(Default)]
struct Table {
    specs: Vec<ParameterSpec>,
    len: usize,
}

impl Table {
    /// Appends a parameter and returns where it stands.
    fn push(&mut self, spec: ParameterSpec) -> Range<usize> {
        let start = self.len;
        self.len += spec.len();
        self.specs.push(spec);
        start..self.len
    }

    /// The same, unless there is one of this name: then that is where it stands.
    fn share(&mut self, spec: ParameterSpec) -> Range<usize> {
        let mut start = 0;
        for known in &self.specs {
            if known.name == spec.name {
                return start..start + known.len();
            }
            start += known.len();
        }
        self.push(spec)
    }
}

/// PyTorch's names of running statistics.
const RUNNING: [&str; 2] = ["running_mean", "running_var"];

/// Whether a parameter of this name is a running statistic, which no step moves.
pub fn is_running(name: &str) -> bool {
    RUNNING.iter().any(|running| name.rsplit('.').next() == Some(*running))
}

/// The slope of PReLU that PyTorch starts with.
const SLOPE: f32 = 0.25;

/// A stack of layers.
pub struct Network {
    units: Vec<Unit>,
    ranges: Vec<UnitRanges>,
    /// What steps move, then what only follows the rows: running statistics.
    specs: Vec<ParameterSpec>,
    /// How many parameters steps move.
    learned: usize,
    /// How many values these have.
    trained: usize,
    len: usize,
    /// Where parameters stand that no layer reads.
    tail: Range<usize>,
    joined: Option<Joined>,
    /// Where parameters stand that a norm over rows takes away.
    idle: Vec<Range<usize>>,
}

/// The rows of several units, put together for the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// How they are put together.
    pub joining: Joining,
    /// The first of these units; the others follow, up to the last one.
    pub first: usize,
}

impl Network {
    /// A network of these layers, first to last.
    ///
    /// # Panics
    /// If dropout stands between two layers where nothing else does: the rows there are not masked.
    pub fn new(units: Vec<Unit>) -> Self {
        let masked = |pair: &[Unit]| pair[0].after == After::Nothing && pair[1].dropout > 0.0;
        assert!(!units.windows(2).any(masked), "dropout after a layer that nothing follows");
        let (mut own, mut running) = (Table::default(), Table::default());
        let mut ranges: Vec<UnitRanges> =
            units.iter().map(|unit| UnitRanges::of(unit, &mut own, &mut running)).collect();
        ranges.iter_mut().for_each(|ranges| ranges.move_running(own.len));
        let idle = units.iter().zip(&ranges).filter_map(|(unit, ranges)| unit.idle(ranges.layer.start)).collect();
        let (learned, trained, len) = (own.specs.len(), own.len, own.len + running.len);
        let specs = [own.specs, running.specs].concat();
        Network { units, ranges, specs, learned, trained, len, tail: trained..trained, joined: None, idle }
    }

    /// The same network with parameters behind those of its layers, which whoever reads its rows has: a decoder's.
    #[must_use]
    pub fn with_tail(mut self, specs: Vec<ParameterSpec>) -> Self {
        let added = specs.iter().map(ParameterSpec::len).sum::<usize>();
        self.ranges.iter_mut().for_each(|ranges| ranges.move_running(added));
        let (start, count) = (self.learned, specs.len());
        self.specs.splice(start..start, specs);
        self.tail = self.trained..self.trained + added;
        (self.learned, self.trained, self.len) = (start + count, self.trained + added, self.len + added);
        self
    }

    /// The same network whose last unit reads what unit `first` and all behind it output.
    ///
    /// # Panics
    /// If these are not of one width, or together not of the width that the last unit reads.
    #[must_use]
    pub fn joining(self, joining: Joining, first: usize) -> Self {
        let (last, joined) = self.units.split_last().expect("a network has layers");
        let widths: Vec<usize> = joined[first..].iter().map(|unit| unit.layer.facts().outputs).collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{widths:?}: rows of one width");
        assert_eq!(
            joining.width(widths.len(), widths[0]),
            last.layer.facts().inputs,
            "what is read is what was joined"
        );
        Network { joined: Some(Joined { joining, first }), ..self }
    }

    /// What the last unit reads, where it is more than what the one before it outputs.
    pub fn joined(&self) -> Option<Joined> {
        self.joined
    }

    /// Whether what unit `index` outputs is the last that is joined.
    pub fn is_top(&self, index: usize) -> bool {
        self.joined.is_some() && index + 2 == self.units.len()
    }

    /// Where parameters stand that are added to every row in front of a norm over rows. They change nothing and have no
    /// gradient but what rounding leaves, of which an optimiser could make steps of full length.
    pub fn idle(&self) -> &[Range<usize>] {
        &self.idle
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

    /// How many values steps move. They are the first; the others are running statistics, which follow the rows.
    pub fn trained(&self) -> usize {
        self.trained
    }

    /// Whether the columns of any layer's outputs are normalised over the rows.
    pub fn normalises_columns(&self) -> bool {
        self.trained < self.len
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
