//! Which arrays are maps of files, and where these are.

use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::MmapMut;

/// Arrays that may be maps at a time. Those beyond are copied.
const MOST: usize = 256;

/// A map: where its array begins, where it begins itself, and its bytes. All 0 where there is none.
pub(super) struct Place {
    pub(super) array: AtomicUsize,
    pub(super) start: AtomicUsize,
    pub(super) bytes: AtomicUsize,
}

pub(super) static PLACES: [Place; MOST] =
    [const { Place { array: AtomicUsize::new(0), start: AtomicUsize::new(0), bytes: AtomicUsize::new(0) } }; MOST];

/// How many arrays are maps, so that nobody looks for one where there are none.
pub(super) static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A place that nobody may take while its map is being taken apart.
pub(super) const GOING: usize = 1;

/// The place of the map that an array is.
pub(super) fn place_of(array: *const u8) -> Option<&'static Place> {
    if TAKEN.load(Ordering::Acquire) == 0 {
        return None;
    }
    PLACES.iter().find(|place| place.array.load(Ordering::Acquire) == array.addr())
}

/// Whether an address is in a map.
#[cfg(unix)]
pub(super) fn is_in_map(at: usize) -> bool {
    PLACES.iter().filter(|place| place.array.load(Ordering::Acquire) > GOING).any(|place| {
        let start = place.start.load(Ordering::Acquire);
        (start..start + place.bytes.load(Ordering::Acquire)).contains(&at)
    })
}

/// Whether any array is a map.
pub(super) fn are_there() -> bool {
    TAKEN.load(Ordering::Acquire) > 0
}

/// Whether the array of this place still begins there.
pub(super) fn is_at((place, array): (usize, usize)) -> bool {
    PLACES[place].array.load(Ordering::Acquire) == array
}

/// Takes a place for a map whose array begins at this byte of it.
pub(super) fn take(map: &mut MmapMut, first: usize) -> Option<usize> {
    let free = |place: &Place| place.array.compare_exchange(0, GOING, Ordering::AcqRel, Ordering::Acquire).is_ok();
    let index = PLACES.iter().position(free)?;
    let place = &PLACES[index];
    place.start.store(map.as_mut_ptr().expose_provenance(), Ordering::Release);
    place.bytes.store(map.len(), Ordering::Release);
    place.array.store(map.as_mut_ptr().expose_provenance() + first, Ordering::Release);
    TAKEN.fetch_add(1, Ordering::AcqRel);
    Some(index)
}
