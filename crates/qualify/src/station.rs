//! One end of the link with its agent: everything that a case may ask of it.

mod counters;
mod settings;
mod traffic;

pub use counters::changes;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use linerate_agent::node::{Node, NodeFailure};
use linerate_model::bench::frame::MacAddress;
use linerate_model::bench::{BenchReply, BenchRequest, DeviceAct, Handle, LinkAct, PortOptions};
use linerate_model::environment::LinkInfo;
use linerate_model::qualification::JournalEntry;
use linerate_model::trial::Side;

use crate::capture::Ring;
use crate::case::Privilege;
use crate::frame::Version;
use crate::trouble::Trouble;
use crate::watch::Watch;

/// An open packet socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    pub(crate) handle: Handle,
    pub(crate) side: Side,
}

/// What a node said when it was asked for something that it may refuse.
pub type Answer = Result<BenchReply, String>;

/// One end of the link.
#[derive(Debug)]
pub struct Station {
    pub(crate) side: Side,
    pub(crate) node: Node,
    pub(crate) facts: LinkInfo,
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: Option<Ipv6Addr>,
    /// Addresses that the suite gives the link, since it has none.
    pub(crate) lent: Vec<(IpAddr, u8)>,
    pub(crate) watch: Watch,
    pub(crate) ring: Ring,
    pub(crate) journal: Vec<JournalEntry>,
    pub(crate) case: String,
    /// The most that its agent may do.
    pub(crate) privilege: Privilege,
}

impl Station {
    pub(crate) fn new(side: Side, node: Node, facts: LinkInfo, watch: Watch) -> Self {
        Self {
            side,
            node,
            facts,
            v4: None,
            v6: None,
            lent: Vec::new(),
            watch,
            ring: Ring::default(),
            journal: Vec::new(),
            case: String::new(),
            privilege: Privilege::None,
        }
    }

    /// Dut or peer.
    pub fn side(&self) -> Side {
        self.side
    }

