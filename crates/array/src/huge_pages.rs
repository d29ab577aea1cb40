//! Advice to the kernel that large arrays may lie in huge pages: a virtual machine takes some microseconds to hand out
//! each page of memory for the first time, and 512 of them are then one.
#![allow(unsafe_code)]

use crate::Element;

/// A huge page of x86-64, and of aarch64 with pages of 4 KiB.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

/// A vector without values and with room for so many, in huge pages where it is large and the system has some.
#[must_use]
pub fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(capacity);
    advise(&mut values);
    values
}

/// So many zeros, in huge pages where they are many and the system has some.
#[must_use]
pub fn zeros<T: Element>(len: usize) -> Vec<T> {
    let mut values = vec![T::default(); len];
    advise(&mut values);
    values
}

/// Advises huge pages for those that lie in a vector's memory whole, so that no other array's are. Whoever does not
/// take the advice gives memory as ever, and systems other than Linux are not asked.
pub(crate) fn advise<T>(values: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        let bytes = values.capacity().saturating_mul(size_of::<T>());
        if bytes >= 2 * HUGE_PAGE {
            let memory = values.as_mut_ptr().cast::<u8>();
            let before = memory.align_offset(HUGE_PAGE);
            let whole = bytes.saturating_sub(before) / HUGE_PAGE * HUGE_PAGE;
            // SAFETY: the pages are the vector's alone; the advice leaves what they hold.
            unsafe { libc::madvise(memory.wrapping_add(before).cast(), whole, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = values;
}
