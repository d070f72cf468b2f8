//! One run: header, socket, transfer, report.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use linerate_model::Trial;
use linerate_model::reading::Flow;
use linerate_model::trial::{Amount, Family, Pinning, Side};
use linerate_model::units::ByteCount;
use linerate_model::workload::{SendMethod, TcpOptions, TcpStream, UdpOptions, UdpStream, Workload};
use linerate_sys::clock;
use nix::errno::Errno;
use nix::sys::resource::{Usage, UsageWho, getrusage};

use crate::observed::{Keep, Observed, Watch, stream, told};
use crate::ttcp::marker::{Arrival, MARKER_BYTES, Markers};
use crate::ttcp::options::{Options, OptionsError};
use crate::ttcp::pattern::{Aligned, fill};
use crate::ttcp::report::{self, Tally, name};
use crate::ttcp::sockets::{self, SocketError, failed};

const USAGE: &str = "\
Usage: ttcp -t [-options] host [ < in ]
       ttcp -r [-options] [group] [ > out ]
Both:
  -l N  bytes a call (8192)             -u    UDP instead of TCP
  -p N  port (5001)                     -s    -t: send a pattern; -r: discard what comes
  -A N  align the buffer to N (16384)   -O N  start it N bytes after that (0)
  -v    two more lines                  -b N  socket buffer, bytes
  -f X  unit of the rate: k, m, g are Kbit, Mbit, Gbit; K, M, G are KB, MB, GB (all base 1024)
  -4 -6 IP version                      -I IF use this link
  -w N  wait N microseconds after each send
  -R    the receiver connects, the transmitter listens (or: -S with -t, -C with -r)
  --linerate-json FILE  add a record of the run to FILE
With -t:
  -n N  buffers to send with -s (2048)  -D    TCP_NODELAY
With -r:
  -B    write whole blocks of -l bytes  -T    look at each byte that came
";

/// Markers after the end of the timed part, as ttcp sends them.
const LATE_MARKERS: usize = 4;

/// Wait before a send that found no buffer space is tried again.
const NO_BUFFER_WAIT: Duration = Duration::from_millis(18);

/// How often a UDP receiver looks whether the silence has ended its test.
const SILENCE_POLL: Duration = Duration::from_millis(100);

/// What the front end reads and writes.
pub struct Io<'a> {
    /// Payload to send without `-s`.
    pub stdin: File,
    /// Report and received payload.
    pub stdout: &'a mut dyn Write,
    /// Progress and errors.
    pub stderr: &'a mut dyn Write,
    /// Keeps the project's own record.
    pub keep: Keep,
}

impl std::fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").finish_non_exhaustive()
    }
}

/// What a transfer gave.
struct Done {
    tally: Tally,
    address: usize,
    ends: Option<(SocketAddr, SocketAddr)>,
    end_was_told: bool,
    watch: Option<Watch>,
}

/// Bytes, calls and time of a transfer.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    bytes: u64,
    calls: u64,
    real_ns: u64,
}

/// Runs `ttcp ARGUMENTS`; returns the exit code, 0 or 1 as ttcp's.
pub fn main(arguments: &[String], io: &mut Io<'_>) -> u8 {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(error) => {
            let reason = match error {
                OptionsError::Nothing => String::new(),
                other => format!("ttcp: {other}\n"),
            };
            tell(io.stderr, &format!("{reason}{USAGE}"));
            return 1;
        }
    };
    match run(&options, io) {
        Ok(()) => 0,
        Err(error) => {
            let errno = error.cause.raw_os_error().unwrap_or(0);
            tell(io.stderr, &format!("{}: {error}\nerrno={errno}\n", name(&options)));
            1
        }
    }
}

fn run(options: &Options, io: &mut Io<'_>) -> Result<(), SocketError> {
    for note in &options.notes {
        tell(io.stderr, &format!("ttcp: {note}\n"));
    }
    print(options, io, &report::header(options))?;
    let mut buffer = Aligned::zeroed(options.length, options.align, options.offset);
    if options.transmit {
        fill(buffer.bytes());
    }
    let done = match (options.udp, options.transmit) {
        (false, true) => send_tcp(options, io, &mut buffer)?,
        (false, false) => receive_tcp(options, io, &mut buffer)?,
        (true, true) => send_udp(options, io, &mut buffer)?,
        (true, false) => receive_udp(options, io, &mut buffer)?,
    };
    print(options, io, &report::result(options, &done.tally, done.address))?;
    if !done.end_was_told {
        tell(io.stderr, "ttcp-r: no end marker came: the time ends with the last datagram\n");
    }
    let (Some(path), Some(watch)) = (&options.json, &done.watch) else { return Ok(()) };
    let kept = (io.keep)(path, observed(options, &done, watch));
    kept.map_err(io::Error::other).map_err(failed(&format!("write {}", path.display())))
}

