//! What a guest says on its serial console: the last lines of it.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lines kept.
const KEPT: usize = 200;
/// Bytes kept of a line.
const LONGEST: usize = 500;

/// The last lines of a console; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Console(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<String>,
    begun: Vec<u8>,
    /// Lines that came in all.
    count: u64,
}

impl Console {
    /// Reads until the stream ends; to be run on a thread of its own.
    pub(super) fn follow(&self, mut stream: impl Read) {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            self.lines().take(&buffer[..length]);
        }
    }

    /// At most `count` of the last lines.
    pub(super) fn last(&self, count: usize) -> Vec<String> {
        let mut lines: Vec<String> = self.lines().all().collect();
        lines.split_off(lines.len().saturating_sub(count))
    }

    /// The lines that tell most of a guest that failed, `count` at most: those from its panic on, else the last.
    pub(super) fn telling(&self, count: usize) -> Vec<String> {
        let mut lines = self.last(KEPT);
        let end = lines.len();
        let from = lines.iter().rposition(|line| line.contains("Kernel panic"));
        let mut lines = lines.split_off(from.unwrap_or_else(|| end.saturating_sub(count)));
        lines.truncate(count);
        lines
    }

    /// How many lines came until now; for [`Self::since`].
    pub(super) fn mark(&self) -> u64 {
        self.lines().count
    }

    /// The lines that came since a mark, as far as they are kept.
    pub(super) fn since(&self, mark: u64) -> Vec<String> {
        let lines = self.lines();
        let new = usize::try_from(lines.count.saturating_sub(mark)).unwrap_or(usize::MAX);
        lines.kept.iter().skip(lines.kept.len().saturating_sub(new)).cloned().collect()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                // Colours and carriage returns are for terminals.
                0..=8 | 11..=31 => {}
                byte if self.begun.len() < LONGEST => self.begun.push(*byte),
                _ => {}
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.begun)).trim_end().to_owned();
        if line.is_empty() {
            return;
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(line);
        self.count += 1;
    }

    fn all(&self) -> impl Iterator<Item = String> + '_ {
        let begun = String::from_utf8_lossy(&self.begun).trim_end().to_owned();
        self.kept.iter().cloned().chain((!begun.is_empty()).then_some(begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_whatever_comes() {
        let console = Console::default();
        console.follow(&b"one\r\n\r\ntwo\n\x1bthr"[..]);
        assert_eq!(console.last(2), ["two", "thr"]);
        let mark = console.mark();
        console.follow(&b"ee\nfour\n"[..]);
        assert_eq!(console.since(mark), ["three", "four"]);
        console.follow(std::io::Cursor::new("x".repeat(5000) + "\n"));
        assert_eq!(console.last(1)[0].len(), LONGEST);
        console.follow(&b"Kernel panic - x\na\nb\nc\n"[..]);
        assert_eq!(console.telling(2), ["Kernel panic - x", "a"]);
        console.follow(std::io::Cursor::new("y\n".repeat(5000)));
        assert_eq!(console.last(9999).len(), KEPT);
    }
}
