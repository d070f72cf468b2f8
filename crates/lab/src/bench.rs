//! The nodes of a run, with the ways between them.

use linerate_agent::node::Node;
use linerate_link::restore::Restored;
use linerate_model::trial::{Family, Side, Trial};

use crate::path::Path;
use crate::runner::RunError;

/// The setting that is the node under test itself: its levels are nodes.
pub const NODE_KEY: &str = "dut.node";

/// An agent on the dut and one on a peer, which move data between them.
#[derive(Debug)]
pub struct Pair {
    /// On the node under test. Every pair has an agent of its own there; that of the first one also changes its settings.
    pub dut: Node,
    /// On the peer.
    pub peer: Node,
    /// The ways between them, one for each IP version.
    pub paths: Vec<Path>,
}

/// The node under test with its partners.
#[derive(Debug)]
pub struct Bench {
    /// With the first peer.
    pub first: Pair,
    /// With each further one.
    pub further: Vec<Pair>,
    /// Other nodes under test, each with a partner of its own, where the node itself is a factor ([`NODE_KEY`]).
    pub others: Vec<Pair>,
    /// What dead linerates had left changed on the nodes' machines, and what became of it.
    pub left_behind: Vec<(Side, Restored)>,
}

/// The node under test that a trial names.
pub fn node_of(trial: &Trial) -> Option<&str> {
    trial.settings.iter().find(|level| level.key == NODE_KEY).map(|level| level.value.as_str())
}

impl Pair {
    /// The way for an IP version.
    ///
    /// # Errors
    /// There is none.
    pub fn path(&self, family: Family) -> Result<&Path, RunError> {
        let found = self.paths.iter().find(|p| p.family == family);
        found.ok_or_else(|| RunError::System {
            operation: "find the path of the trial's IP version",
            source: std::io::ErrorKind::AddrNotAvailable.into(),
        })
    }

    pub(crate) fn node(&mut self, side: Side) -> &mut Node {
        match side {
            Side::Dut => &mut self.dut,
            Side::Peer => &mut self.peer,
        }
    }
}

impl Bench {
    /// Whether dut and peers run on one kernel, so that their CPU is the same.
    ///
    /// # Errors
    /// Where a node fails.
    pub fn shares_a_kernel(&mut self) -> Result<bool, RunError> {
        let dut = self.first.dut.environment(None)?.boot_id;
        let peer = self.first.peer.environment(None)?.boot_id;
        Ok(!dut.is_empty() && dut == peer)
    }

    /// Makes the pair with this node under test the one that trials run on; false where it is already.
    ///
    /// # Errors
    /// No such node takes part.
    pub(crate) fn switch_to(&mut self, dut: &str) -> Result<bool, RunError> {
        if self.first.dut.url().to_string() == dut {
            return Ok(false);
        }
        let other = self.others.iter_mut().find(|pair| pair.dut.url().to_string() == dut);
        let other = other.ok_or_else(|| RunError::NoSuchNode(dut.to_owned()))?;
        std::mem::swap(&mut self.first, other);
        Ok(true)
    }

    /// All pairs.
    pub fn pairs(&mut self) -> impl Iterator<Item = &mut Pair> {
        std::iter::once(&mut self.first).chain(&mut self.further)
    }
}