fn send_tcp(options: &Options, io: &mut Io<'_>, buffer: &mut Aligned) -> Result<Done, SocketError> {
    let mut stream = sockets::tcp(options, &mut |word| progress(options, io.stderr, word))?;
    let ends = stream.local_addr().ok().zip(stream.peer_addr().ok());
    let mut watch = open_watch(options, ends);
    let mut feed = Feed::new(options, &mut io.stdin);
    let (moved, usage) = timed(watch.as_mut(), || {
        let mut moved = Moved::default();
        while let Some(length) = feed.next(buffer.bytes())? {
            let mut left = &buffer.bytes()[..length];
            while !left.is_empty() {
                let count = stream.write(left).map_err(failed("IO"))?;
                moved.calls += 1;
                moved.bytes += count as u64;
                left = &left[count..];
            }
            pause(options);
        }
        Ok(moved)
    })?;
    Ok(Done::new(moved, &usage, buffer, ends, watch))
}

fn receive_tcp(options: &Options, io: &mut Io<'_>, buffer: &mut Aligned) -> Result<Done, SocketError> {
    let mut stream = sockets::tcp(options, &mut |word| progress(options, io.stderr, word))?;
    let ends = stream.local_addr().ok().zip(stream.peer_addr().ok());
    let mut watch = open_watch(options, ends);
    let (moved, usage) = timed(watch.as_mut(), || {
        let mut moved = Moved::default();
        loop {
            let count = receive_block(options, &mut stream, buffer.bytes(), &mut moved)?;
            if count == 0 {
                return Ok(moved);
            }
            moved.bytes += count as u64;
            take(options, io.stdout, &buffer.bytes()[..count])?;
        }
    })?;
    Ok(Done::new(moved, &usage, buffer, ends, watch))
}

/// One read, or with `-B` as many as fill the buffer. 0 is the end of the stream.
fn receive_block(
    options: &Options,
    stream: &mut std::net::TcpStream,
    buffer: &mut [u8],
    moved: &mut Moved,
) -> Result<usize, SocketError> {
    let mut filled = 0;
    loop {
        let count = match stream.read(&mut buffer[filled..]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other.map_err(failed("IO"))?,
        };
        moved.calls += 1;
        filled += count;
        if count == 0 || !options.whole_blocks || filled == buffer.len() {
            return Ok(filled);
        }
    }
}

fn send_udp(options: &Options, io: &mut Io<'_>, buffer: &mut Aligned) -> Result<Done, SocketError> {
    let (socket, to) = sockets::udp_sender(options, &mut |word| progress(options, io.stderr, word))?;
    let ends = socket.local_addr().ok().map(|local| (local, to));
    let mut watch = open_watch(options, ends);
    let mut small = false;
    let mut feed = Feed::new(options, &mut io.stdin);
    let (mut moved, usage) = timed(watch.as_mut(), || {
        let mut moved = Moved::default();
        if options.pattern {
            send_to(options, &socket, to, &buffer.bytes()[..MARKER_BYTES], &mut moved)?;
        }
        while let Some(length) = feed.next(buffer.bytes())? {
            small |= length <= MARKER_BYTES;
            send_to(options, &socket, to, &buffer.bytes()[..length], &mut moved)?;
            moved.bytes += length as u64;
        }
        if options.pattern {
            send_to(options, &socket, to, &buffer.bytes()[..MARKER_BYTES], &mut moved)?;
        }
        Ok(moved)
    })?;
    for _ in 0..LATE_MARKERS {
        send_to(options, &socket, to, &buffer.bytes()[..MARKER_BYTES], &mut moved)?;
    }
    if small {
        tell(
            io.stderr,
            "ttcp-t: input of 4 bytes or fewer went out as a datagram that is taken for a marker\n",
        );
    }
    Ok(Done::new(moved, &usage, buffer, ends, watch))
}

