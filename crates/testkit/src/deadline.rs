//! Time limits: a test that hangs must fail, and say what hung.

use std::{
    panic,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a closure on a thread of its own and returns what it returns.
///
/// # Panics
/// When the time is over (the thread is left behind; it ends with the test's process), or with the closure's own panic.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let worker = thread::spawn(move || {
        // The receiver is gone only after a time out, which is reported already.
        let _ = sender.send(work());
    });
    match receiver.recv_timeout(limit) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout) => panic!("not done within {limit:?}"),
        Err(RecvTimeoutError::Disconnected) => match worker.join() {
            Err(cause) => panic::resume_unwind(cause),
            Ok(()) => unreachable!("the worker sends before it ends"),
        },
    }
}

/// Asks again and again until there is an answer.
///
/// # Panics
/// When there is none within the limit; `what` names what was waited for.
pub fn eventually<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "{what}: not within {limit:?}");
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_time_returns_its_value() {
        assert_eq!(within(Duration::from_secs(10), || 7), 7);
    }

    #[test]
    #[should_panic(expected = "not done within 20ms")]
    fn work_that_hangs_fails_the_test() {
        within(Duration::from_millis(20), || thread::sleep(Duration::from_secs(60)));
    }

    #[test]
    #[should_panic(expected = "own words")]
    fn a_panic_inside_keeps_its_message() {
        within(Duration::from_secs(10), || panic!("own words"));
    }

    #[test]
    fn eventually_asks_until_there_is_an_answer() {
        let mut asked = 0;
        let answer = eventually(Duration::from_secs(10), "third time", || {
            asked += 1;
            (asked == 3).then_some(asked)
        });
        assert_eq!(answer, 3);
    }
}
