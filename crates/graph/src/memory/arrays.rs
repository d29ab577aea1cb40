//! Arrays whose memory is a map of a file: what fills them is read when somebody looks, and goes again when memory is
//! wanted for something else.
//!
//! A vector's memory has to come from the allocator and to go back to it. So a map is *offered* to [`super::Lines`],
//! which gives it out for the next array of exactly its size on this thread, and takes it apart when that array goes.
//! Where another allocator is at work it gives out memory of its own, and the file's bytes are copied there.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::fs::{File, Metadata};
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;

use bytemuck::Pod;
use memmap2::MmapOptions;

use super::places::{GOING, PLACES, TAKEN, place_of, take};

thread_local! {
    /// The place of the array on offer, and its layout.
    static OFFER: Cell<Option<(usize, Layout)>> = const { Cell::new(None) };
}

/// The memory on offer, if an array of this layout is asked for.
#[inline]
pub(super) fn offered(layout: Layout) -> Option<*mut u8> {
    // Threads that end have no offer any more.
    let (place, _) = OFFER.try_with(|offer| offer.get().filter(|(_, wanted)| *wanted == layout)).ok().flatten()?;
    let _ = OFFER.try_with(|offer| offer.set(None));
    Some(std::ptr::with_exposed_provenance_mut(PLACES[place].array.load(Ordering::Acquire)))
}

/// Whether an array's memory is a map.
#[inline]
pub(super) fn is_map(array: *const u8) -> bool {
    place_of(array).is_some()
}

/// Takes apart the map that an array is; says whether it is one.
///
/// # Safety
///
/// Nobody uses the array any more.
pub(super) unsafe fn take_apart(array: *mut u8) -> bool {
    let Some(place) = place_of(array) else { return false };
    let (start, bytes) = (place.start.load(Ordering::Acquire), place.bytes.load(Ordering::Acquire));
    place.array.store(GOING, Ordering::Release);
    // SAFETY: the map was made of so many bytes and is nobody's any more.
    #[cfg(unix)]
    unsafe {
        libc::munmap(std::ptr::with_exposed_provenance_mut(start), bytes);
    }
    #[cfg(not(unix))]
    let _ = (start, bytes);
    place.array.store(0, Ordering::Release);
    TAKEN.fetch_sub(1, Ordering::AcqRel);
    true
}

/// The values that these bytes of a file are, as an array that is a map of it; `None` where that cannot be, because
/// another allocator is at work, the system has no such maps, or values do not begin where their kind has to. What is
/// written to the array does not reach the file. Where the file becomes shorter the array reads zeros, and
/// [`changed_file`](super::changed_file) says that it, or what stands in it, has changed since it was `opened`.
///
/// # Safety
///
/// Whoever reads the array takes no value for one that stays: it changes with the file.
pub(crate) unsafe fn array<T: Pod>(
    (file, path, opened): (&File, &Path, &Metadata),
    bytes: Range<usize>,
) -> Option<Vec<T>> {
    let (count, layout) = (bytes.len() / size_of::<T>(), Layout::array::<T>(bytes.len() / size_of::<T>()).ok()?);
    if cfg!(not(unix)) || layout.size() < super::lines::LARGE {
        return None;
    }
    // What is never written takes no memory of the system's, and nothing has to be set aside for it.
    // SAFETY: as of this function.
    let mut map = unsafe { MmapOptions::new().no_reserve_swap().len(bytes.end).map_copy(file) }.ok()?;
    if !(map.as_ptr().addr() + bytes.start).is_multiple_of(align_of::<T>()) {
        return None;
    }
    let watched = file.try_clone().ok()?;
    let place = take(&mut map, bytes.start)?;
    OFFER.set(Some((place, layout)));
    let mut values = Vec::<T>::with_capacity(count);
    OFFER.set(None);
    let expected = PLACES[place].array.load(Ordering::Acquire);
    if values.as_ptr().addr() != expected {
        // Dropping the map takes it apart.
        PLACES[place].array.store(0, Ordering::Release);
        TAKEN.fetch_sub(1, Ordering::AcqRel);
        return None;
    }
    #[cfg(unix)]
    super::shrunk::answer_faults();
    super::watched::watch((place, expected), watched, path, opened.clone());
    // From here on the array is the map's owner.
    std::mem::forget(map);
    // The compiler may take new memory for memory that holds nothing: it must not see where this came from.
    black_box(values.as_mut_ptr());
    // SAFETY: the memory has room for so many values, any bytes are values of the type, and all of them are there.
    unsafe { values.set_len(count) };
    Some(values)
}
