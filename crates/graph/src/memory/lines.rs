//! An allocator whose large arrays begin where a line of the cache begins.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

use super::arrays::{is_map, offered, take_apart};

/// The bytes of a line of the cache, which is what moves between memory and the processor.
const LINE: usize = 64;

/// Arrays of so many bytes begin a line: rows of many nodes, not what comes and goes.
pub(super) const LARGE: usize = 64 << 10;

/// A huge page of x86-64, and of aarch64 with pages of 4 KiB.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

/// The system's allocator, but that large arrays begin a line of the cache.
///
/// A row of 256 values of four bytes that stands so lies in 16 lines. The C library begins large arrays 16 bytes behind
/// a page, which makes 17 of the 16, and every vector of 64 bytes then crosses from one line into the next.
///
/// The system is asked for a line more, and where its answer begins is noted before the array. Asked for aligned memory
/// itself it would cut both ends off: a piece that was given back would then be too small for the next of its size.
///
/// The kernel is told that large arrays of several huge pages may have some (`madvise`): a virtual machine takes some
/// microseconds to hand out each page of memory for the first time, and 512 of them are then one.
///
/// It gives out maps of files, too, for arrays that are to be these, wherever they begin.
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

/// What the system is asked for in place of a large array; `None` for what is small, or more strictly aligned anyway.
#[inline]
fn with_a_line(layout: Layout) -> Option<Layout> {
    let is_large = layout.size() >= LARGE && layout.align() <= LINE;
    let size = layout.size().checked_add(LINE).filter(|_| is_large)?;
    Layout::from_size_align(size, align_of::<*mut u8>().max(layout.align())).ok()
}

/// Where a line begins in memory of the system's, with the note of where that memory begins before it.
///
/// # Safety
///
/// `memory` is null, or has room for a line and is aligned for a pointer.
#[inline]
unsafe fn line_in(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        return memory;
    }
    // At least a pointer and at most a line behind the beginning, since that is aligned for a pointer.
    let behind = LINE - memory as usize % LINE;
    // SAFETY: both places lie in the line that there is room for, and are aligned as `memory` is.
    unsafe {
        let line = memory.add(behind);
        line.cast::<*mut u8>().sub(1).write(memory);
        line
    }
}

/// Memory that the system has given, with the kernel told that its pages may be huge ones: those that lie in it whole,
/// so that no other array's are. It is advice: whoever does not take it gives memory as ever.
///
/// # Safety
///
/// `memory` is null, or the system's, of `bytes` bytes.
#[cfg(target_os = "linux")]
#[inline]
unsafe fn in_huge_pages(memory: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= 2 * HUGE_PAGE && !memory.is_null() {
        let before = memory.align_offset(HUGE_PAGE);
        let whole = bytes.saturating_sub(before) / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: the pages are the caller's; what they hold stays.
        unsafe { libc::madvise(memory.add(before).cast(), whole, libc::MADV_HUGEPAGE) };
    }
    memory
}

/// As it is: other systems have no such advice.
///
/// # Safety
///
/// None is needed.
#[cfg(not(target_os = "linux"))]
#[inline]
unsafe fn in_huge_pages(memory: *mut u8, _bytes: usize) -> *mut u8 {
    memory
}

/// Where the system's memory begins in which [`line_in`] found a line.
///
/// # Safety
///
/// `line` is what that gave, and not null.
#[inline]
unsafe fn noted(line: *mut u8) -> *mut u8 {
    // SAFETY: the note is there.
    unsafe { line.cast::<*mut u8>().sub(1).read() }
}

/// What stands in memory of one layout in new memory of another, as much of it as both have room for.
///
/// # Safety
///
/// `memory` came from [`Lines`] with this layout, and is nobody's from then on unless the answer is null.
unsafe fn moved(memory: *mut u8, layout: Layout, wanted: Layout) -> *mut u8 {
    // SAFETY: both have room for what is copied, and one of them is new.
    unsafe {
        let moved = Lines.alloc(wanted);
        if !moved.is_null() {
            memory.copy_to_nonoverlapping(moved, layout.size().min(wanted.size()));
            Lines.dealloc(memory, layout);
        }
        moved
    }
}

