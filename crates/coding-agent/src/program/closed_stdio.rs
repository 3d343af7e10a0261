//! Whether standard output was closed when the program began.
//!
//! Before `main`, Rust's runtime opens `/dev/null` in the place of a closed descriptor, and an answer
//! would vanish without a word. So the question is asked before that, in the list of functions that
//! the loader calls first.

#![expect(unsafe_code, reason = "the one place that runs before the runtime; its proof is below")]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Asks before Rust's runtime starts.
///
/// SAFETY of the section: the loader calls each entry of `.init_array` once, as a C function whose
/// arguments may be ignored, before `main`. SAFETY of the body: it makes one system call on a
/// borrowed descriptor number, which may name no open file (that is what is asked), and stores into
/// a static; it allocates nothing, locks nothing and cannot panic.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static ASK: extern "C" fn() = {
    extern "C" fn ask() {
        // SAFETY: used for one query that fails with EBADF where nothing is open.
        let stdout = unsafe { std::os::fd::BorrowedFd::borrow_raw(1) };
        if rustix::io::fcntl_getfd(stdout) == Err(rustix::io::Errno::BADF) {
            CLOSED.store(true, Ordering::Relaxed);
        }
    }
    ask
};

/// Whether nobody can read what is printed: the descriptor was closed, or it is a pipe whose other
/// end is.
pub(crate) fn stdout_is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed) || reader_is_gone()
}

fn reader_is_gone() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}
