//! The nodes of a run, with the ways between them.

use linerate_agent::node::Node;
use linerate_link::restore::Restored;
use linerate_model::trial::{Family, Side};

use crate::path::Path;
use crate::runner::RunError;

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
    /// What dead linerates had left changed on the nodes' machines, and what became of it.
    pub left_behind: Vec<(Side, Restored)>,
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

    /// All pairs.
    pub fn pairs(&mut self) -> impl Iterator<Item = &mut Pair> {
        std::iter::once(&mut self.first).chain(&mut self.further)
    }
}
