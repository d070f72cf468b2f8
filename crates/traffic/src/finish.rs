//! The end of an endpoint: drains what is on its way, joins the threads and gathers what they found.

use std::time::{Duration, Instant};

use linerate_model::reading::VerifyReading;

use crate::call;
use crate::endpoint::Endpoint;
use crate::error::TrafficError;
use crate::lane::{Lane, Outcome};
use crate::preamble::Purpose;
use crate::result::{SideResult, StreamResult, ThreadInfo, ThreadResult};

/// How long threads may take to end by themselves after the stop: room for what is on its way and for quiet on UDP.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);

impl Endpoint {
    /// Stops if that was not done, waits until what is on its way has arrived (at most 3 s) and ends all threads.
    ///
    /// `expect_sent`, for a receiver of udp-stream, says by stream how many datagrams the sender sent in the window
    /// (`udp.sent` of its result): the receiver ends as soon as it has them, else after 250 ms without any.
    pub fn finish(mut self, expect_sent: Option<&[u64]>) -> SideResult {
        let deadline = Instant::now() + DRAIN_LIMIT;
        if let Some(sent) = expect_sent {
            self.control.expect(sent);
        }
        self.stop();
        if self.accepts_itself() {
            self.await_provers(deadline);
            // The clients are gone: nobody is left to accept.
            self.stop_accepting();
        }
        let lanes = self.lanes.len();
        let left = deadline.saturating_duration_since(Instant::now());
        let ended = self.control.wait_for(left, |p| p.ended == lanes).ended;
        if ended < lanes {
            self.abort();
        }
        self.close_door();
        self.gather()
    }

    /// Waits until every client has closed its prover connection, which it does once its threads have ended.
    fn await_provers(&self, deadline: Instant) {
        for link in self.links.iter().filter(|l| l.claim.purpose == Purpose::Prover) {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let patient = link.socket.set_read_timeout(Some(left)).is_ok();
            while patient && matches!(call::recv(&*link.socket, &mut [0; 64]), Ok(count) if count > 0) {}
        }
    }

    fn gather(mut self) -> SideResult {
        let strays = self.count_strays();
        let snapshot = self.snapshot();
        let mut streams: Vec<StreamResult> = (0..self.side.trial.streams)
            .zip(snapshot.streams)
            .map(|(index, total)| StreamResult { index, total, ..StreamResult::default() })
            .collect();
        for link in &self.links {
            let stream = &mut streams[link.claim.stream as usize];
            if link.claim.purpose == Purpose::Back {
                continue;
            }
            stream.local = (link.claim.purpose != Purpose::Prover).then_some(link.local);
            stream.remote = Some(link.remote);
            stream.socket = link.granted.clone();
        }
        let mut threads = Vec::new();
        for lane in std::mem::take(&mut self.lanes) {
            let info = lane.info();
            let stream = &mut streams[lane.stream as usize];
            match lane.thread.join() {
                Ok((result, cpu_ns)) => {
                    threads.push(ThreadResult { info, cpu_ns });
                    match result {
                        Ok(outcome) => merge(stream, outcome),
                        // Stopped before the start: nothing moved, and nothing went wrong.
                        Err(TrafficError::Stopped) => {}
                        Err(e) => keep_first(&mut stream.error, e.to_string()),
                    }
                }
                Err(_) => {
                    threads.push(ThreadResult { info, cpu_ns: 0 });
                    keep_first(&mut stream.error, format!("the {} thread panicked", info.role.name()));
                }
            }
        }
        SideResult { streams, threads, strays }
    }
}

impl Lane {
    pub(crate) fn info(&self) -> ThreadInfo {
        ThreadInfo {
            tid: self.counters.read().tid,
            stream: self.stream,
            role: self.role,
            pinned_cpu: self.cpu,
        }
    }
}

/// Adds what one of a stream's threads found.
fn merge(stream: &mut StreamResult, outcome: Outcome) {
    stream.udp = stream.udp.or(outcome.udp);
    stream.zerocopy = stream.zerocopy.or(outcome.zerocopy);
    stream.last_received_ns = stream.last_received_ns.max(outcome.last_received_ns);
    if let Some(latency) = outcome.latency {
        stream.latency.get_or_insert_default().merge(&latency);
    }
    if let Some(found) = outcome.verify {
        let all = stream.verify.get_or_insert_with(VerifyReading::default);
        all.checked_bytes += found.checked_bytes;
        all.bad_bytes += found.bad_bytes;
        all.first_bad_offset = all.first_bad_offset.or(found.first_bad_offset);
    }
}

fn keep_first(error: &mut Option<String>, text: String) {
    error.get_or_insert(text);
}
