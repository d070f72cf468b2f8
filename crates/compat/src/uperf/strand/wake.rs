//! Gets a thread out of a blocked call at once.
//!
//! What a master sends after its next command belongs to the next transaction, so a strand that still waits for bytes of the
//! last one must not meet it. A socket call with a time limit is never restarted after a signal (signal(7)).

use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use nix::sys::pthread::pthread_kill;
use nix::sys::signal::Signal;

/// Makes the signal harmless; to be called before threads are woken.
pub(crate) fn prepare() -> io::Result<()> {
    static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();
    let register = || {
        let seen = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGUSR2, seen).map(drop).map_err(|e| e.to_string())
    };
    PREPARED.get_or_init(register).clone().map_err(io::Error::other)
}

/// Interrupts what the threads wait for.
pub(crate) fn wake<T>(threads: &[JoinHandle<T>]) {
    for thread in threads.iter().filter(|t| !t.is_finished()) {
        // Not joined yet, so its id is valid; one that has just ended needs no waking.
        let _ended = pthread_kill(thread.as_pthread_t(), Signal::SIGUSR2);
    }
}
