//! Arrays whose memory is a map of a file: what fills them is read when somebody looks, and goes again when memory is
//! wanted for something else.
//!
//! A vector's memory has to come from the allocator and to go back to it. So a map is *offered* to [`super::Lines`],
//! which gives it out for the next array of exactly its size on this thread, and takes it apart when that array goes.
//! Where another allocator is at work it gives out memory of its own, and the file's bytes are copied there.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::fs::File;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

/// Arrays that may be maps at a time. Those beyond are copied.
const MOST: usize = 256;

/// A map: where its array begins, where it begins itself, and its bytes. All 0 where there is none.
struct Place {
    array: AtomicUsize,
    start: AtomicUsize,
    bytes: AtomicUsize,
}

static PLACES: [Place; MOST] =
    [const { Place { array: AtomicUsize::new(0), start: AtomicUsize::new(0), bytes: AtomicUsize::new(0) } }; MOST];

/// How many arrays are maps, so that nobody looks for one where there are none.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A place that nobody may take while its map is being taken apart.
const GOING: usize = 1;

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

/// The place of the map that an array is.
fn place_of(array: *const u8) -> Option<&'static Place> {
    if TAKEN.load(Ordering::Acquire) == 0 {
        return None;
    }
    PLACES.iter().find(|place| place.array.load(Ordering::Acquire) == array.addr())
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

/// Takes a place for a map whose array begins at this byte of it.
fn take(map: &mut MmapMut, first: usize) -> Option<usize> {
    let free = |place: &Place| place.array.compare_exchange(0, GOING, Ordering::AcqRel, Ordering::Acquire).is_ok();
    let index = PLACES.iter().position(free)?;
    let place = &PLACES[index];
    place.start.store(map.as_mut_ptr().expose_provenance(), Ordering::Release);
    place.bytes.store(map.len(), Ordering::Release);
    place.array.store(map.as_mut_ptr().expose_provenance() + first, Ordering::Release);
    TAKEN.fetch_add(1, Ordering::AcqRel);
    Some(index)
}

/// The values that these bytes of a file are, as an array that is a map of it; `None` where that cannot be, because
/// another allocator is at work, the system has no such maps, or values do not begin where their kind has to. What is
/// written to the array does not reach the file.
///
/// # Safety
///
/// Nobody changes or shortens the file as long as the array is there.
pub(crate) unsafe fn array<T: Pod>(file: &File, bytes: Range<usize>) -> Option<Vec<T>> {
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
    // From here on the array is the map's owner.
    std::mem::forget(map);
    // The compiler may take new memory for memory that holds nothing: it must not see where this came from.
    black_box(values.as_mut_ptr());
    // SAFETY: the memory has room for so many values, any bytes are values of the type, and all of them are there.
    unsafe { values.set_len(count) };
    Some(values)
}
