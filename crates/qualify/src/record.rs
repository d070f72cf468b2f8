//! Puts the record of a run together.

use std::collections::BTreeMap;
use std::time::Instant;

use linerate_model::qualification::{CaseResult, End, Ended, QUALIFICATION_SCHEMA, Qualification};

use crate::bench::Bench;
use crate::restore::{self, Values};
use crate::runner::Course;
use crate::station::Station;
use crate::trouble::Trouble;

pub(crate) struct Record {
    run: [u8; 16],
    began: Instant,
    started_at: String,
    seed: u64,
    level: linerate_model::qualification::Level,
    command: Vec<String>,
    ends: Option<(End, End)>,
    medium: String,
    before: Option<[Values; 2]>,
    cases: Vec<CaseResult>,
}

impl Record {
    pub(crate) fn begin(course: &Course) -> Result<Self, String> {
        let mut run = [0; 16];
        getrandom::fill(&mut run).map_err(|error| format!("draw a run id: {error}"))?;
        Ok(Self {
            run,
            began: Instant::now(),
            started_at: jiff::Timestamp::now().to_string(),
            seed: course.seed,
            level: course.selection.level,
            command: course.command.clone(),
            ends: None,
            medium: String::new(),
            before: None,
            cases: Vec::new(),
        })
    }

    /// Run id of the probes.
    pub(crate) fn probe_run(&self) -> u64 {
        self.run.iter().take(8).fold(0, |run, byte| (run << 8) | u64::from(*byte))
    }

    /// Takes down who is joined, as things are before the first case.
    pub(crate) fn describe(&mut self, bench: &mut Bench, known: &[Values; 2]) -> Result<(), Trouble> {
        let [dut, peer] = known;
        self.ends = Some((end(&mut bench.dut, dut)?, end(&mut bench.peer, peer)?));
        self.before = Some(known.clone());
        bench.medium.clone_into(&mut self.medium);
        Ok(())
    }

    /// Who is under test, once described, and the medium.
    pub(crate) fn described(&self) -> Option<(&End, &str)> {
        self.ends.as_ref().map(|(dut, _)| (dut, self.medium.as_str()))
    }

    pub(crate) fn add(&mut self, result: CaseResult) {
        self.cases.push(result);
    }

    /// The whole, with the settings that are not as they were.
    pub(crate) fn end(self, bench: &mut Bench, ended: Ended) -> Qualification {
        let (mut dut, mut peer) = self.ends.unwrap_or_else(|| (nobody(&bench.dut), nobody(&bench.peer)));
        if let Some([dut_before, peer_before]) = &self.before {
            dut.settings_after = differing(&mut bench.dut, dut_before);
            peer.settings_after = differing(&mut bench.peer, peer_before);
        }
        let mut journal = std::mem::take(&mut bench.dut.journal);
        journal.append(&mut bench.peer.journal);
        Qualification {
            schema: QUALIFICATION_SCHEMA.to_owned(),
            run: self.run.iter().map(|byte| format!("{byte:02x}")).collect(),
            started_at: self.started_at,
            duration_ns: crate::station::nanoseconds(self.began.elapsed()),
            command: self.command,
            seed: self.seed,
            level: self.level,
            dut,
            peer,
            medium: self.medium,
            emulator: None,
            calibration: bench.calibration,
            cases: self.cases,
            ended,
            journal,
        }
    }
}

/// What the link lent by the suite changes is no change.
fn differing(station: &mut Station, before: &Values) -> BTreeMap<String, String> {
    // A node that is gone can't be asked; how the run ended tells.
    let Ok(now) = restore::values(station) else { return BTreeMap::new() };
    restore::differences(before, &now)
        .into_iter()
        .filter(|(key, ..)| key != "link.addresses")
        .map(|(key, _, after)| (key, after))
        .collect()
}

fn end(station: &mut Station, settings: &Values) -> Result<End, Trouble> {
    let link = station.link().to_owned();
    Ok(End {
        node: station.node.url().clone(),
        environment: station.node.environment(Some(&link))?,
        identity: identity(station)?,
        link,
        settings_before: settings.clone(),
        settings_after: BTreeMap::new(),
    })
}

fn nobody(station: &Station) -> End {
    End {
        node: station.node.url().clone(),
        link: station.link().to_owned(),
        environment: linerate_model::environment::Environment::default(),
        settings_before: BTreeMap::new(),
        settings_after: BTreeMap::new(),
        identity: BTreeMap::new(),
    }
}

/// Facts of the device and its driver's module.
fn identity(station: &mut Station) -> Result<BTreeMap<String, String>, Trouble> {
    let mut facts = BTreeMap::new();
    let driver = station.driver().to_owned();
    let device = format!("/sys/class/net/{}/device", station.link());
    let module = format!("/sys/module/{driver}");
    let device_files = ["vendor", "device", "subsystem_vendor", "subsystem_device", "revision"];
    let files = device_files
        .iter()
        .map(|name| ((*name).to_owned(), format!("{device}/{name}")))
        .chain(["srcversion", "version"].map(|name| (format!("module.{name}"), format!("{module}/{name}"))));
    for (name, path) in files {
        if let Some(text) = station.read_file(&path)?
            && !text.trim().is_empty()
        {
            facts.insert(name, text.trim().to_owned());
        }
    }
    if !driver.is_empty() {
        facts.insert("driver".to_owned(), driver);
    }
    Ok(facts)
}
