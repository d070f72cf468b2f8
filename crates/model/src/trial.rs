//! One workload run once, and the checks that refuse nonsense before any traffic.

use serde::{Deserialize, Serialize};

use crate::units::{ByteCount, RateUnit};
use crate::workload::{MAX_UDP_PAYLOAD, SendMethod, UDP_STREAM_HEADER, UdpRr, Workload, WorkloadKind};

/// IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Family {
    /// IPv4.
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

/// Which end of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The node under test; it opens the data connections.
    Dut,
    /// Its partner; it listens.
    Peer,
}

/// What ends a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// The window lasts this long, nanoseconds; warm-up comes before it.
    DurationNs(u64),
    /// This many payload bytes in each direction over all streams; the window is the whole transfer.
    Bytes(u64),
    /// This many transactions over all streams; the window is the whole run.
    Transactions(u64),
    /// All that the workload itself says: a profile's end; the window is the whole run.
    Whole,
}

/// CPUs for the traffic threads of each end: thread i runs on entry `i % len`. Empty: not pinned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pinning {
    /// CPUs on the dut.
    pub dut: Vec<u32>,
    /// CPUs on the peer.
    pub peer: Vec<u32>,
}

/// One value of a setting, as `--set dut.tso=off` gives it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingLevel {
    /// Node and setting: `dut.tso`, `peer.mtu`, `both.rx-usecs`.
    pub key: String,
    /// The value it has while the trial runs.
    pub value: String,
}

/// A workload run once under one combination of levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Pattern and parameters.
    pub workload: Workload,
    /// IP version of the data connections.
    pub family: Family,
    /// Peers that do this at the same time, each with the dut: streams, rate and amount are each one's.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub peers: u32,
    /// Parallel streams (connections, sockets), each with its own threads.
    pub streams: u32,
    /// What ends it.
    pub amount: Amount,
    /// Traffic before the window opens, nanoseconds; 0 with a count.
    pub warmup_ns: u64,
    /// Length of an interval within the window, nanoseconds; `None` is no intervals.
    pub interval_ns: Option<u64>,
    /// Seed of the payload generator where every byte is checked at the receiver.
    pub verify_seed: Option<u64>,
    /// CPUs for the traffic threads.
    pub pin: Pinning,
    /// Which repeat this is, from 0.
    pub repeat: u32,
    /// Settings that are changed for it, in the order they are applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingLevel>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

fn one() -> u32 {
    1
}

/// Most peers in one trial.
pub const MAX_PEERS: u32 = 64;
/// Most streams in one trial.
pub const MAX_STREAMS: u32 = 1024;
/// Largest call.
pub const MAX_CALL_BYTES: u64 = 64 << 20;
/// Most requests outstanding on one connection.
pub const MAX_IN_FLIGHT: u32 = 65_536;

/// Why a trial cannot be run as asked; each says what would be right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TrialError {
    /// A size is outside its range.
    #[error("{what} {given}: must be {min} to {max} bytes for {workload}")]
    Size {
        /// `--size`, `--request` or `--response`.
        what: &'static str,
        /// What was given.
        given: u64,
        /// Least.
        min: u64,
        /// Most.
        max: u64,
        /// The workload's word.
        workload: &'static str,
    },
    /// A count is outside its range.
    #[error("{what} {given}: must be {min} to {max}")]
    Count {
        /// The option.
        what: &'static str,
        /// What was given.
        given: u64,
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A time is outside its range.
    #[error("{what} {given}: must be {min} to {max} seconds")]
    Seconds {
        /// The option.
        what: &'static str,
        /// What was given, seconds.
        given: f64,
        /// Least, seconds.
        min: f64,
        /// Most, seconds.
        max: f64,
    },
    /// An option that this workload has no use for.
    #[error("{option} does not go with {workload}: {why}")]
    NotWith {
        /// The option.
        option: &'static str,
        /// The workload's word.
        workload: &'static str,
        /// What to do instead.
        why: &'static str,
    },
}

