//! Products of pairs of bfloat16 in squares: `TDPBF16PS` of AMX multiplies sixteen rows of sixteen pairs by sixteen
//! columns of as many and adds the sums to a square of `f32`, at most sixteen times as fast as AVX-512 does with `f32`.
//!
//! Two squares by two are made at a time, 32 rows of 32 columns, from two squares of each side: as many loads as
//! products. The standard library has no stable names for these instructions, so they stand here as they are; the
//! compiler never uses these registers itself.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Coming, LeftSide, RightSide, SQUARE, Store, Target, Words, join};
use crate::matrix::Value;

/// Rows that are multiplied by one panel before the next.
const BLOCK: usize = 96;

/// Which rows and columns of the squares there are, as `LDTILECFG` reads it.
#[repr(C, align(64))]
#[derive(PartialEq, Eq)]
struct Shape {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

impl Shape {
    /// Of sums in squares 0 to 3 with so many rows and columns, of the left side in 4 and 5, of the right one in 6 and
    /// 7. What has no rows or columns is not there.
    fn of(rows: [usize; 2], columns: [usize; 2]) -> Shape {
        let mut shape = Shape { palette: 1, start: 0, reserved: [0; 14], bytes: [0; 16], rows: [0; 16] };
        let mut set = |square: usize, rows: usize, words: usize| {
            if rows > 0 && words > 0 {
                (shape.rows[square], shape.bytes[square]) = (rows as u8, 4 * words as u16);
            }
        };
        for (row, &of_row) in rows.iter().enumerate() {
            set(4 + row, of_row, SQUARE);
            columns.iter().enumerate().for_each(|(column, &of_column)| set(2 * row + column, of_row, of_column));
        }
        columns.iter().enumerate().for_each(|(column, &of_column)| set(6 + column, SQUARE, of_column));
        shape
    }
}

/// A square of a product, or two by two: where it begins on each side, and how many bytes it is to the next row.
struct Place {
    left: *const u32,
    of_left: usize,
    right: *const f32,
    of_right: usize,
    /// How many squares a sum has; one at least.
    squares: usize,
    out: *mut f32,
    of_out: usize,
    adds: bool,
}

/// `target (=|+=) left · right`, as [`multiply_words`](super::multiply_words), which has compared the shapes.
///
/// # Safety
///
/// The processor has the instructions, and both sides and `target` have all that the shapes name; of each row of both
/// sides, `words` are a multiple of [`SQUARE`].
pub(super) unsafe fn multiply(target: Target<'_>, left: LeftSide<'_>, right: RightSide<'_>, coming: Coming<'_>) {
    let Target { rows: out, columns, store } = target;
    let (RightSide { panels: right, words }, adds) = (right, store == Store::Add);
    let panel = Words::AmxTiles.panel();
    let rows = out.len() / columns;
    let (of_row, of_word) = left.strides();
    assert!(of_word == 1 && words % SQUARE == 0, "rows of whole squares");
    if words == 0 {
        if !adds {
            out.fill(0.0);
        }
        return;
    }
    let blocks = rows / BLOCK * (BLOCK / (2 * SQUARE)) + (rows % BLOCK).div_ceil(2 * SQUARE);
    let (mut done, of_all) = (0, blocks * columns.div_ceil(panel));
    let (mut shape, start) = (None, out.as_mut_ptr());
    for block in (0..rows).step_by(BLOCK) {
        for first in (0..columns).step_by(panel) {
            let count = panel.min(columns - first);
            let width = count.next_multiple_of(SQUARE);
            for row in (block..rows.min(block + BLOCK)).step_by(2 * SQUARE) {
                coming.ask_for((done, of_all));
                done += 1;
                let height = (2 * SQUARE).min(rows.min(block + BLOCK) - row);
                let at = |below: usize, beside: usize| Place {
                    left: left.start().wrapping_add((row + below) * of_row),
                    of_left: 4 * of_row,
                    right: right[first * words + beside..].as_ptr(),
                    of_right: 4 * width,
                    squares: words / SQUARE,
                    out: start.wrapping_add((row + below) * columns + first + beside),
                    of_out: 4 * columns,
                    adds,
                };
                // SAFETY: as of this function; a place has as many rows and columns as the shape that is set for it.
                unsafe {
                    if height > SQUARE && count > SQUARE {
                        set(&mut shape, Shape::of([SQUARE, height - SQUARE], [SQUARE, count - SQUARE]));
                        four(&at(0, 0));
                        continue;
                    }
                    for below in (0..height).step_by(SQUARE) {
                        for beside in (0..count).step_by(SQUARE) {
                            let (high, wide) = (SQUARE.min(height - below), SQUARE.min(count - beside));
                            set(&mut shape, Shape::of([high, 0], [wide, 0]));
                            one(&at(below, beside));
                        }
                    }
                }
            }
        }
    }
    // SAFETY: as of this function.
    unsafe { release() }
}

/// Gives the registers back: left in use, they would be saved at every change of threads.
///
/// # Safety
///
/// The processor has the instruction.
unsafe fn release() {
    // SAFETY: as of this function.
    unsafe {
        asm!(
            "tilerelease",
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, nomem),
        );
    }
}

/// Sets the shape of all squares, if it is another.
///
/// # Safety
///
/// The processor has the instructions.
unsafe fn set(current: &mut Option<Shape>, shape: Shape) {
    if current.as_ref() != Some(&shape) {
        // SAFETY: as of this function; the shape has 64 bytes.
        unsafe {
            asm!(
                "ldtilecfg [{}]",
                in(reg) &raw const shape,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, readonly),
            );
        }
        *current = Some(shape);
    }
}