    /// `dut` or `peer`.
    pub fn name(&self) -> &'static str {
        match self.side {
            Side::Dut => "dut",
            Side::Peer => "peer",
        }
    }

    /// The link's name.
    pub fn link(&self) -> &str {
        &self.facts.name
    }

    /// The link as it was before the first case.
    pub fn facts(&self) -> &LinkInfo {
        &self.facts
    }

    /// The link's hardware address before the first case; zeros where it has none.
    pub fn mac(&self) -> MacAddress {
        self.facts.mac.as_deref().and_then(parse_mac).unwrap_or_default()
    }

    /// The link's MTU before the first case, bytes.
    pub fn mtu(&self) -> u32 {
        self.facts.mtu
    }

    /// The driver; empty where the kernel does not tell.
    pub fn driver(&self) -> &str {
        self.facts.driver.as_deref().unwrap_or_default()
    }

    /// Whether frames never see a wire: a veth end.
    pub fn is_veth(&self) -> bool {
        self.driver() == "veth" || self.facts.kind.as_deref() == Some("veth")
    }

    /// Its IPv4 address for the test.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.v4
    }

    /// Its IPv6 address for the test.
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.v6
    }

    /// Its address of an IP version.
    pub fn address(&self, version: Version) -> Option<IpAddr> {
        match version {
            Version::V4 => self.v4.map(IpAddr::V4),
            Version::V6 => self.v6.map(IpAddr::V6),
        }
    }

    /// Asks the node for something; a refusal is trouble.
    ///
    /// # Errors
    /// What the node said, that it is gone, or that the case's time is over.
    pub fn ask(&mut self, request: &BenchRequest) -> Result<BenchReply, Trouble> {
        self.watch.check()?;
        self.ask_anyway(request)
    }

    /// Asks also when the case's time is over, or the run is to stop: to put things back.
    pub(crate) fn ask_anyway(&mut self, request: &BenchRequest) -> Result<BenchReply, Trouble> {
        Ok(self.node.bench(request)?)
    }

    /// Asks for something that the node may refuse: then its words.
    ///
    /// # Errors
    /// That the node is gone, or that the case's time is over.
    pub fn try_ask(&mut self, request: &BenchRequest) -> Result<Answer, Trouble> {
        match self.ask(request) {
            Ok(reply) => Ok(Ok(reply)),
            Err(Trouble::Refused(error)) => Ok(Err(match error.cause {
                NodeFailure::Refused { reason, .. } => reason,
                other => other.to_string(),
            })),
            Err(other) => Err(other),
        }
    }

    /// Opens a packet socket on the link under test, unless `options` names another link.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn open_port(&mut self, mut options: PortOptions) -> Result<Port, Trouble> {
        if options.link.is_empty() {
            self.facts.name.clone_into(&mut options.link);
        }
        match self.ask(&BenchRequest::OpenPort(options))? {
            BenchReply::Opened(handle) => Ok(Port { handle, side: self.side }),
            other => Err(unexpected("open a port", &other)),
        }
    }

    /// Does something to links.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn act(&mut self, act: LinkAct) -> Result<(), Trouble> {
        self.note_act(&act);
        self.ask(&BenchRequest::Link(act)).map(drop)
    }

    /// Does something to links that the kernel may refuse: then its words.
    ///
    /// # Errors
    /// As [`Station::try_ask`].
    pub fn try_act(&mut self, act: LinkAct) -> Result<Result<(), String>, Trouble> {
        self.note_act(&act);
        Ok(self.try_ask(&BenchRequest::Link(act))?.map(drop))
    }

    /// Takes the link under test down or up.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn set_up(&mut self, up: bool) -> Result<(), Trouble> {
        let link = self.facts.name.clone();
        self.act(LinkAct::SetUp { link, up })
    }

    /// Waits until the link under test has carrier; its words where it does not get it in time.
    ///
    /// # Errors
    /// As [`Station::try_ask`].
    pub fn await_carrier(&mut self, limit: Duration) -> Result<Result<(), String>, Trouble> {
        let link = self.facts.name.clone();
        self.try_act(LinkAct::AwaitCarrier { link, limit_ns: nanoseconds(limit) })
    }

    /// Does something to the device behind the link.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn device(&mut self, act: DeviceAct) -> Result<BenchReply, Trouble> {
        self.ask(&BenchRequest::Device(act))
    }

    /// Does something to the device that the kernel may refuse: then its words.
    ///
    /// # Errors
    /// As [`Station::try_ask`].
    pub fn try_device(&mut self, act: DeviceAct) -> Result<Answer, Trouble> {
        self.try_ask(&BenchRequest::Device(act))
    }

    /// Content of a small file of /proc or /sys; `None` where there is none.
    ///
    /// # Errors
    /// As [`Station::try_ask`].
    pub fn read_file(&mut self, path: &str) -> Result<Option<String>, Trouble> {
        match self.try_ask(&BenchRequest::ReadFile { path: path.to_owned() })? {
            Ok(BenchReply::Text(text)) => Ok(Some(text)),
            Ok(other) => Err(unexpected("read a file", &other)),
            Err(_) => Ok(None),
        }
    }

    /// Writes a small file of /proc or /sys; the case puts the old content back itself.
    ///
    /// # Errors
    /// As [`Station::try_ask`].
    pub fn write_file(&mut self, path: &str, text: &str) -> Result<Result<(), String>, Trouble> {
        let request = BenchRequest::WriteFile { path: path.to_owned(), text: text.to_owned() };
        Ok(self.try_ask(&request)?.map(drop))
    }

    /// The links of the node now.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn links(&mut self) -> Result<Vec<LinkInfo>, Trouble> {
        self.watch.check()?;
        Ok(self.node.links()?)
    }

    /// The link under test now; `None` where it is gone.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn link_now(&mut self) -> Result<Option<LinkInfo>, Trouble> {
        let name = self.facts.name.clone();
        Ok(self.links()?.into_iter().find(|link| link.name == name))
    }

    /// What is told of the link under test now, its driver and speed included; `None` where it is gone.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn describe(&mut self) -> Result<Option<LinkInfo>, Trouble> {
        let name = self.facts.name.clone();
        match self.node.environment(Some(&name)) {
            Ok(environment) => Ok(environment.link),
            Err(error) if error.is_refusal() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Closes a port, generator, tally, flow or socket.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn close(&mut self, handle: Handle) -> Result<(), Trouble> {
        self.ask(&BenchRequest::Close { handle }).map(drop)
    }

    fn note_act(&mut self, act: &LinkAct) {
        if matches!(act, LinkAct::AwaitCarrier { .. }) {
            return;
        }
        let what = serde_json::to_string(act).unwrap_or_default();
        self.note("link", None, &what);
    }

    pub(crate) fn note(&mut self, what: &str, before: Option<String>, after: &str) {
        self.journal.push(JournalEntry {
            case: self.case.clone(),
            end: self.name().to_owned(),
            what: what.to_owned(),
            before,
            after: after.to_owned(),
            restored: None,
        });
    }
}

pub(crate) fn unexpected(operation: &str, reply: &BenchReply) -> Trouble {
    let text = serde_json::to_string(reply).unwrap_or_default();
    let shown: String = text.chars().take(60).collect();
    Trouble::harness(format!("{operation}: unexpected answer {shown}"))
}

/// Nanoseconds of a time, at most what 64 bits hold.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// `02:00:00:00:00:01`.
pub(crate) fn parse_mac(text: &str) -> Option<MacAddress> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}
