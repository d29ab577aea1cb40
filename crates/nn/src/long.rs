//! One sum of many addends that stays right: in `f32` where they are few, in `f64` where they are many. Sums of whole
//! rows are made in blocks: [`mod@crate::kernels`].

/// How many addends are added up one after the other. The worst they round off, of equal ones, is 5e-7 of the sum, so
/// that a mean by such a sum of weights is right to 1e-6.
pub(crate) const LONG: usize = 32;

/// The sum of values: in `f32` where they are few, in `f64` where they are many.
pub(crate) fn sum_of(values: impl IntoIterator<Item = f32>) -> f32 {
    let mut sum = LongSum::default();
    values.into_iter().for_each(|value| sum.add(value));
    sum.value()
}

/// One sum that grows: of no more than one block it is that of the plain loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LongSum {
    short: f32,
    long: f64,
    count: usize,
}

impl LongSum {
    /// Takes up one more.
    pub fn add(&mut self, value: f32) {
        self.short += value;
        self.long += f64::from(value);
        self.count += 1;
    }

    /// The sum of all that were taken up.
    pub fn value(&self) -> f32 {
        if self.count <= LONG { self.short } else { self.long as f32 }
    }
}