impl Trial {
    /// Checks everything that can be known without asking a node.
    ///
    /// # Errors
    /// Names the option, what was given and what would be right.
    pub fn check(&self) -> Result<(), TrialError> {
        let name = self.workload.kind().name();
        let not_with = |option, why| Err(TrialError::NotWith { option, workload: name, why });
        if let Workload::Profile(run) = &self.workload {
            if self.amount != Amount::Whole {
                return not_with("-t, --bytes or --transactions", "the profile says itself when it ends");
            }
            if self.pin != Pinning::default() || self.verify_seed.is_some() {
                return not_with("--pin or --verify", "strands are not pinned, and their payload is zeros");
            }
            check_count("nthreads of all groups", run.profile.strands().into(), 1, MAX_STREAMS.into())?;
            check_count(
                "--streams",
                self.streams.into(),
                run.profile.strands().into(),
                run.profile.strands().into(),
            )?;
        }
        check_count("--peers", u64::from(self.peers), 1, u64::from(MAX_PEERS))?;
        check_count("--streams", u64::from(self.streams), 1, u64::from(MAX_STREAMS))?;
        self.check_sizes(name)?;
        self.check_rate(name)?;
        match self.amount {
            Amount::DurationNs(ns) => {
                check_seconds("-t", ns, 10_000_000, 7 * 86_400 * 1_000_000_000)?;
            }
            Amount::Bytes(bytes) => {
                if self.workload.kind().is_transactional() {
                    return not_with("--bytes", "give --transactions");
                }
                check_count("--bytes", bytes, u64::from(self.streams), 1 << 60)?;
            }
            Amount::Transactions(count) => {
                if !self.workload.kind().is_transactional() {
                    return not_with("--transactions", "give --bytes");
                }
                check_count("--transactions", count, u64::from(self.streams), 1 << 60)?;
            }
            Amount::Whole => {
                if self.workload.kind() != WorkloadKind::Profile {
                    return not_with(
                        "no -t, --bytes or --transactions",
                        "only a profile says itself when it ends",
                    );
                }
            }
        }
        if let Some(ns) = self.interval_ns {
            check_seconds("--interval", ns, 10_000_000, 86_400 * 1_000_000_000)?;
        }
        if let Some(mss) = self.workload.tcp_options().and_then(|o| o.mss_bytes) {
            check_count("--mss", u64::from(mss), 88, 65_495)?;
        }
        if let Some(buffer) = self.workload.buffer_bytes() {
            check_count("--socket-buffer", buffer.0, 1024, (i32::MAX / 2) as u64)?;
        }
        Ok(())
    }

    fn check_sizes(&self, name: &'static str) -> Result<(), TrialError> {
        let check = |what, given: ByteCount, min, max| {
            if (min..=max).contains(&given.0) {
                Ok(())
            } else {
                Err(TrialError::Size { what, given: given.0, min, max, workload: name })
            }
        };
        match &self.workload {
            Workload::TcpStream(w) | Workload::TcpReverse(w) => check("--size", w.size, 1, MAX_CALL_BYTES),
            Workload::TcpBidir(w) => check("--size", w.stream.size, 1, MAX_CALL_BYTES),
            Workload::UdpStream(w) => check("--size", w.size, UDP_STREAM_HEADER, MAX_UDP_PAYLOAD),
            Workload::TcpRr(w) => {
                check("--request", w.request, 1, MAX_CALL_BYTES)?;
                check("--response", w.response, 1, MAX_CALL_BYTES)?;
                check_in_flight(w.in_flight)
            }
            Workload::TcpCrr(w) => {
                check("--request", w.request, 1, MAX_CALL_BYTES)?;
                check("--response", w.response, 1, MAX_CALL_BYTES)
            }
            Workload::UdpRr(w) => {
                check("--request", w.request, 1, MAX_UDP_PAYLOAD)?;
                check("--response", w.response, 1, MAX_UDP_PAYLOAD)?;
                check_in_flight(w.in_flight)?;
                check_udp_rr_matching(w, name)
            }
            Workload::Profile(_) => Ok(()),
        }
    }