// SAFETY: everything is the system's own answer, or a part of it as large as was asked for; which of the two it is
// depends on the layout alone, and that is the same whenever memory is handed back.
unsafe impl GlobalAlloc for Lines {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE
            && let Some(map) = offered(layout)
        {
            return map;
        }
        match with_a_line(layout) {
            // SAFETY: its size is not 0, and there is room for a line behind what is asked for.
            Some(more) => unsafe { line_in(in_huge_pages(System.alloc(more), more.size())) },
            // SAFETY: the caller's.
            None => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match with_a_line(layout) {
            // SAFETY: as in `alloc`; the note is written before what is asked for.
            Some(more) => unsafe { line_in(in_huge_pages(System.alloc_zeroed(more), more.size())) },
            // SAFETY: the caller's.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: nobody uses what is given back.
        if layout.size() >= LARGE && unsafe { take_apart(memory) } {
            return;
        }
        match with_a_line(layout) {
            // SAFETY: memory of this layout came from `line_in`.
            Some(more) => unsafe { System.dealloc(noted(memory), more) },
            // SAFETY: the caller's.
            None => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else { return null_mut() };
        if layout.size() >= LARGE && is_map(memory) {
            // SAFETY: the caller's.
            return unsafe { moved(memory, layout, wanted) };
        }
        match (with_a_line(layout), with_a_line(wanted)) {
            // SAFETY: the caller's.
            (None, None) => unsafe { System.realloc(memory, layout, size) },
            // The system may move pages without touching them, which leaves a line where it was.
            // SAFETY: memory of this layout came from `line_in`. What it holds stands as far behind the new beginning
            // as it stood behind the old one, as much of it as both have room for, and `copy_to` may overlap.
            (Some(more), Some(again)) => unsafe {
                let start = noted(memory);
                let behind = memory as usize - start as usize;
                let moved = in_huge_pages(System.realloc(start, more, again.size()), again.size());
                if moved.is_null() {
                    return moved;
                }
                let line = moved.add(LINE - moved as usize % LINE);
                if line != moved.add(behind) {
                    moved.add(behind).copy_to(line, layout.size().min(size));
                }
                line_in(moved)
            },
            // SAFETY: the caller's.
            _ => unsafe { moved(memory, layout, wanted) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrays of one size that become one of each other size in turn hold what they held, begin a line where they are
    /// large, and are zeros where these were asked for.
    #[test]
    fn large_arrays_begin_a_line_and_hold_what_they_held_at_every_size() {
        let sizes = [100, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE + 5, 40 << 20, 41 << 20, 2 * LARGE, 17];
        for align in [1, 8, 16, 64, 128] {
            let layout = |size: usize| Layout::from_size_align(size, align).unwrap();
            let begins = |memory: *mut u8, size: usize| {
                assert!(!memory.is_null());
                let line = if size >= LARGE { LINE.max(align) } else { align };
                assert_eq!(memory as usize % line, 0, "{size} bytes, aligned to {align}");
            };
            for first in sizes {
                // SAFETY: sizes are above 0, what is written and read lies within them, and memory is given back with
                // the layout that it has at last.
                unsafe {
                    let mut memory = Lines.alloc_zeroed(layout(first));
                    begins(memory, first);
                    assert!((0..first).step_by(61).all(|at| memory.add(at).read() == 0));
                    let mut size = first;
                    for next in sizes {
                        (0..size).step_by(61).for_each(|at| memory.add(at).write(at as u8));
                        memory = Lines.realloc(memory, layout(size), next);
                        begins(memory, next);
                        let held = size.min(next);
                        assert!((0..held).step_by(61).all(|at| memory.add(at).read() == at as u8));
                        size = next;
                    }
                    Lines.dealloc(memory, layout(size));
                }
            }
        }
    }
}
