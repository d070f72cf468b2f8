//! The bench of a case: both stations, what they find, and the means that cases share.

mod flows;
mod lane;
mod load;
mod running;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_model::bench::EchoSpec;
use linerate_model::qualification::{Calibration, Evidence, Measured, ReasonCode};
use linerate_model::trial::Side;

use crate::calibrate::slowness;
use crate::finding::{Finding, Findings};
use crate::frame::{Hosts, Version};
use crate::random::Rng;
use crate::station::{Station, nanoseconds};
use crate::trouble::Trouble;
use crate::watch::Watch;

pub use flows::{FlowAsk, FlowPair};
pub use lane::{Arrived, Lane};
pub use running::Running;

/// Which way frames go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the dut to the peer: the dut's transmit path is judged.
    ToPeer,
    /// From the peer to the dut: the dut's receive path is judged.
    ToDut,
}

impl Way {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::ToPeer, Self::ToDut];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ToPeer => "dut to peer",
            Self::ToDut => "peer to dut",
        }
    }
}

/// Both stations, and what a case finds with them.
#[derive(Debug)]
pub struct Bench {
    /// The end under test.
    pub dut: Station,
    /// The neutral observer.
    pub peer: Station,
    pub(crate) watch: Watch,
    pub(crate) run: u64,
    /// What joins the ends.
    pub(crate) medium: String,
    pub(crate) seed: u64,
    pub(crate) calibration: Option<Calibration>,
    /// Time limits are loosened by this, for kernels with debugging (KSFT_MACHINE_SLOW).
    pub(crate) patience: f64,
    /// Set while a case is judged.
    pub(crate) judging: Option<Arc<AtomicBool>>,
    pub(crate) variant: String,
    pub(crate) rng: Rng,
    pub(crate) findings: Findings,
    pub(crate) allowed_growth: Vec<String>,
    pub(crate) allowed_log: Vec<String>,
    next_stream: u32,
}

impl Bench {
    pub(crate) fn new(dut: Station, peer: Station, watch: Watch, seed: u64, run: u64) -> Self {
        Self {
            dut,
            peer,
            watch,
            run,
            medium: String::new(),
            seed,
            calibration: None,
            patience: 1.0,
            judging: None,
            variant: String::new(),
            rng: Rng::new(seed, ""),
            findings: Findings::default(),
            allowed_growth: Vec::new(),
            allowed_log: Vec::new(),
            next_stream: 0,
        }
    }

    pub(crate) fn set_judging(&self, on: bool) {
        if let Some(judging) = &self.judging {
            judging.store(on, Ordering::SeqCst);
        }
    }

    /// Makes the bench clean for a variant of a case.
    pub(crate) fn begin(&mut self, case: &str, variant: &str) {
        variant.clone_into(&mut self.variant);
        self.rng = Rng::new(self.seed, &format!("{case}.{variant}"));
        self.findings = Findings::default();
        self.allowed_growth.clear();
        self.allowed_log.clear();
        for station in [&mut self.dut, &mut self.peer] {
            case.clone_into(&mut station.case);
            station.ring = crate::capture::Ring::default();
        }
    }

    /// The variant to judge: one of those that the case names.
    pub fn variant(&self) -> &str {
        &self.variant
    }

    /// What joins the ends: `veth`, `hub`, `cable` ...
    pub fn medium(&self) -> &str {
        &self.medium
    }

    /// Seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Random choices of this variant.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Run id of this run's probes.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// A stream number that no other probe of this run has.
    pub fn stream(&mut self) -> u32 {
        self.next_stream += 1;
        self.next_stream
    }

    /// How much slower the slower end is than what counts are made for; 1 or more. `count / scale` frames take the time
    /// that was meant.
    pub fn scale(&self) -> f64 {
        self.calibration.as_ref().map_or(1.0, slowness)
    }

    /// What the slower end can do.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// A count that follows the slower end, at least `least`.
    pub fn count(&self, count: usize, least: usize) -> usize {
        ((count as f64 / self.scale()) as usize).clamp(least.min(count), count)
    }

