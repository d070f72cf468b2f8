//! `netserver`: its command line, what it prints, and its accept loop.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use socket2::{Domain, Protocol, Socket, Type};

use super::serve::{AcceptEvent, Limits, ServeEvent, accept_clients};

/// Port of netserver.
pub const DEFAULT_PORT: u16 = 12865;

/// Clients served at the same time.
const CLIENTS: usize = 512;

const HELP: &str = "
Usage: netserver [options]

Options:
    -h                Display this text
    -D                Do not daemonize
    -d                Log more, to stderr
    -f                Serve one client at a time
    -L name,family    Use name to pick listen address and family for family
    -n numcpu         Accepted, not used
    -N                Accepted, not used: a client switches no debugging on
    -p portnum        Listen for connect requests on portnum.
    -4                Do IPv4
    -6                Do IPv6
    -v verbosity      Accepted, not used
    -V                Display version information and exit
    -Z passphrase     Expect passphrase as the first thing received
    --allow-pinning   Let clients bind the server to a CPU (netperf -T ,N)

";

/// What netserver's command line says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerArgs {
    /// Stay in the foreground.
    pub foreground: bool,
    /// One client at a time.
    pub serial: bool,
    /// Host to listen on.
    pub host: Option<String>,
    /// 4, 6, or none said.
    pub family: Option<u8>,
    /// Port; 0 is the usual one.
    pub port: u16,
    /// Passphrase.
    pub passphrase: Option<String>,
    /// Whether clients may pin.
    pub allow_pinning: bool,
    /// Whether each test is logged.
    pub verbose: bool,
}

/// What to do instead of serving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instead {
    /// Print this on stdout and exit 0.
    Print(String),
    /// Print this on stderr and exit 1.
    Complain(String),
}

impl ServerArgs {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// Help, version, or a word that is wrong.
    pub fn parse(words: &[String]) -> Result<Self, Instead> {
        let mut args = Self { port: DEFAULT_PORT, ..Self::default() };
        let long = words.iter().any(|word| word == "--allow-pinning");
        args.allow_pinning = long;
        let words: Vec<String> = words.iter().filter(|word| *word != "--allow-pinning").cloned().collect();
        let parsed = super::getopt::parse(&words, "DdfhL:n:Np:v:VZ:46");
        let (found, rest) = parsed.map_err(|e| Instead::Complain(format!("netserver: {e}\n{HELP}")))?;
        if let Some(word) = rest.first() {
            return Err(Instead::Complain(format!("netserver: what is {word:?} for?\n{HELP}")));
        }
        for (letter, value) in found {
            let value = value.unwrap_or_default();
            match letter {
                'D' => args.foreground = true,
                'd' => args.verbose = true,
                'f' => args.serial = true,
                '4' => args.family = Some(4),
                '6' => args.family = Some(6),
                'L' => {
                    let (host, family) = value.split_once(',').unwrap_or((&value, ""));
                    args.host = (!host.is_empty()).then(|| host.to_owned());
                    args.family = super::options::family_of(family).or(args.family);
                }
                'p' => {
                    let wrong = || Instead::Complain(format!("netserver: -p {value}: not a port\n"));
                    args.port = value.parse().ok().filter(|&port| port != 0).ok_or_else(wrong)?;
                }
                'Z' => args.passphrase = Some(value),
                'V' => return Err(Instead::Print(format!("{}\n", super::VERSION_LINE))),
                'h' => return Err(Instead::Complain(HELP.to_owned())),
                _ => {}
            }
        }
        Ok(args)
    }

    /// Opens the listener: IPv6 and IPv4 with one socket where nothing else is said.
    ///
    /// # Errors
    /// The name has no address, or the address can't be had.
    pub fn listen(&self) -> std::io::Result<TcpListener> {
        let Some(host) = &self.host else {
            return match self.family {
                Some(4) => listen_on((Ipv4Addr::UNSPECIFIED, self.port).into(), true),
                Some(_) => listen_on((Ipv6Addr::UNSPECIFIED, self.port).into(), true),
                None => listen_on((Ipv6Addr::UNSPECIFIED, self.port).into(), false)
                    .or_else(|_| listen_on((Ipv4Addr::UNSPECIFIED, self.port).into(), true)),
            };
        };
        let fits = |ip: IpAddr| self.family.is_none_or(|family| (family == 4) == ip.is_ipv4());
        let address = (host.as_str(), self.port).to_socket_addrs()?.find(|address| fits(address.ip()));
        listen_on(address.ok_or(std::io::ErrorKind::AddrNotAvailable)?, true)
    }

