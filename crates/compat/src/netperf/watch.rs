//! When a server ends a test by itself, without I/O or clock.
//!
//! A client of a stream says that it is done by closing. Clients of other timed tests may say nothing, so the server ends
//! them once the test's length has passed and it has been quiet since.

use super::request::{Length, Pattern, Request, Transport};

/// How long it must be quiet after a timed test's length.
const QUIET_NS: u64 = 300_000_000;

/// How long it must be quiet in a UDP test with a count whose end may have been lost.
const LOST_END_NS: u64 = 2_000_000_000;

/// How long the client may take to begin.
const BEGIN_LIMIT_NS: u64 = 120_000_000_000;

/// Room that a stream has after its length to bring what is on its way.
const STREAM_GRACE_NS: u64 = 4_000_000_000;

/// What the server does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Look again at this instant, at the latest.
    GoOn(u64),
    /// Stop: the test is over.
    Stop,
    /// Stop: the client never began.
    NeverBegan,
}

/// Follows one test.
#[derive(Debug)]
pub(crate) struct Watch {
    length_ns: Option<u64>,
    longest_ns: Option<u64>,
    server_sends_only: bool,
    stream: bool,
    udp_count: bool,
    opened_ns: u64,
    last_activity_ns: u64,
    last_moved: u64,
}

impl Watch {
    /// `longest_ns`: the server's own limit of a test.
    pub(crate) fn new(request: &Request, longest_ns: Option<u64>, now_ns: u64) -> Self {
        let length_ns = match request.length {
            Length::Seconds(seconds) => Some(u64::from(seconds) * 1_000_000_000),
            Length::Count(_) | Length::Unlimited => None,
        };
        Self {
            length_ns,
            longest_ns,
            server_sends_only: request.pattern == Pattern::Maerts,
            stream: request.pattern == Pattern::Stream && request.transport == Transport::Tcp,
            udp_count: request.transport == Transport::Udp && matches!(request.length, Length::Count(_)),
            opened_ns: now_ns,
            last_activity_ns: now_ns,
            last_moved: 0,
        }
    }

    /// When the timed part ends, for a test that began at `begun_ns`.
    pub(crate) fn length_ends_ns(&self, begun_ns: u64) -> Option<u64> {
        self.length_ns.map(|length| begun_ns.saturating_add(length))
    }

    /// Last instant at which something had moved since the look before.
    pub(crate) fn last_activity_ns(&self) -> u64 {
        self.last_activity_ns
    }

    /// `begun_ns`: when the first data came, if it did. `moved`: bytes and connections so far.
    pub(crate) fn look(&mut self, now_ns: u64, begun_ns: Option<u64>, moved: u64) -> Verdict {
        if moved != self.last_moved {
            self.last_moved = moved;
            self.last_activity_ns = now_ns;
        }
        let Some(begun_ns) = begun_ns else {
            let limit = self.opened_ns.saturating_add(BEGIN_LIMIT_NS);
            return if now_ns >= limit { Verdict::NeverBegan } else { Verdict::GoOn(limit) };
        };
        let longest = self.longest_ns.map_or(u64::MAX, |longest| begun_ns.saturating_add(longest));
        let ends = longest.min(self.ends_ns(begun_ns));
        if now_ns >= ends { Verdict::Stop } else { Verdict::GoOn(ends) }
    }

    fn ends_ns(&self, begun_ns: u64) -> u64 {
        let quiet_since = self.last_activity_ns.max(begun_ns);
        match self.length_ends_ns(begun_ns) {
            Some(length_ends) if self.server_sends_only => length_ends,
            Some(length_ends) if self.stream => {
                length_ends.saturating_add(STREAM_GRACE_NS).max(quiet_since.saturating_add(STREAM_GRACE_NS))
            }
            Some(length_ends) => length_ends.max(quiet_since).saturating_add(QUIET_NS),
            None if self.udp_count => quiet_since.saturating_add(LOST_END_NS),
            None => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::Layout;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn watch(pattern: Pattern, transport: Transport, length: Length) -> Watch {
        Watch::new(&Request::new(Layout::Omni, pattern, transport, length), Some(100 * SECOND), 0)
    }

    #[test]
    fn a_sender_stops_at_its_length_whenever_the_client_came() {
        let mut maerts = watch(Pattern::Maerts, Transport::Tcp, Length::Seconds(1));
        assert!(matches!(maerts.look(6 * SECOND, None, 0), Verdict::GoOn(_)));
        assert_eq!(maerts.look(6 * SECOND, Some(6 * SECOND), 5), Verdict::GoOn(7 * SECOND));
        assert_eq!(maerts.look(7 * SECOND, Some(6 * SECOND), 50), Verdict::Stop);
    }

    #[test]
    fn connections_that_stop_coming_end_a_test_soon_after_its_length() {
        let mut crr = watch(Pattern::Crr, Transport::Tcp, Length::Seconds(1));
        assert_eq!(crr.look(SECOND, Some(0), 9), Verdict::GoOn(SECOND + QUIET_NS));
        assert_eq!(crr.look(SECOND + QUIET_NS - 1, Some(0), 10), Verdict::GoOn(SECOND + 2 * QUIET_NS - 1));
        assert_eq!(crr.look(SECOND + 2 * QUIET_NS, Some(0), 10), Verdict::Stop);
        assert_eq!(crr.length_ends_ns(0), Some(SECOND));
    }

    #[test]
    fn a_lost_end_of_a_count_does_not_last_for_ever() {
        let mut rr = watch(Pattern::Rr, Transport::Udp, Length::Count(10));
        assert!(matches!(rr.look(SECOND, Some(SECOND), 9), Verdict::GoOn(_)));
        assert_eq!(rr.look(3 * SECOND, Some(SECOND), 9), Verdict::Stop);
    }

    #[test]
    fn no_test_outlasts_the_servers_limit() {
        let mut endless = watch(Pattern::Stream, Transport::Tcp, Length::Unlimited);
        assert_eq!(endless.look(99 * SECOND, Some(0), 1), Verdict::GoOn(100 * SECOND));
        assert_eq!(endless.look(100 * SECOND, Some(0), 2), Verdict::Stop);
    }

    #[test]
    fn a_client_that_never_comes_is_given_up() {
        let mut rr = watch(Pattern::Rr, Transport::Tcp, Length::Seconds(1));
        assert_eq!(rr.look(BEGIN_LIMIT_NS, None, 0), Verdict::NeverBegan);
    }
}