    /// Frame lengths from `shortest` to `longest`: every one on a fast machine, fewer on a slow one, but always those next to
    /// powers of two and both ends.
    pub fn lengths(&self, shortest: usize, longest: usize) -> Vec<usize> {
        let step = self.scale().ceil() as usize;
        let near_power = |length: usize| {
            [length.saturating_sub(1), length, length + 1].iter().any(|near| near.is_power_of_two())
        };
        let kept = |length: &usize| {
            (length - shortest).is_multiple_of(step)
                || near_power(*length)
                || length - shortest < 8
                || longest - length < 8
        };
        (shortest..=longest).filter(kept).collect()
    }

    /// Waiting time that follows the slower end.
    pub fn patient(&self, time: Duration) -> Duration {
        time.mul_f64(self.scale().min(50.0) * self.patience)
    }

    /// A station.
    pub fn station(&mut self, side: Side) -> &mut Station {
        match side {
            Side::Dut => &mut self.dut,
            Side::Peer => &mut self.peer,
        }
    }

    /// The sender and the receiver of a way.
    pub fn ends(&mut self, way: Way) -> (&mut Station, &mut Station) {
        match way {
            Way::ToPeer => (&mut self.dut, &mut self.peer),
            Way::ToDut => (&mut self.peer, &mut self.dut),
        }
    }

    /// Hardware addresses of a way, with IP addresses that nobody has.
    pub fn hosts(&self, way: Way) -> Hosts {
        let (dut, peer) = (self.dut.mac(), self.peer.mac());
        match way {
            Way::ToPeer => Hosts::nobody(peer, dut),
            Way::ToDut => Hosts::nobody(dut, peer),
        }
    }

    /// Hardware and IP addresses of a way: the links' own, so that the receiver's stack takes what is sent.
    pub fn real_hosts(&self, way: Way) -> Hosts {
        let mut hosts = self.hosts(way);
        let (from, to) = match way {
            Way::ToPeer => (&self.dut, &self.peer),
            Way::ToDut => (&self.peer, &self.dut),
        };
        hosts.from_v4 = from.v4.unwrap_or(hosts.from_v4);
        hosts.to_v4 = to.v4.unwrap_or(hosts.to_v4);
        hosts.from_v6 = from.v6.unwrap_or(hosts.from_v6);
        hosts.to_v6 = to.v6.unwrap_or(hosts.to_v6);
        hosts
    }

    /// Something that must hold does not.
    pub fn fail(&mut self, code: ReasonCode, text: impl Into<String>) {
        self.findings.add(Finding { code, text: text.into(), evidence: None });
    }

    /// The same with the input that shows it.
    pub fn fail_with(&mut self, code: ReasonCode, text: impl Into<String>, evidence: Evidence) {
        self.findings.add(Finding { code, text: text.into(), evidence: Some(evidence) });
    }

