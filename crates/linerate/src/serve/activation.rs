//! Sockets handed over by systemd (sd_listen_fds(3)): a door whose port one of them has is opened over it.

use std::net::TcpListener;

use listenfd::ListenFd;

use crate::failure::Failure;

/// The TCP sockets that the service manager opened for us.
pub(crate) struct Handed(Vec<TcpListener>);

impl Handed {
    /// Takes them over. A socket of another kind is a mistake in the unit, and said.
    pub(crate) fn take() -> Result<Self, Failure> {
        let mut handed = ListenFd::from_env();
        let mut listeners = Vec::new();
        for index in 0..handed.len() {
            let taken = handed.take_tcp_listener(index);
            let listener =
                taken.map_err(|e| Failure::usage(format!("socket {index} of the service manager: {e}")))?;
            listeners.extend(listener);
        }
        Ok(Self(listeners))
    }

    /// The one that listens on `port`, if there is one.
    pub(crate) fn on_port(&mut self, port: u16) -> Option<TcpListener> {
        let has_port = |l: &TcpListener| l.local_addr().is_ok_and(|address| address.port() == port);
        let index = self.0.iter().position(has_port)?;
        Some(self.0.swap_remove(index))
    }

    /// Those that no door wanted are a mistake in the unit.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let left: Vec<String> =
            self.0.iter().filter_map(|l| Some(l.local_addr().ok()?.to_string())).collect();
        if left.is_empty() {
            return Ok(());
        }
        let words = "the service manager handed over sockets that no protocol here listens on";
        Err(Failure::usage(format!(
            "{words}: {}; name their ports with --port and --NAME-port",
            left.join(", ")
        )))
    }
}
