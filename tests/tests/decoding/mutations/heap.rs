//! [`Heap`]: how much memory a thread asked for, counted by the allocator of this test.
//!
//! Knows nothing of what the memory is for. What one thread frees for another is counted where it is
//! freed, so only work that stays on its thread can be measured.

#![expect(unsafe_code, reason = "an allocator cannot be written without; its proof is below")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed to the system's allocator with the arguments that came, and its answer
// is passed back, so its guarantees are kept. The counters are plain cells of the thread: they are
// made without allocating, have no destructor and cannot panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        gave(layout.size());
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new exist together while the one is copied to the other.
        took(size);
        gave(layout.size());
        unsafe { System.realloc(place, layout, size) }
    }
}

fn took(bytes: usize) {
    let live = LIVE.get().wrapping_add(bytes);
    LIVE.set(live);
    // What was freed for another thread may have brought the count below zero.
    if live.cast_signed() > PEAK.get().cast_signed() {
        PEAK.set(live);
    }
}

fn gave(bytes: usize) {
    LIVE.set(LIVE.get().wrapping_sub(bytes));
}

/// A watch over this thread's memory, from now on.
pub(super) struct Heap {
    before: usize,
}

impl Heap {
    /// Begins to watch.
    pub(super) fn watch() -> Self {
        PEAK.set(LIVE.get());
        Self { before: LIVE.get() }
    }

    /// The most that was in use at once since then, over what was in use already.
    pub(super) fn peak(&self) -> usize {
        PEAK.get().wrapping_sub(self.before)
    }
}
