//! Frames, flows, sockets and echoes of one end.

use std::time::Duration;

use linerate_model::bench::{
    BenchReply, BenchRequest, Bytes, EchoReport, EchoSpec, FlowReport, FlowSpec, FrameIn, FrameOut,
    GenerateReport, GenerateSpec, Handle, Received, SendReport, SocketOptions, Tally, TallySpec, XdpCount,
    XdpSpec,
};

use super::{Port, Station, nanoseconds, unexpected};
use crate::trouble::Trouble;

/// Frames of one request: their base64 must fit in a request of the agent's protocol.
const BATCH_FRAMES: usize = 512;
const BATCH_BYTES: usize = 120 << 10;

impl Station {
    /// Sends frames in order, as fast as it goes.
    ///
    /// # Errors
    /// As [`Station::ask`]; frames that the kernel refuses are in the report.
    pub fn send(&mut self, port: &Port, frames: &[FrameOut]) -> Result<SendReport, Trouble> {
        self.send_spaced(port, frames, Duration::ZERO)
    }

    /// Sends frames in order with a pause between two.
    ///
    /// # Errors
    /// As [`Station::send`].
    pub fn send_spaced(
        &mut self,
        port: &Port,
        frames: &[FrameOut],
        gap: Duration,
    ) -> Result<SendReport, Trouble> {
        let mut report = SendReport::default();
        let mut first = 0;
        while first < frames.len() {
            let count = batch(&frames[first..]);
            let part = frames[first..first + count].to_vec();
            part.iter().for_each(|frame| self.ring.sent(&frame.bytes));
            let request = BenchRequest::Send { port: port.handle, frames: part, gap_ns: nanoseconds(gap) };
            match self.ask(&request)? {
                BenchReply::Sent(sent) => {
                    report.sent += sent.sent;
                    report.refused.extend(sent.refused.into_iter().map(|mut refusal| {
                        refusal.index += first as u32;
                        refusal
                    }));
                }
                other => return Err(unexpected("send frames", &other)),
            }
            first += count;
        }
        Ok(report)
    }

