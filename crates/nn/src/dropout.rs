//! Which values dropout keeps: a pure function of a key, a node and a column.

use laconic_key::Key;

/// A dropout mask: which values stay is a pure function of the key, the row's global node id and the column, so that it
/// does not depend on the partition. Values that stay are scaled by 1 / (1 − probability).
#[derive(Debug, Clone, Copy)]
pub struct Dropout {
    /// The chance that a value is set to 0.
    pub probability: f32,
    /// The key of this round and layer.
    pub key: Key,
}

impl Dropout {
    /// The factor of values that stay.
    pub fn scale(&self) -> f32 {
        1.0 / (1.0 - self.probability)
    }

    /// What becomes of a value in some column of a node's row. A value stays if its 32 random bits reach a threshold.
    #[inline(always)]
    pub(crate) fn of_row(&self, node: u64) -> impl Fn(usize, f32) -> f32 + use<> {
        let (threshold, scale) = ((f64::from(self.probability) * 4_294_967_296.0) as u32, self.scale());
        let bits = self.key.with(node).bits();
        let halves = (bits as u32, (bits >> 32) as u32);
        move |column, value| if column_bits(halves, column as u32) >= threshold { value * scale } else { 0.0 }
    }
}

/// 32 random bits for one column of a row: a bijective 32-bit mixer (Wellons' lowbias32) fed by a Weyl sequence, with
/// the second half of the row's bits folded in between its two multiplications. Cheap enough to recompute and made for
/// vector units.
#[inline(always)]
fn column_bits(row: (u32, u32), column: u32) -> u32 {
    let mut x = row.0.wrapping_add(column.wrapping_mul(0x9e37_79b9));
    x ^= x >> 16;
    x = x.wrapping_mul(0x21f0_aaad);
    x ^= (x >> 15) ^ row.1;
    x = x.wrapping_mul(0x735a_2d97);
    x ^ (x >> 15)
}
