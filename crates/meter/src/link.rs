//! The link under test: its counters, its queueing disciplines, its driver's statistics and its interrupts.

use std::collections::BTreeMap;
use std::sync::Arc;

use linerate_model::counters::{LinkCounters, LinkReading};
use linerate_sys::ethtool_ioctl::DriverStatistics;

use crate::counters64;
use crate::driver;
use crate::error::Result;
use crate::interrupts::{InterruptSample, LinkInterrupts};
use crate::qdisc::{self, QdiscSample};
use crate::rtnetlink::RouteSocket;

/// A link with all that is read of it kept open.
#[derive(Debug)]
pub(crate) struct LinkMeter {
    name: Arc<str>,
    index: u32,
    route: RouteSocket,
    driver: Option<DriverStatistics>,
    driver_names: Arc<[String]>,
    interrupts: Option<LinkInterrupts>,
}

/// A link's counters at one instant; what could not be read is `None` and has its note in the sample.
#[derive(Debug, Clone)]
pub(crate) struct LinkSample {
    name: Arc<str>,
    counters: Option<LinkCounters>,
    qdisc: Option<QdiscSample>,
    driver_names: Arc<[String]>,
    driver: Vec<u64>,
    pub(crate) interrupts: Option<InterruptSample>,
}

impl LinkMeter {
    /// Finds the link `name` in the calling thread's network namespace.
    pub(crate) fn open(name: &str, notes: &mut Vec<String>) -> Result<Self> {
        let mut route = RouteSocket::open()?;
        let index = route.index(name)?;
        let driver = driver::open(name).unwrap_or_else(|error| note(notes, error));
        let interrupts = LinkInterrupts::open(name, index).unwrap_or_else(|error| {
            notes.push(format!("interrupts of {name}: {error}"));
            None
        });
        let driver_names = driver.as_ref().map(DriverStatistics::names).unwrap_or_default().into();
        Ok(Self { name: name.into(), index, route, driver, driver_names, interrupts })
    }

    pub(crate) fn sample(&mut self, notes: &mut Vec<String>) -> LinkSample {
        let counters = self.route.statistics(self.index).and_then(|bytes| counters64::parse(&bytes));
        let qdisc = self.route.qdiscs(self.index).and_then(|qdiscs| QdiscSample::of(&qdiscs));
        LinkSample {
            name: Arc::clone(&self.name),
            counters: counters.map_or_else(|error| note(notes, error), Some),
            qdisc: qdisc.unwrap_or_else(|error| note(notes, error)),
            driver_names: Arc::clone(&self.driver_names),
            driver: self
                .driver
                .as_mut()
                .and_then(|driver| keep(driver.read().map_err(Into::into), notes))
                .unwrap_or_default(),
            interrupts: self.interrupts.as_mut().and_then(|interrupts| keep(interrupts.sample(), notes)),
        }
    }
}

/// What the link counted between two samples; `None` where its counters could not be read.
pub(crate) fn difference(
    earlier: &LinkSample,
    later: &LinkSample,
    notes: &mut Vec<String>,
) -> Option<LinkReading> {
    let counters = counters64::difference(earlier.counters.as_ref()?, later.counters.as_ref()?, notes);
    let qdisc = match (&earlier.qdisc, &later.qdisc) {
        (Some(earlier), Some(later)) => qdisc::difference(earlier, later, notes),
        _ => None,
    };
    let driver = if earlier.driver.len() == later.driver.len() {
        driver::difference(&later.driver_names, &earlier.driver, &later.driver, notes)
    } else {
        BTreeMap::new()
    };
    Some(LinkReading { name: later.name.to_string(), counters, qdisc, driver })
}

fn keep<T>(result: Result<T>, notes: &mut Vec<String>) -> Option<T> {
    result.map_or_else(|error| note(notes, error), Some)
}

fn note<T>(notes: &mut Vec<String>, error: crate::MeterError) -> Option<T> {
    notes.push(error.to_string());
    None
}