fn send_to(
    options: &Options,
    socket: &UdpSocket,
    to: SocketAddr,
    bytes: &[u8],
    moved: &mut Moved,
) -> Result<(), SocketError> {
    loop {
        moved.calls += 1;
        match socket.send_to(bytes, to) {
            Ok(_) => {
                pause(options);
                return Ok(());
            }
            Err(e) if e.raw_os_error() == Some(Errno::ENOBUFS as i32) => std::thread::sleep(NO_BUFFER_WAIT),
            Err(cause) => return Err(failed("IO")(cause)),
        }
    }
}

fn receive_udp(options: &Options, io: &mut Io<'_>, buffer: &mut Aligned) -> Result<Done, SocketError> {
    let socket = sockets::udp_receiver(options, &mut |word| progress(options, io.stderr, word))?;
    socket.set_read_timeout(Some(SILENCE_POLL)).map_err(failed("setsockopt: rcvtimeo"))?;
    let mut markers = Markers::default();
    let mut watch = open_watch(options, None);
    let mut remote = None;
    let mut usage = (usage()?, usage()?);
    loop {
        let (count, from) = match socket.recv_from(buffer.bytes()) {
            Ok(datagram) => datagram,
            Err(e) if is_timeout(&e) => {
                if markers.is_over(clock::monotonic_ns()) {
                    break;
                }
                continue;
            }
            Err(cause) => return Err(failed("IO")(cause)),
        };
        if !markers.has_begun() {
            usage.0 = self::usage()?;
            if let Some(watch) = &mut watch {
                watch.begin();
            }
        }
        remote.get_or_insert(from);
        let told = markers.end_was_told();
        match markers.arrived(count, clock::monotonic_ns()) {
            Arrival::Data => take(options, io.stdout, &buffer.bytes()[..count])?,
            Arrival::Marker => {}
            Arrival::End => break,
        }
        if markers.end_was_told() && !told {
            usage.1 = self::usage()?;
            if let Some(watch) = &mut watch {
                watch.end();
            }
        }
    }
    if !markers.end_was_told() {
        usage.1 = self::usage()?;
        if let Some(watch) = &mut watch {
            watch.end();
        }
    }
    let moved = Moved { bytes: markers.bytes(), calls: markers.calls(), real_ns: markers.elapsed_ns() };
    let ends = socket.local_addr().ok().zip(remote);
    let done = Done::new(moved, &usage, buffer, ends, watch);
    Ok(Done { end_was_told: markers.end_was_told(), ..done })
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Where a transmitter's bytes come from.
struct Feed<'a> {
    stdin: Option<&'a mut File>,
    left: i64,
    length: usize,
}

impl<'a> Feed<'a> {
    fn new(options: &Options, stdin: &'a mut File) -> Self {
        Self { stdin: (!options.pattern).then_some(stdin), left: options.count, length: options.length }
    }

