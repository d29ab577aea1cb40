//! An allocator whose large arrays begin where a line of the cache begins.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// The bytes of a line of the cache, which is what moves between memory and the processor.
const LINE: usize = 64;

/// Arrays of so many bytes begin a line: rows of many nodes, not what comes and goes.
const LARGE: usize = 64 << 10;

/// The system's allocator, but that large arrays begin a line of the cache.
///
/// A row of 256 values of four bytes that stands so lies in 16 lines. The C library begins large arrays 16 bytes behind
/// a page, which makes 17 of the 16, and every vector of 64 bytes then crosses from one line into the next.
///
/// What grows in place, and what is asked for as zeros, which the system has without writing them, begins where the
/// system lets it begin.
///
/// ```
/// use laconic_graph::memory::Lines;
///
/// #[global_allocator]
/// static MEMORY: Lines = Lines;
///
/// let rows: Vec<f32> = Vec::with_capacity(1 << 20);
/// assert_eq!(rows.as_ptr() as usize % 64, 0);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Lines;

// SAFETY: everything is the system's own answer. Memory that it gave out for a stricter alignment it takes back, and
// makes larger or smaller, as any other: on these systems all of it is `free`'s and `realloc`'s.
#[cfg(unix)]
unsafe impl GlobalAlloc for Lines {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let aligned = if layout.size() >= LARGE { layout.align_to(LINE).unwrap_or(layout) } else { layout };
        // SAFETY: the layout has the size that the caller answers for, which is above 0.
        unsafe { System.alloc(aligned) }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { System.realloc(memory, layout, size) }
    }
}

// Elsewhere memory has to be given back as it was asked for.
// SAFETY: everything is the system's own answer.
#[cfg(not(unix))]
unsafe impl GlobalAlloc for Lines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn large_arrays_begin_a_line_and_grow_with_what_they_hold() {
        let layout = Layout::array::<u8>(3 * LARGE + 5).unwrap();
        // SAFETY: the size is above 0, what is written and read lies within it, and it is given back as it was asked
        // for, with the size that it grew to.
        unsafe {
            let memory = Lines.alloc(layout);
            assert!(!memory.is_null());
            assert_eq!(memory as usize % LINE, 0);
            (0..layout.size()).for_each(|at| memory.add(at).write(at as u8));
            let size = 40 * LARGE;
            let grown = Lines.realloc(memory, layout, size);
            assert!(!grown.is_null());
            assert!((0..layout.size()).all(|at| grown.add(at).read() == at as u8));
            Lines.dealloc(grown, Layout::array::<u8>(size).unwrap());
            let zeros = Lines.alloc_zeroed(layout);
            assert!(!zeros.is_null());
            assert!((0..layout.size()).all(|at| zeros.add(at).read() == 0));
            Lines.dealloc(zeros, layout);
        }
    }
}