    /// Adds what a model of [`crate::must`] found.
    pub fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.findings.add(finding));
    }

    /// Whether nothing is wrong so far.
    pub fn is_clean(&self) -> bool {
        self.findings.is_clean()
    }

    /// Worth knowing, no reason to fail.
    pub fn warn(&mut self, text: impl Into<String>) {
        const MOST: usize = 20;
        if self.findings.warnings.len() < MOST {
            self.findings.warnings.push(text.into());
        }
    }

    /// A number.
    pub fn measure(&mut self, name: impl Into<String>, value: f64, unit: impl Into<String>) {
        self.findings.measured.push(Measured { name: name.into(), value, unit: unit.into() });
    }

    /// These error counters may grow during this case: `dut.link.rx_length_errors`, with `*` for any text.
    pub fn allow_growth(&mut self, counters: &[&str]) {
        self.allowed_growth.extend(counters.iter().map(|name| (*name).to_owned()));
    }

    /// Kernel log lines with this text are asked for by this case: `Link is Down`.
    pub fn allow_log(&mut self, texts: &[&str]) {
        self.allowed_log.extend(texts.iter().map(|text| (*text).to_owned()));
    }

    /// Goes on, or says that the time is over or the run is to stop. For loops that ask no node.
    ///
    /// # Errors
    /// [`Trouble::Late`] or [`Trouble::Stopped`].
    pub fn check(&self) -> Result<(), Trouble> {
        self.watch.check()
    }

    /// Waits, unless something ends the case meanwhile.
    ///
    /// # Errors
    /// [`Trouble::Late`] or [`Trouble::Stopped`].
    pub fn sleep(&self, time: Duration) -> Result<(), Trouble> {
        self.watch.sleep(time)
    }

    /// Makes the peer a neutral observer (ground rule G6): nothing is merged, verified or taken out there. Put back after the
    /// case.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn neutral_peer(&mut self) -> Result<(), Trouble> {
        let still_on = self.peer.switch_off(&["gro", "lro", "rx", "rxvlan", "rx-gro-hw"])?;
        if !still_on.is_empty() {
            self.warn(format!("the peer's {} cannot be switched off", still_on.join(", ")));
        }
        Ok(())
    }

    /// Single frames can be judged at the dut (ground rule G10): nothing is merged there. Put back after the case.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn unmerged_dut(&mut self) -> Result<(), Trouble> {
        let still_on = self.dut.switch_off(&["gro", "lro", "rx-gro-hw"])?;
        if still_on.is_empty() {
            return Ok(());
        }
        Err(Trouble::not_shown(format!("the dut's {} cannot be switched off", still_on.join(", "))))
    }

    /// Runs something under a setting, then puts the old value back. A refusal to set it is a skip.
    ///
    /// # Errors
    /// Whatever `inner` gives, and as [`Station::ask`].
    pub fn with_setting<T>(
        &mut self,
        side: Side,
        key: &str,
        value: &str,
        inner: impl FnOnce(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let Some(before) = self.station(side).setting(key)? else {
            return Err(Trouble::no_feature(format!("{} has no {key}", self.station(side).name())));
        };
        if before == value {
            return inner(self);
        }
        if let Err(why) = self.station(side).try_set(key, value)? {
            let name = self.station(side).name();
            return Err(Trouble::no_feature(format!("{name}: {key} cannot be set to {value}: {why}")));
        }
        let outcome = inner(self)?;
        if let Err(why) = self.station(side).try_set(key, &before)? {
            self.fail(ReasonCode::ConfigLost, format!("{key} does not go back to {before}: {why}"));
        }
        Ok(outcome)
    }

    /// Addresses of both ends for an IP version: dut, peer.
    ///
    /// # Errors
    /// Skip where one has none.
    pub fn addresses(&self, version: Version) -> Result<(std::net::IpAddr, std::net::IpAddr), Trouble> {
        match (self.dut.address(version), self.peer.address(version)) {
            (Some(dut), Some(peer)) => Ok((dut, peer)),
            _ => Err(Trouble::not_shown(format!("the links have no IP{} addresses", version.word()))),
        }
    }

    /// Sends echo requests of these payload sizes from one side to the other; any that is not answered with the same bytes
    /// is a fault.
    ///
    /// # Errors
    /// As [`Station::ask`]; a skip where the links have no addresses of this version.
    pub fn ping(&mut self, from: Side, version: Version, payloads_bytes: &[u32]) -> Result<(), Trouble> {
        let (dut, peer) = self.addresses(version)?;
        let to = if from == Side::Dut { peer } else { dut };
        let timeout_ns = nanoseconds(self.patient(Duration::from_secs(1)));
        let station = self.station(from);
        let spec = EchoSpec {
            to,
            link: Some(station.link().to_owned()),
            payloads_bytes: payloads_bytes.to_vec(),
            rounds: 1,
            in_flight: 1,
            gap_ns: 0,
            timeout_ns,
            dont_fragment: false,
            seed: 1,
        };
        let report = station.echo(spec)?;
        let who = format!("{} to {to}", station.name());
        if report.lost > 0 {
            let lost = &report.lost_bytes;
            let text = format!("{} of {} pings {who} unanswered (bytes {lost:?})", report.lost, report.sent);
            self.fail(ReasonCode::Loss, text);
        }
        if let Some((bytes, offset)) = report.first_wrong {
            let text = format!("{} pings {who} wrong; first of {bytes} bytes at {offset}", report.wrong);
            self.fail(ReasonCode::Data, text);
        }
        if report.duplicates > 0 {
            self.fail(ReasonCode::Dup, format!("{} pings {who} answered twice", report.duplicates));
        }
        if let Some((bytes, errno)) = report.refused.first() {
            let words = nix::errno::Errno::from_raw(*errno);
            self.fail(ReasonCode::Refused, format!("ping {who} of {bytes} bytes: {words}"));
        }
        Ok(())
    }
}
