//! What a user asks for: workloads and lists of parameter values. Every combination becomes a trial.

use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::trial::{Amount, Family, Pinning, SettingLevel, Trial, TrialError};
use crate::units::{ByteCount, Rate};
use crate::workload::{
    MAX_UDP_PAYLOAD, ProfileRun, SendMethod, TcpBidir, TcpCrr, TcpOptions, TcpRr, TcpStream, UdpOptions,
    UdpRr, UdpStream, Workload, WorkloadKind,
};

/// Bytes a TCP send call where none are asked for.
pub const DEFAULT_TCP_SIZE: ByteCount = ByteCount(128 << 10);
/// After this long a UDP request counts as lost, where nothing else is asked for: 200 ms.
pub const DEFAULT_UDP_TIMEOUT_NS: u64 = 200_000_000;

/// Workloads with lists of values; an empty list is the default value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Experiment {
    /// Patterns.
    pub workloads: Vec<WorkloadKind>,
    /// Profiles of the pattern of that name.
    #[serde(skip)]
    pub profiles: Vec<Profile>,
    /// IP versions; empty is IPv4 where both ends have it, else IPv6.
    pub families: Vec<Family>,
    /// Bytes a call of streams.
    pub sizes: Vec<ByteCount>,
    /// Peers at the same time.
    pub peers: Vec<u32>,
    /// Parallel streams.
    pub streams: Vec<u32>,
    /// Send methods of TCP streams.
    pub sends: Vec<SendMethod>,
    /// Socket buffers.
    pub buffers: Vec<ByteCount>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_MAXSEG`.
    pub mss: Vec<u32>,
    /// Congestion controls.
    pub congestions: Vec<String>,
    /// Request sizes.
    pub requests: Vec<ByteCount>,
    /// Response sizes.
    pub responses: Vec<ByteCount>,
    /// Requests outstanding on each connection.
    pub in_flights: Vec<u32>,
    /// Rates of streams (bits, or packets with pps).
    pub stream_rates: Vec<Rate>,
    /// Rates of request/response.
    pub request_rates: Vec<Rate>,
    /// TOS or traffic class.
    pub tos: Option<u8>,
    /// Both directions of tcp-bidir over one connection.
    pub one_connection: bool,
    /// What ends a stream trial; `None` is [`Timing::duration_ns`].
    pub bytes: Option<u64>,
    /// What ends a request/response trial; `None` is [`Timing::duration_ns`].
    pub transactions: Option<u64>,
    /// Times.
    pub timing: Timing,
    /// Seed of the payload generator; `None` is no check of payload.
    pub verify_seed: Option<u64>,
    /// CPUs for the traffic threads.
    pub pin: Pinning,
    /// Settings with the values that each takes.
    pub settings: Vec<SettingFactor>,
}

/// A setting as a factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingFactor {
    /// Node and setting: `dut.tso`, `both.mtu`.
    pub key: String,
    /// Its values, at least one.
    pub values: Vec<String>,
}

/// Times of each trial, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Length of the window.
    pub duration_ns: u64,
    /// Traffic before it.
    pub warmup_ns: u64,
    /// Length of an interval within it; `None` is no intervals.
    pub interval_ns: Option<u64>,
}

impl Default for Timing {
    fn default() -> Self {
        Self { duration_ns: 5_000_000_000, warmup_ns: 500_000_000, interval_ns: None }
    }
}

/// Combinations that a run leaves out, since they can't be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The levels that they have in common, as `dut.rx-usecs=50`.
    pub levels: String,
    /// How many they are.
    pub combinations: usize,
    /// Why: the node's words.
    pub reason: String,
}

/// What is known of the path once the nodes are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathFacts {
    /// IP version.
    pub family: Family,
    /// Smallest MTU of the links at both ends, bytes.
    pub mtu_bytes: u32,
}

impl PathFacts {
    /// Largest UDP payload that goes in one packet here.
    pub fn largest_datagram(self) -> ByteCount {
        let headers = match self.family {
            Family::V4 => 28,
            Family::V6 => 48,
        };
        ByteCount(u64::from(self.mtu_bytes.saturating_sub(headers)).clamp(16, MAX_UDP_PAYLOAD))
    }

    /// The same while these settings are in force: an MTU that is set on one end bounds the path.
    fn with(self, settings: &[SettingLevel]) -> Self {
        let mtu = |side: &str| {
            let level = settings.iter().find(|s| s.key == format!("{side}.mtu"))?;
            level.value.parse::<u32>().ok()
        };
        let ends = [mtu("dut").or_else(|| mtu("both")), mtu("peer").or_else(|| mtu("both"))];
        let mtu_bytes = match ends {
            [Some(dut), Some(peer)] => dut.min(peer),
            [Some(one), None] | [None, Some(one)] => one.min(self.mtu_bytes),
            [None, None] => self.mtu_bytes,
        };
        Self { mtu_bytes, ..self }
    }
}

impl Experiment {
    /// Every combination once, as a trial.
    ///
    /// # Errors
    /// The first combination that makes no sense, or an option that no workload asked for has a use for.
    pub fn combinations(&self, paths: &[PathFacts]) -> Result<Vec<Trial>, TrialError> {
        self.check_options_are_used()?;
        let mut trials = Vec::new();
        for settings in self.setting_levels() {
            for path in paths.iter().map(|path| path.with(&settings)) {
                for &kind in &self.workloads {
                    for peers in or_default(&self.peers, 1) {
                        for streams in or_default(&self.streams, 1) {
                            for workload in self.workloads_of(kind, path) {
                                let trial = self.trial(workload, path.family, streams, &settings);
                                trials.push(Trial { peers, ..trial });
                            }
                        }
                    }
                }
            }
        }
        trials.iter().try_for_each(Trial::check)?;
        Ok(trials)
    }

    /// Every combination of settings; one that is empty where there are none.
    fn setting_levels(&self) -> Vec<Vec<SettingLevel>> {
        self.settings.iter().fold(vec![Vec::new()], |rows, factor| {
            let with = |row: &Vec<SettingLevel>, value: &String| {
                let level = SettingLevel { key: factor.key.clone(), value: value.clone() };
                row.iter().cloned().chain([level]).collect()
            };
            rows.iter().flat_map(|row| factor.values.iter().map(move |value| with(row, value))).collect()
        })
    }

    fn trial(&self, workload: Workload, family: Family, streams: u32, settings: &[SettingLevel]) -> Trial {
        let (count, streams) = if let Workload::Profile(run) = &workload {
            (Some(Amount::Whole), run.profile.strands())
        } else if workload.kind().is_transactional() {
            (self.transactions.map(Amount::Transactions), streams)
        } else {
            (self.bytes.map(Amount::Bytes), streams)
        };
        Trial {
            family,
            peers: 1,
            streams,
            amount: count.unwrap_or(Amount::DurationNs(self.timing.duration_ns)),
            warmup_ns: if count.is_some() { 0 } else { self.timing.warmup_ns },
            interval_ns: self.timing.interval_ns,
            verify_seed: self.verify_seed,
            pin: self.pin.clone(),
            repeat: 0,
            settings: settings.to_vec(),
            workload,
        }
    }

    fn workloads_of(&self, kind: WorkloadKind, path: PathFacts) -> Vec<Workload> {
        let mut all = Vec::new();
        match kind {
            WorkloadKind::TcpStream | WorkloadKind::TcpReverse | WorkloadKind::TcpBidir => {
                for stream in self.tcp_streams() {
                    all.push(match kind {
                        WorkloadKind::TcpStream => Workload::TcpStream(stream),
                        WorkloadKind::TcpReverse => Workload::TcpReverse(stream),
                        _ => Workload::TcpBidir(TcpBidir { stream, one_connection: self.one_connection }),
                    });
                }
            }
            WorkloadKind::TcpRr => {
                for (request, response, rate) in self.exchanges() {
                    for in_flight in optional(&self.in_flights) {
                        for socket in self.tcp_options() {
                            all.push(Workload::TcpRr(TcpRr { request, response, in_flight, rate, socket }));
                        }
                    }
                }
            }
            WorkloadKind::TcpCrr => {
                for (request, response, rate) in self.exchanges() {
                    for socket in self.tcp_options() {
                        all.push(Workload::TcpCrr(TcpCrr { request, response, rate, socket }));
                    }
                }
            }
            WorkloadKind::UdpStream => {
                for size in or_default(&self.sizes, path.largest_datagram()) {
                    for rate in optional(&self.stream_rates) {
                        for socket in self.udp_options() {
                            all.push(Workload::UdpStream(UdpStream { size, rate, socket }));
                        }
                    }
                }
            }
            WorkloadKind::Profile => {
                let profile = |p: &Profile| Workload::Profile(ProfileRun { profile: p.clone() });
                all.extend(self.profiles.iter().map(profile));
            }
            WorkloadKind::UdpRr => {
                for (request, response, rate) in self.exchanges() {
                    for in_flight in optional(&self.in_flights) {
                        for socket in self.udp_options() {
                            let timeout_ns = DEFAULT_UDP_TIMEOUT_NS;
                            all.push(Workload::UdpRr(UdpRr {
                                request,
                                response,
                                in_flight,
                                rate,
                                timeout_ns,
                                socket,
                            }));
                        }
                    }
                }
            }
        }
        all
    }

    fn tcp_streams(&self) -> Vec<TcpStream> {
        let mut all = Vec::new();
        for size in or_default(&self.sizes, DEFAULT_TCP_SIZE) {
            for send in or_default(&self.sends, SendMethod::default()) {
                for rate in optional(&self.stream_rates) {
                    for socket in self.tcp_options() {
                        all.push(TcpStream { size, send, rate, socket });
                    }
                }
            }
        }
        all
    }

    fn exchanges(&self) -> Vec<(ByteCount, ByteCount, Option<Rate>)> {
        let mut all = Vec::new();
        for request in or_default(&self.requests, ByteCount(1)) {
            for response in or_default(&self.responses, ByteCount(1)) {
                for rate in optional(&self.request_rates) {
                    all.push((request, response, rate));
                }
            }
        }
        all
    }

    fn tcp_options(&self) -> Vec<TcpOptions> {
        let mut all = Vec::new();
        for buffer_bytes in optional(&self.buffers) {
            for mss_bytes in optional(&self.mss) {
                for congestion in optional(&self.congestions) {
                    all.push(TcpOptions {
                        buffer_bytes,
                        nodelay: self.nodelay,
                        mss_bytes,
                        congestion,
                        tos: self.tos,
                    });
                }
            }
        }
        all
    }

    fn udp_options(&self) -> Vec<UdpOptions> {
        optional(&self.buffers)
            .into_iter()
            .map(|buffer_bytes| UdpOptions { buffer_bytes, tos: self.tos })
            .collect()
    }

    /// An option that no workload asked for has a use for is a mistake to be told, not to be passed over.
    fn check_options_are_used(&self) -> Result<(), TrialError> {
        let any = |f: fn(WorkloadKind) -> bool| self.workloads.iter().copied().any(f);
        let stream = |k: WorkloadKind| !k.is_transactional();
        // A profile says all this itself.
        let tcp = |k: WorkloadKind| !k.is_udp() && k != WorkloadKind::Profile;
        let exchange = |k: WorkloadKind| k.is_transactional() && k != WorkloadKind::Profile;
        let bulk_tcp = |k: WorkloadKind| !k.is_udp() && !k.is_transactional();
        let in_flight = |k| matches!(k, WorkloadKind::TcpRr | WorkloadKind::UdpRr);
        let bidir = |k| k == WorkloadKind::TcpBidir;
        let checks: [(&'static str, bool, bool, &'static str); 12] = [
            ("--size", !self.sizes.is_empty(), any(stream), "request/response has --request and --response"),
            ("--send", !self.sends.is_empty(), any(bulk_tcp), "only TCP streams choose how they send"),
            ("--nodelay", self.nodelay, any(tcp), "it is an option of TCP"),
            ("--mss", !self.mss.is_empty(), any(tcp), "it is an option of TCP"),
            ("--congestion", !self.congestions.is_empty(), any(tcp), "it is an option of TCP"),
            ("--request", !self.requests.is_empty(), any(exchange), "streams have --size"),
            ("--response", !self.responses.is_empty(), any(exchange), "streams have --size"),
            ("--in-flight", !self.in_flights.is_empty(), any(in_flight), "it goes with tcp-rr and udp-rr"),
            (
                "--rate in bits or packets",
                !self.stream_rates.is_empty(),
                any(stream),
                "request/response takes rps",
            ),
            ("--rate in requests", !self.request_rates.is_empty(), any(exchange), "streams take bits or pps"),
            ("--one-connection", self.one_connection, any(bidir), "it goes with tcp-bidir"),
            ("--bytes", self.bytes.is_some(), any(stream), "request/response has --transactions"),
        ];
        for (option, given, used, why) in checks {
            if given && !used {
                return Err(TrialError::NotWith {
                    option,
                    workload: self.workloads.first().map_or("this", |k| k.name()),
                    why,
                });
            }
        }
        if self.transactions.is_some() && !any(exchange) {
            let workload = self.workloads.first().map_or("this", |k| k.name());
            return Err(TrialError::NotWith {
                option: "--transactions",
                workload,
                why: "streams have --bytes",
            });
        }
        Ok(())
    }
}

fn or_default<T: Clone>(values: &[T], default: T) -> Vec<T> {
    if values.is_empty() { vec![default] } else { values.to_vec() }
}

fn optional<T: Clone>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().cloned().map(Some).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: PathFacts = PathFacts { family: Family::V4, mtu_bytes: 1500 };

    #[test]
    fn every_combination_once() {
        let experiment = Experiment {
            workloads: vec![WorkloadKind::TcpStream, WorkloadKind::UdpStream, WorkloadKind::TcpRr],
            sizes: vec![ByteCount(64), ByteCount(128)],
            streams: vec![1, 4],
            ..Experiment::default()
        };
        let trials =
            experiment.combinations(&[ETHERNET, PathFacts { family: Family::V6, mtu_bytes: 1500 }]).unwrap();
        assert_eq!(trials.len(), 2 * 2 * (2 + 2 + 1));
        let distinct: std::collections::BTreeSet<_> =
            trials.iter().map(|t| serde_json::to_string(t).unwrap()).collect();
        assert_eq!(distinct.len(), trials.len());
    }

    #[test]
    fn udp_fills_one_packet_by_default() {
        assert_eq!(ETHERNET.largest_datagram(), ByteCount(1472));
        assert_eq!(PathFacts { family: Family::V6, mtu_bytes: 1500 }.largest_datagram(), ByteCount(1452));
        assert_eq!(PathFacts { family: Family::V4, mtu_bytes: 65536 }.largest_datagram(), ByteCount(65507));
    }

    #[test]
    fn settings_are_factors_and_an_mtu_bounds_what_fills_a_packet() {
        let factor = |key: &str, values: &[&str]| SettingFactor {
            key: key.to_owned(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        };
        let experiment = Experiment {
            workloads: vec![WorkloadKind::UdpStream],
            settings: vec![factor("both.mtu", &["576", "1500"]), factor("dut.tso", &["on", "off"])],
            ..Experiment::default()
        };
        let trials = experiment.combinations(&[ETHERNET]).unwrap();
        let seen: Vec<(String, String)> = trials
            .iter()
            .map(|t| (t.workload.size_text(), t.settings.iter().map(|s| s.value.as_str()).collect()))
            .collect();
        let expected = [("548", "576on"), ("548", "576off"), ("1472", "1500on"), ("1472", "1500off")];
        assert_eq!(seen, expected.map(|(size, levels)| (size.to_owned(), levels.to_owned())));
    }

    #[test]
    fn an_option_without_a_use_is_refused() {
        let rr = Experiment {
            workloads: vec![WorkloadKind::TcpRr],
            sizes: vec![ByteCount(9)],
            ..Experiment::default()
        };
        assert!(rr.combinations(&[ETHERNET]).unwrap_err().to_string().contains("--request and --response"));
        let udp = Experiment {
            workloads: vec![WorkloadKind::UdpStream],
            sends: vec![SendMethod::Sendfile],
            ..Experiment::default()
        };
        assert!(udp.combinations(&[ETHERNET]).is_err());
        let mixed = Experiment {
            workloads: vec![WorkloadKind::UdpStream, WorkloadKind::TcpStream],
            sends: vec![SendMethod::Sendfile],
            ..Experiment::default()
        };
        assert_eq!(mixed.combinations(&[ETHERNET]).unwrap().len(), 2);
    }
}