    /// The line that netserver prints when it starts.
    pub fn starting_line(&self) -> String {
        let host = self.host.as_deref().unwrap_or("IN(6)ADDR_ANY");
        let family = match self.family {
            None => "AF_UNSPEC",
            Some(4) => "AF_INET",
            Some(_) => "AF_INET6",
        };
        format!("Starting netserver with host '{host}' port '{}' and family {family}\n", self.port)
    }

    /// Serves until `stop` is set; the exit code.
    pub fn serve(&self, listener: &TcpListener, stop: &Arc<AtomicBool>, log: &mut (dyn Write + Send)) -> u8 {
        let limits = Limits {
            allow_pinning: self.allow_pinning,
            passphrase: self.passphrase.clone(),
            ..Limits::default()
        };
        let verbose = self.verbose;
        let tell: Arc<dyn Fn(SocketAddr, AcceptEvent) + Send + Sync> = Arc::new(move |peer, event| {
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            log_event(peer, &event, verbose);
        });
        let clients = if self.serial { 1 } else { CLIENTS };
        match accept_clients(listener, &limits, clients, stop, &tell) {
            Ok(()) => 0,
            Err(e) => {
                // Nobody is left to tell if that fails too.
                let _unsaid = writeln!(log, "netserver: wait for clients: {e}");
                1
            }
        }
    }
}

fn log_event(peer: SocketAddr, event: &AcceptEvent, verbose: bool) {
    match event {
        AcceptEvent::Serve(ServeEvent::Failed(reason)) => {
            tracing::warn!(%peer, reason, "netperf test failed");
        }
        AcceptEvent::Serve(ServeEvent::PinningIgnored(cpu)) => {
            tracing::warn!(%peer, cpu, "netperf client may not pin the server (--allow-pinning)");
        }
        AcceptEvent::TooMany => tracing::warn!(%peer, "netperf client turned away: too many"),
        AcceptEvent::Serve(ServeEvent::Test { request, port }) if verbose => {
            let (pattern, transport) = (request.pattern, request.transport);
            tracing::info!(%peer, ?pattern, ?transport, length = ?request.length, port, "netperf test");
        }
        AcceptEvent::Serve(ServeEvent::Done(results)) if verbose => {
            let (received, sent) = (results.received_bytes, results.sent_bytes);
            tracing::info!(%peer, received, sent, transactions = results.transactions, "netperf test done");
        }
        AcceptEvent::Ended(why) if verbose => tracing::info!(%peer, why, "netperf client gone"),
        AcceptEvent::Accepted if verbose => tracing::info!(%peer, "netperf client"),
        _ => {}
    }
}

fn listen_on(address: SocketAddr, only_v6: bool) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_command_line_is_read() {
        let args = ServerArgs::parse(&words("-D -p 4242 -L 127.0.0.1,4 -Z secret")).unwrap();
        assert_eq!((args.foreground, args.port, args.family), (true, 4242, Some(4)));
        assert_eq!(
            args.starting_line(),
            "Starting netserver with host '127.0.0.1' port '4242' and family AF_INET\n"
        );
        assert_eq!(args.passphrase.as_deref(), Some("secret"));
        assert!(matches!(ServerArgs::parse(&words("-p x")), Err(Instead::Complain(_))));
        assert!(matches!(ServerArgs::parse(&words("-q")), Err(Instead::Complain(_))));
        assert!(matches!(ServerArgs::parse(&words("-V")), Err(Instead::Print(_))));
        assert!(ServerArgs::parse(&words("--allow-pinning")).unwrap().allow_pinning);
    }
}
