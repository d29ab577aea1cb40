//! Parameters: one flat slice with named views.

use laconic_key::Key;

/// The initial values of one parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Initial {
    /// Every value is 0.
    Zeros,
    /// Every value is 1.
    Ones,
    /// Every value is this.
    Constant {
        /// The value.
        value: f32,
    },
    /// Uniform in ±√(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
    Glorot {
        /// Inputs of one output.
        fan_in: usize,
        /// Outputs of one input.
        fan_out: usize,
    },
    /// Uniform between −bound and bound.
    Uniform {
        /// The largest absolute value.
        bound: f32,
    },
}

impl Initial {
    /// PyTorch's default for linear maps, weights and biases: uniform in ±1/√fan_in.
    pub fn fan_in(fan_in: usize) -> Self {
        Initial::Uniform { bound: 1.0 / (fan_in.max(1) as f32).sqrt() }
    }

    fn bound(&self) -> f32 {
        match *self {
            Initial::Zeros | Initial::Ones | Initial::Constant { .. } => 0.0,
            Initial::Glorot { fan_in, fan_out } => (6.0 / (fan_in + fan_out).max(1) as f32).sqrt(),
            Initial::Uniform { bound } => bound,
        }
    }
}

/// One parameter: what it is called, how large it is, how it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterSpec {
    /// Its name, PyTorch Geometric's where that library has such a layer.
    pub name: String,
    /// Its shape; values are row-major.
    pub shape: Vec<usize>,
    /// How it is initialised.
    pub initial: Initial,
}

impl ParameterSpec {
    /// A parameter of this name, shape and start.
    pub fn new(name: &str, shape: &[usize], initial: Initial) -> Self {
        ParameterSpec { name: name.to_owned(), shape: shape.to_vec(), initial }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Its rows and columns: what has one dimension is one row, and behind the first all dimensions are columns.
    pub fn matrix(&self) -> [usize; 2] {
        match self.shape[..] {
            [] | [_] => [1, self.len()],
            [rows, ..] => [rows, self.len() / rows.max(1)],
        }
    }

    /// Whether it has no values, as a matrix without columns has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Cuts a layer's slice of parameters into views of these lengths, first to last.
///
/// # Panics
///
/// If the lengths do not add up to the slice's.
pub fn split<const N: usize>(slice: &[f32], lens: [usize; N]) -> [&[f32]; N] {
    assert_eq!(lens.iter().sum::<usize>(), slice.len(), "the views {lens:?} cover the slice");
    let mut rest = slice;
    lens.map(|len| {
        let (view, others) = rest.split_at(len);
        rest = others;
        view
    })
}

/// As [`split`], for a layer's slice of gradients.
///
/// # Panics
///
/// If the lengths do not add up to the slice's.
pub fn split_mut<const N: usize>(slice: &mut [f32], lens: [usize; N]) -> [&mut [f32]; N] {
    assert_eq!(lens.iter().sum::<usize>(), slice.len(), "the views {lens:?} cover the slice");
    let mut rest = slice;
    lens.map(|len| {
        let (view, others) = std::mem::take(&mut rest).split_at_mut(len);
        rest = others;
        view
    })
}

/// Fills `values` with the initial values of `specs`, one after the other. The same key gives the same values
/// everywhere, so no worker has to send its initial parameters.
///
/// # Panics
///
/// If the specifications do not cover `values` exactly.
pub fn initialise(values: &mut [f32], specs: &[ParameterSpec], key: Key) {
    let mut rest = values;
    for (index, spec) in specs.iter().enumerate() {
        let (mine, others) = rest.split_at_mut(spec.len());
        rest = others;
        let (bound, key) = (spec.initial.bound(), key.with(index as u64));
        match spec.initial {
            Initial::Zeros => mine.fill(0.0),
            Initial::Ones => mine.fill(1.0),
            Initial::Constant { value } => mine.fill(value),
            _ => {
                for (i, value) in mine.iter_mut().enumerate() {
                    *value = (key.with(i as u64).unit() as f32 * 2.0 - 1.0) * bound;
                }
            }
        }
    }
    assert!(rest.is_empty(), "the specifications cover every parameter");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_follow_one_another_and_cover_the_slice() {
        let mut values = [0.0, 1.0, 2.0, 3.0];
        assert_eq!(split(&values, [1, 0, 3]), [&[0.0][..], &[], &[1.0, 2.0, 3.0]]);
        let [first, last] = split_mut(&mut values, [3, 1]);
        first[0] = last[0];
        assert_eq!(values[0], 3.0);
    }
}