    /// How many bytes of the buffer are to be sent next; none at the end.
    fn next(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, SocketError> {
        let Some(stdin) = &mut self.stdin else {
            if self.left == 0 {
                return Ok(None);
            }
            // Negative counts have no end.
            self.left -= i64::from(self.left > 0);
            return Ok(Some(self.length));
        };
        loop {
            match stdin.read(buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => return Ok(Some(count)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(failed("read standard input")(cause)),
            }
        }
    }
}

/// Does with received payload what the options say.
fn take(options: &Options, stdout: &mut dyn Write, bytes: &[u8]) -> Result<(), SocketError> {
    if options.touch && !options.udp {
        std::hint::black_box(bytes.iter().fold(0u64, |sum, byte| sum + u64::from(*byte)));
    }
    if options.pattern {
        return Ok(());
    }
    stdout.write_all(bytes).map_err(failed("write standard output"))
}

fn pause(options: &Options) {
    if options.pause_us > 0 {
        std::thread::sleep(Duration::from_micros(options.pause_us));
    }
}

/// Runs a transfer; its time goes into what it returns.
fn timed(
    mut watch: Option<&mut Watch>,
    transfer: impl FnOnce() -> Result<Moved, SocketError>,
) -> Result<(Moved, (Usage, Usage)), SocketError> {
    if let Some(watch) = &mut watch {
        watch.begin();
    }
    let before = usage()?;
    let start_ns = clock::monotonic_ns();
    let moved = transfer()?;
    let real_ns = clock::monotonic_ns() - start_ns;
    let after = usage()?;
    if let Some(watch) = watch {
        watch.end();
    }
    Ok((Moved { real_ns, ..moved }, (before, after)))
}

fn usage() -> Result<Usage, SocketError> {
    getrusage(UsageWho::RUSAGE_SELF).map_err(|e| failed("getrusage")(e.into()))
}

impl Done {
    fn new(
        moved: Moved,
        usage: &(Usage, Usage),
        buffer: &Aligned,
        ends: Option<(SocketAddr, SocketAddr)>,
        watch: Option<Watch>,
    ) -> Self {
        let Moved { bytes, calls, real_ns } = moved;
        let tally = Tally { bytes, calls, real_ns, ..Tally::default() }.with_usage(&usage.0, &usage.1);
        Self { tally, address: buffer.address(), ends, end_was_told: true, watch }
    }
}

fn open_watch(options: &Options, ends: Option<(SocketAddr, SocketAddr)>) -> Option<Watch> {
    options.json.as_ref()?;
    let local = ends.map_or_else(|| IpAddr::from([0, 0, 0, 0]), |(local, _)| local.ip());
    Some(Watch::open(local))
}

/// The run as the project's own record has it. ttcp's other end tells nothing.
fn observed(options: &Options, done: &Done, watch: &Watch) -> Observed {
    let Tally { bytes, calls, real_ns, .. } = done.tally;
    let remote = done.ends.map(|(_, remote)| remote);
    let flow = Flow { bytes, messages: calls };
    let (sent, received) = if options.transmit { (flow, Flow::default()) } else { (Flow::default(), flow) };
    let buffer_bytes = (options.socket_buffer > 0).then(|| ByteCount(options.socket_buffer.into()));
    let size = ByteCount(options.length as u64);
    let tcp = TcpStream {
        size,
        send: SendMethod::Write,
        rate: None,
        socket: TcpOptions { buffer_bytes, nodelay: options.nodelay, ..TcpOptions::default() },
    };
    let workload = match (options.udp, options.swapped) {
        (true, _) => {
            let socket = UdpOptions { buffer_bytes, tos: None };
            Workload::UdpStream(UdpStream { size, rate: None, socket })
        }
        (false, false) => Workload::TcpStream(tcp),
        (false, true) => Workload::TcpReverse(tcp),
    };
    // The dut connects; of datagrams it is who sends.
    let is_dut = if options.udp { options.transmit } else { options.connects() };
    Observed {
        tool: "ttcp",
        side: if is_dut { Side::Dut } else { Side::Peer },
        started_at_ns: watch.started_at_ns(),
        trial: Trial {
            workload,
            family: if remote.is_some_and(|r| r.ip().to_canonical().is_ipv6()) {
                Family::V6
            } else {
                Family::V4
            },
            peers: 1,
            streams: 1,
            amount: Amount::Bytes(bytes),
            warmup_ns: 0,
            interval_ns: None,
            verify_seed: None,
            pin: Pinning::default(),
            repeat: 0,
            settings: Vec::new(),
        },
        interrupted: false,
        environment: watch.environment(),
        near: watch.reading(vec![stream(0, done.ends, sent, received)], Some(real_ns)),
        far: told(Vec::new(), real_ns),
        remote: remote.map_or_else(
            || ("unknown".to_owned(), options.port),
            |r| (r.ip().to_canonical().to_string(), r.port()),
        ),
        shared_kernel: remote.is_some_and(|remote| watch.is_own(remote.ip())),
    }
}

/// Report lines: on standard output, except where payload goes there.
fn print(options: &Options, io: &mut Io<'_>, text: &str) -> Result<(), SocketError> {
    if options.writes_payload() {
        io.stdout.flush().map_err(failed("write standard output"))?;
        tell(io.stderr, text);
        return Ok(());
    }
    let written = io.stdout.write_all(text.as_bytes()).and_then(|()| io.stdout.flush());
    written.map_err(failed("write standard output"))
}

fn progress(options: &Options, stderr: &mut dyn Write, word: &str) {
    tell(stderr, &format!("{}: {word}\n", name(options)));
}

/// Standard error may be closed; there is nowhere to say so.
fn tell(stderr: &mut dyn Write, text: &str) {
    let _closed = stderr.write_all(text.as_bytes());
}