    /// Takes what a port captured: at most `most` frames; ends once nothing came for `idle`. Also gives how many the
    /// socket had no room for.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn receive_within(
        &mut self,
        port: &Port,
        most: usize,
        idle: Duration,
        limit: Duration,
    ) -> Result<(Vec<FrameIn>, u64), Trouble> {
        let request = BenchRequest::Receive {
            port: port.handle,
            most: u32::try_from(most).unwrap_or(u32::MAX),
            idle_ns: nanoseconds(idle),
            limit_ns: nanoseconds(limit),
        };
        match self.ask(&request)? {
            BenchReply::Frames { frames, dropped } => {
                frames.iter().for_each(|frame| self.ring.received(frame));
                Ok((frames, dropped))
            }
            other => Err(unexpected("receive frames", &other)),
        }
    }

    /// Starts to send generated probes in the background.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn generate(&mut self, mut spec: GenerateSpec) -> Result<Handle, Trouble> {
        if spec.port.link.is_empty() {
            self.facts.name.clone_into(&mut spec.port.link);
        }
        self.open(&BenchRequest::Generate(spec), "start a generator")
    }

    /// Ends a generator after at most `wait`.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn finish_generate(&mut self, generator: Handle, wait: Duration) -> Result<GenerateReport, Trouble> {
        match self.ask(&BenchRequest::FinishGenerate { generator, wait_ns: nanoseconds(wait) })? {
            BenchReply::Generated(report) => Ok(report),
            other => Err(unexpected("end a generator", &other)),
        }
    }

    /// Starts to count and check probes in the background.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn tally(&mut self, mut spec: TallySpec) -> Result<Handle, Trouble> {
        if spec.port.link.is_empty() {
            self.facts.name.clone_into(&mut spec.port.link);
        }
        self.open(&BenchRequest::Tally(spec), "start a tally")
    }

    /// Ends a tally once nothing came for `idle`.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn finish_tally(&mut self, tally: Handle, idle: Duration, limit: Duration) -> Result<Tally, Trouble> {
        let request =
            BenchRequest::FinishTally { tally, idle_ns: nanoseconds(idle), limit_ns: nanoseconds(limit) };
        match self.ask(&request)? {
            BenchReply::Tallied(tally) => Ok(*tally),
            other => Err(unexpected("end a tally", &other)),
        }
    }

    /// Starts one side of a flow; gives its handle and the port that it listens on or is bound to.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn start_flow(&mut self, spec: FlowSpec) -> Result<(Handle, u16), Trouble> {
        match self.ask(&BenchRequest::StartFlow(Box::new(spec)))? {
            BenchReply::FlowOpened { handle, port } => Ok((handle, port)),
            other => Err(unexpected("start a flow", &other)),
        }
    }

    /// How a flow stands; it goes on.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn look_at_flow(&mut self, flow: Handle) -> Result<FlowReport, Trouble> {
        self.flow(&BenchRequest::LookAtFlow { flow })
    }

    /// Ends a flow, waiting at most `limit` for it.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn finish_flow(&mut self, flow: Handle, limit: Duration) -> Result<FlowReport, Trouble> {
        self.flow(&BenchRequest::FinishFlow { flow, limit_ns: nanoseconds(limit) })
    }

    fn flow(&mut self, request: &BenchRequest) -> Result<FlowReport, Trouble> {
        match self.ask(request)? {
            BenchReply::Flow(report) => Ok(*report),
            other => Err(unexpected("look at a flow", &other)),
        }
    }

    /// Opens a socket; gives its handle and port.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn open_socket(&mut self, options: SocketOptions) -> Result<(Handle, u16), Trouble> {
        match self.ask(&BenchRequest::OpenSocket(Box::new(options)))? {
            BenchReply::FlowOpened { handle, port } => Ok((handle, port)),
            BenchReply::Opened(handle) => Ok((handle, 0)),
            other => Err(unexpected("open a socket", &other)),
        }
    }

    /// Sends one datagram, or bytes of a stream; a refusal is in the report.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn send_socket(
        &mut self,
        socket: Handle,
        bytes: Vec<u8>,
        to: Option<std::net::SocketAddr>,
    ) -> Result<SendReport, Trouble> {
        match self.ask(&BenchRequest::SendSocket { socket, bytes: Bytes(bytes), to })? {
            BenchReply::Sent(report) => Ok(report),
            other => Err(unexpected("send by a socket", &other)),
        }
    }

    /// Takes what a socket received; ends once nothing came for `idle`.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn receive_socket(
        &mut self,
        socket: Handle,
        most: u32,
        idle: Duration,
        limit: Duration,
    ) -> Result<Vec<Received>, Trouble> {
        let (idle_ns, limit_ns) = (nanoseconds(idle), nanoseconds(limit));
        match self.ask(&BenchRequest::ReceiveSocket { socket, most, idle_ns, limit_ns })? {
            BenchReply::Received(received) => Ok(received),
            other => Err(unexpected("receive by a socket", &other)),
        }
    }

    /// Sends ICMP echo requests.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn echo(&mut self, spec: EchoSpec) -> Result<EchoReport, Trouble> {
        match self.ask(&BenchRequest::Echo(spec))? {
            BenchReply::Echoes(report) => Ok(report),
            other => Err(unexpected("send echoes", &other)),
        }
    }

    /// Tells a flow to come to its end, and does not wait for it.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn stop_flow(&mut self, flow: Handle) -> Result<(), Trouble> {
        self.ask(&BenchRequest::StopFlow { flow }).map(drop)
    }

    /// Attaches an XDP program to the link under test, unless `spec` names another; a refusal is given in its words.
    ///
    /// # Errors
    /// As [`Station::try_ask`].
    pub fn attach_xdp(&mut self, mut spec: XdpSpec) -> Result<Result<Handle, String>, Trouble> {
        if spec.link.is_empty() {
            self.facts.name.clone_into(&mut spec.link);
        }
        match self.try_ask(&BenchRequest::AttachXdp(spec))? {
            Ok(BenchReply::Opened(handle)) => Ok(Ok(handle)),
            Ok(other) => Err(unexpected("attach an XDP program", &other)),
            Err(why) => Ok(Err(why)),
        }
    }

    /// What an XDP program has seen so far.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn count_xdp(&mut self, program: Handle) -> Result<XdpCount, Trouble> {
        match self.ask(&BenchRequest::CountXdp { program })? {
            BenchReply::XdpCounted(count) => Ok(count),
            other => Err(unexpected("count an XDP program's frames", &other)),
        }
    }

    fn open(&mut self, request: &BenchRequest, operation: &str) -> Result<Handle, Trouble> {
        match self.ask(request)? {
            BenchReply::Opened(handle) => Ok(handle),
            other => Err(unexpected(operation, &other)),
        }
    }
}

/// How many frames go in one request: at least one.
fn batch(frames: &[FrameOut]) -> usize {
    let mut bytes = 0;
    let fits = |frame: &&FrameOut| {
        bytes += frame.bytes.len();
        bytes <= BATCH_BYTES
    };
    frames.iter().take(BATCH_FRAMES).take_while(fits).count().max(1)
}
