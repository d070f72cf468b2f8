//! What a session has open, by handle.

use std::collections::BTreeMap;

use linerate_model::bench::Handle;
use linerate_traffic::flow::Flow;
use linerate_traffic::open_socket::OpenSocket;
use linerate_traffic::packet::{Generator, Port, TallyRun};
use linerate_traffic::xdp::Xdp;

use super::error::{BenchError, Result};

/// Most that a session may have open.
const MOST_OPEN: usize = 4096;

/// Everything that is open. Dropping it ends it all.
#[derive(Default)]
pub(super) struct Table {
    open: BTreeMap<Handle, Open>,
    last: Handle,
}

/// Something open.
pub(super) enum Open {
    Port(Box<Port>),
    Generator(Generator),
    Tally(TallyRun),
    Flow(Flow),
    Socket(Box<OpenSocket>),
    Xdp(Xdp),
}

/// A kind of thing that a handle may be of.
pub(super) trait Kind: Sized {
    const NAME: &str;
    fn of(open: Open) -> std::result::Result<Self, Open>;
    fn in_place(open: &mut Open) -> Option<&mut Self>;
    fn into_open(self) -> Open;
}

macro_rules! kind {
    ($kind:ty, $variant:ident, $name:literal) => {
        impl Kind for $kind {
            const NAME: &str = $name;

            fn of(open: Open) -> std::result::Result<Self, Open> {
                match open {
                    Open::$variant(it) => Ok(it),
                    other => Err(other),
                }
            }

            fn in_place(open: &mut Open) -> Option<&mut Self> {
                match open {
                    Open::$variant(it) => Some(it),
                    _ => None,
                }
            }

            fn into_open(self) -> Open {
                Open::$variant(self)
            }
        }
    };
}

kind!(Box<Port>, Port, "port");
kind!(Generator, Generator, "generator");
kind!(TallyRun, Tally, "tally");
kind!(Flow, Flow, "flow");
kind!(Box<OpenSocket>, Socket, "socket");
kind!(Xdp, Xdp, "XDP program");

impl Open {
    fn name(&self) -> &'static str {
        match self {
            Self::Port(_) => <Box<Port>>::NAME,
            Self::Generator(_) => Generator::NAME,
            Self::Tally(_) => TallyRun::NAME,
            Self::Flow(_) => Flow::NAME,
            Self::Socket(_) => <Box<OpenSocket>>::NAME,
            Self::Xdp(_) => Xdp::NAME,
        }
    }
}

impl Table {
    /// Refuses where there is no room for one more.
    pub(super) fn check_room(&self) -> Result<()> {
        if self.open.len() < MOST_OPEN {
            return Ok(());
        }
        Err(BenchError::invalid("open one more", format!("{MOST_OPEN} are open already")))
    }

    /// Gives what was opened a handle.
    pub(super) fn keep(&mut self, opened: impl Kind) -> Handle {
        self.last += 1;
        self.open.insert(self.last, opened.into_open());
        self.last
    }

    /// What a handle is of; it stays open.
    pub(super) fn borrow<K: Kind>(&mut self, handle: Handle) -> Result<&mut K> {
        let open = self.open.get_mut(&handle).ok_or_else(|| unknown(handle))?;
        let name = open.name();
        K::in_place(open).ok_or_else(|| another(handle, name, K::NAME))
    }

    /// What a handle is of, to be ended.
    pub(super) fn take<K: Kind>(&mut self, handle: Handle) -> Result<K> {
        let open = self.open.remove(&handle).ok_or_else(|| unknown(handle))?;
        K::of(open).map_err(|other| {
            let error = another(handle, other.name(), K::NAME);
            self.open.insert(handle, other);
            error
        })
    }

    /// Ends whatever a handle is of.
    pub(super) fn close(&mut self, handle: Handle) -> Result<()> {
        self.open.remove(&handle).map(drop).ok_or_else(|| unknown(handle))
    }

    /// Ends everything.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

fn unknown(handle: Handle) -> BenchError {
    BenchError::invalid(format!("handle {handle}"), "nothing of this number is open")
}

fn another(handle: Handle, is: &str, wanted: &str) -> BenchError {
    BenchError::invalid(format!("handle {handle}"), format!("it is a {is}, not a {wanted}"))
}