    fn check_rate(&self, name: &'static str) -> Result<(), TrialError> {
        let Some(rate) = self.workload.rate() else { return Ok(()) };
        let transactional = self.workload.kind().is_transactional();
        if transactional != (rate.unit == RateUnit::RequestsPerSecond) {
            let why = if transactional {
                "a rate here is requests a second (rps)"
            } else {
                "a rate here is bits a second, or packets with pps"
            };
            return Err(TrialError::NotWith { option: "--rate", workload: name, why });
        }
        let stream_of_calls = match &self.workload {
            Workload::TcpStream(w) | Workload::TcpReverse(w) => w.send == SendMethod::Sendfile,
            _ => false,
        };
        if stream_of_calls && rate.unit == RateUnit::PacketsPerSecond {
            return Err(TrialError::NotWith {
                option: "--rate in pps",
                workload: name,
                why: "sendfile is paced in bits",
            });
        }
        check_count("--rate", rate.per_second, u64::from(self.streams), 10_000_000_000_000)
    }
}

fn check_count(what: &'static str, given: u64, min: u64, max: u64) -> Result<(), TrialError> {
    if (min..=max).contains(&given) { Ok(()) } else { Err(TrialError::Count { what, given, min, max }) }
}

fn check_seconds(what: &'static str, given_ns: u64, min_ns: u64, max_ns: u64) -> Result<(), TrialError> {
    if (min_ns..=max_ns).contains(&given_ns) {
        return Ok(());
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    Err(TrialError::Seconds { what, given: seconds(given_ns), min: seconds(min_ns), max: seconds(max_ns) })
}

fn check_in_flight(in_flight: Option<u32>) -> Result<(), TrialError> {
    check_count("--in-flight", u64::from(in_flight.unwrap_or(1)), 1, u64::from(MAX_IN_FLIGHT))
}

fn check_udp_rr_matching(w: &UdpRr, name: &'static str) -> Result<(), TrialError> {
    if w.outstanding() > w.most_outstanding() {
        return Err(TrialError::NotWith {
            option: "so many --in-flight",
            workload: name,
            why: "answers are told apart by the bytes of the smaller message: make it 8 bytes or lower --in-flight",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;
    use crate::workload::{TcpOptions, TcpRr, TcpStream, UdpOptions, UdpStream};

    fn trial(workload: Workload) -> Trial {
        Trial {
            workload,
            family: Family::V4,
            peers: 1,
            streams: 1,
            amount: Amount::DurationNs(1_000_000_000),
            warmup_ns: 0,
            interval_ns: None,
            verify_seed: None,
            settings: Vec::new(),
            pin: Pinning::default(),
            repeat: 0,
        }
    }

    fn stream(size: u64) -> Workload {
        Workload::TcpStream(TcpStream {
            size: ByteCount(size),
            send: SendMethod::Write,
            rate: None,
            socket: TcpOptions::default(),
        })
    }

    fn udp(size: u64, rate: Option<Rate>) -> Workload {
        Workload::UdpStream(UdpStream { size: ByteCount(size), rate, socket: UdpOptions::default() })
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_right() {
        let text = |t: Trial| t.check().unwrap_err().to_string();
        assert_eq!(text(trial(stream(0))), "--size 0: must be 1 to 67108864 bytes for tcp-stream");
        assert_eq!(text(trial(udp(65508, None))), "--size 65508: must be 16 to 65507 bytes for udp-stream");
        assert_eq!(text(Trial { streams: 0, ..trial(stream(1)) }), "--streams 0: must be 1 to 1024");
        let rps = Some(Rate { per_second: 9, unit: RateUnit::RequestsPerSecond });
        assert!(text(trial(udp(64, rps))).starts_with("--rate does not go with udp-stream"));
        assert!(text(Trial { amount: Amount::Transactions(5), ..trial(stream(1)) }).contains("give --bytes"));
        let rr = Workload::UdpRr(UdpRr {
            request: ByteCount(1),
            response: ByteCount(1),
            in_flight: Some(200),
            rate: None,
            timeout_ns: 1,
            socket: UdpOptions::default(),
        });
        assert!(text(trial(rr)).contains("8 bytes"));
    }

    #[test]
    fn sense_passes_and_round_trips() {
        let rr = Workload::TcpRr(TcpRr {
            request: ByteCount(1),
            response: ByteCount(1),
            in_flight: Some(8),
            rate: None,
            socket: TcpOptions::default(),
        });
        for w in [stream(1), stream(131_072), udp(16, None), udp(65507, None), rr] {
            let t = trial(w);
            t.check().unwrap();
            let json = serde_json::to_string(&t).unwrap();
            assert_eq!(serde_json::from_str::<Trial>(&json).unwrap(), t);
        }
    }
}