/// Two squares by two.
///
/// # Safety
///
/// The processor has the instructions, the shape is set, and all that the place names is there.
unsafe fn four(at: &Place) {
    // SAFETY: as of this function; what is read and written lies in the rows and columns that the shape has.
    unsafe {
        asm!(
            "test {adds:e}, {adds:e}",
            "jz 2f",
            "tileloadd tmm0, [{out} + {of_out}]",
            "tileloadd tmm1, [{out} + {of_out} + 64]",
            "tileloadd tmm2, [{below} + {of_out}]",
            "tileloadd tmm3, [{below} + {of_out} + 64]",
            "jmp 3f",
            "2:",
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "3:",
            "tileloadd tmm6, [{right} + {of_right}]",
            "tileloadd tmm4, [{left} + {of_left}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{right} + {of_right} + 64]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{left_below} + {of_left}]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {left}, 64",
            "add {left_below}, 64",
            "add {right}, {of_square}",
            "dec {squares}",
            "jnz 3b",
            "tilestored [{out} + {of_out}], tmm0",
            "tilestored [{out} + {of_out} + 64], tmm1",
            "tilestored [{below} + {of_out}], tmm2",
            "tilestored [{below} + {of_out} + 64], tmm3",
            adds = in(reg) u32::from(at.adds),
            out = in(reg) at.out,
            below = in(reg) at.out.wrapping_byte_add(SQUARE * at.of_out),
            of_out = in(reg) at.of_out,
            left = inout(reg) at.left => _,
            left_below = inout(reg) at.left.wrapping_byte_add(SQUARE * at.of_left) => _,
            of_left = in(reg) at.of_left,
            right = inout(reg) at.right => _,
            of_right = in(reg) at.of_right,
            of_square = in(reg) SQUARE * at.of_right,
            squares = inout(reg) at.squares => _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// One square.
///
/// # Safety
///
/// As [`four`].
unsafe fn one(at: &Place) {
    // SAFETY: as of this function; what is read and written lies in the rows and columns that the shape has.
    unsafe {
        asm!(
            "test {adds:e}, {adds:e}",
            "jz 2f",
            "tileloadd tmm0, [{out} + {of_out}]",
            "jmp 3f",
            "2:",
            "tilezero tmm0",
            "3:",
            "tileloadd tmm4, [{left} + {of_left}]",
            "tileloadd tmm6, [{right} + {of_right}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "add {left}, 64",
            "add {right}, {of_square}",
            "dec {squares}",
            "jnz 3b",
            "tilestored [{out} + {of_out}], tmm0",
            adds = in(reg) u32::from(at.adds),
            out = in(reg) at.out,
            of_out = in(reg) at.of_out,
            left = inout(reg) at.left => _,
            of_left = in(reg) at.of_left,
            right = inout(reg) at.right => _,
            of_right = in(reg) at.of_right,
            of_square = in(reg) SQUARE * at.of_right,
            squares = inout(reg) at.squares => _,
            out("tmm0") _, out("tmm4") _, out("tmm6") _,
            options(nostack),
        );
    }
}

/// Makes the left side of `xᵀ · y` ready, x having so many columns: a row of words for each of them, as many as
/// [`Words::of`] says of x's rows.
///
/// # Safety
///
/// The processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn columns_to_rows<T: Value>(left: &mut [f32], x: &[T], columns: usize) {
    let words = Words::AmxTiles.of(x.len() / columns.max(1));
    for (at, rows) in x.chunks((2 * SQUARE * columns).max(1)).enumerate() {
        for first in (0..columns).step_by(SQUARE) {
            let count = SQUARE.min(columns - first);
            let mut square = [[0.0; SQUARE]; SQUARE];
            for (words, pair) in square.iter_mut().zip(rows.chunks(2 * columns)) {
                let (low, high) = pair.split_at(columns);
                join(&mut words[..count], (&low[first..][..count], high.get(first..first + count)), Words::AmxTiles);
            }
            transpose(&mut square);
            for (column, from) in square[..count].iter().enumerate() {
                left[(first + column) * words + at * SQUARE..][..SQUARE].copy_from_slice(from);
            }
        }
    }
}

/// Changes rows for columns: of 2×2 values, then of 2×2 such squares, and so on.
#[target_feature(enable = "avx512f")]
fn transpose(square: &mut [[f32; SQUARE]; SQUARE]) {
    let lanes = |of: &dyn Fn(i32) -> i32| {
        let of: [i32; SQUARE] = std::array::from_fn(|lane| of(lane as i32));
        // SAFETY: there are sixteen of them.
        unsafe { _mm512_loadu_si512(of.as_ptr().cast()) }
    };
    // SAFETY: each row has sixteen values.
    let mut rows = square.each_ref().map(|row| unsafe { _mm512_loadu_ps(row.as_ptr()) });
    for step in [1, 2, 4, 8] {
        // Those of the second row are numbered from sixteen on.
        let of = step as i32;
        let upper = lanes(&|lane| if lane & of == 0 { lane } else { 16 + lane - of });
        let lower = lanes(&|lane| if lane & of == 0 { lane + of } else { 16 + lane });
        for row in (0..SQUARE).filter(|row| row & step == 0) {
            let (above, below) = (rows[row], rows[row + step]);
            rows[row] = _mm512_permutex2var_ps(above, upper, below);
            rows[row + step] = _mm512_permutex2var_ps(above, lower, below);
        }
    }
    for (to, row) in square.iter_mut().zip(rows) {
        // SAFETY: each row has sixteen values.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), row) }
    }
}
