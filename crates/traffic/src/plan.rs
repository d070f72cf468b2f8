//! From a trial and its open connections to the threads of one side: the table of workloads.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use linerate_model::reading::SocketReading;
use linerate_model::trial::{Amount, Side, Trial};
use linerate_model::workload::{self, Workload};
use linerate_sys::sockopt;
use socket2::Socket;

use crate::error::{Result, TrafficError};
use crate::lane::{LanePlan, Role};
use crate::pace;
use crate::pattern::{Pattern, Way};
use crate::preamble::{Claim, Purpose};
use crate::rr_pipeline::RrPipeline;
use crate::side::{Token, TrialSide};
use crate::tcp_crr::{CrrAnswer, CrrAsk};
use crate::tcp_rr::{Exchange, RrAnswer, RrAsk};
use crate::tcp_stream::{StreamRecv, StreamSend};
use crate::udp_rr::{UdpRrAnswer, UdpRrAsk};
use crate::udp_stream::{UdpRecv, UdpSend};

/// A proven connection, or a connected UDP socket.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) claim: Claim,
    pub(crate) socket: Arc<Socket>,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) granted: SocketReading,
}

/// The connections that each trial has: one or two for each stream.
pub(crate) fn claims(trial: &Trial) -> Vec<Claim> {
    let purposes: &[Purpose] = match &trial.workload {
        Workload::TcpBidir(w) if !w.one_connection => &[Purpose::Data, Purpose::Back],
        Workload::TcpCrr(_) => &[Purpose::Prover],
        _ => &[Purpose::Data],
    };
    (0..trial.streams)
        .flat_map(|stream| purposes.iter().map(move |&purpose| Claim { stream, purpose }))
        .collect()
}

/// Whether the threads of `side` move by themselves on a connection, so that stopping them ends its sending direction.
pub(crate) fn is_active(trial: &Trial, side: Side, purpose: Purpose) -> bool {
    let is_dut = side == Side::Dut;
    match &trial.workload {
        Workload::TcpStream(_) | Workload::TcpRr(_) | Workload::UdpStream(_) | Workload::UdpRr(_) => is_dut,
        Workload::TcpReverse(_) => !is_dut,
        Workload::TcpBidir(w) => w.one_connection || is_dut == (purpose == Purpose::Data),
        Workload::TcpCrr(_) | Workload::Profile(_) => false,
    }
}

/// How many threads of `side` tell when all that was asked has moved; 0 for a trial that lasts a given time.
pub(crate) fn authorities(trial: &Trial, side: Side) -> usize {
    let here = match (&trial.workload, side) {
        (Workload::TcpBidir(_), _)
        | (Workload::TcpReverse(_), Side::Dut)
        | (Workload::TcpStream(_), Side::Peer) => true,
        (Workload::TcpReverse(_), Side::Peer) | (Workload::TcpStream(_), Side::Dut) => false,
        (_, side) => side == Side::Dut,
    };
    let counted = !matches!(trial.amount, Amount::DurationNs(_));
    if here && counted { trial.streams as usize } else { 0 }
}

/// The threads of one side, stream by stream.
pub(crate) fn lanes(
    side: &TrialSide,
    end: Side,
    links: &[Link],
    door: Option<&Arc<Socket>>,
) -> Result<Vec<LanePlan>> {
    Planner { side, end, links, door }.lanes()
}

struct Planner<'a> {
    side: &'a TrialSide,
    end: Side,
    links: &'a [Link],
    /// The listener, where threads accept connections themselves.
    door: Option<&'a Arc<Socket>>,
}

impl Planner<'_> {
    fn lanes(&self) -> Result<Vec<LanePlan>> {
        match &self.side.trial.workload {
            Workload::TcpStream(w) => self.streams(w, &[(Purpose::Data, Way::ToPeer)]),
            Workload::TcpReverse(w) => self.streams(w, &[(Purpose::Data, Way::ToDut)]),
            Workload::TcpBidir(w) => {
                let back = if w.one_connection { Purpose::Data } else { Purpose::Back };
                self.streams(&w.stream, &[(Purpose::Data, Way::ToPeer), (back, Way::ToDut)])
            }
            Workload::TcpRr(w) => Ok(self.tcp_rr(w)),
            Workload::TcpCrr(w) => Ok(self.tcp_crr(w)),
            Workload::UdpStream(w) => Ok(self.udp_stream(w)),
            Workload::UdpRr(w) => Ok(self.udp_rr(w)),
            Workload::Profile(_) => Err(TrafficError::Failed("profiles are run by another mover".to_owned())),
        }
    }

    fn streams(&self, w: &workload::TcpStream, ways: &[(Purpose, Way)]) -> Result<Vec<LanePlan>> {
        let patterns: Vec<Arc<Pattern>> =
            ways.iter().map(|&(_, way)| self.pattern(way, w.size.as_usize())).collect();
        let mut lanes = Vec::new();
        for stream in 0..self.side.trial.streams {
            for (&(purpose, way), pattern) in ways.iter().zip(&patterns) {
                let Some(link) = self.link(stream, purpose) else { continue };
                lanes.push(if self.sends(way) {
                    self.bound_pacing(link, w)?;
                    self.stream_send(link, w, pattern)
                } else {
                    self.stream_recv(link, w, pattern)
                });
            }
        }
        Ok(lanes)
    }

    fn stream_send(&self, link: &Link, w: &workload::TcpStream, pattern: &Arc<Pattern>) -> LanePlan {
        let job = StreamSend {
            socket: link.socket.clone(),
            size: w.size.as_usize(),
            method: w.send,
            rate: w.rate.map(|r| (r, self.side.trial.streams)),
            share: self.share(link.claim.stream),
            pattern: pattern.clone(),
            verified: self.verified(),
        };
        lane(link, Role::Send, move |context| job.run(context))
    }

    fn stream_recv(&self, link: &Link, w: &workload::TcpStream, pattern: &Arc<Pattern>) -> LanePlan {
        let job = StreamRecv {
            socket: link.socket.clone(),
            size: w.size.as_usize(),
            share: self.share(link.claim.stream),
            pattern: self.verified().then(|| pattern.clone()),
        };
        lane(link, Role::Receive, move |context| job.run(context))
    }

    /// Has the kernel spread a paced stream's large calls, with 5 % to spare so that the schedule stays in charge.
    fn bound_pacing(&self, link: &Link, w: &workload::TcpStream) -> Result<()> {
        let Some(rate) = w.rate else { return Ok(()) };
        let share = pace::stream_bytes_per_second(rate, w.size.0, self.side.trial.streams);
        sockopt::set_max_pacing_rate(&*link.socket, share.saturating_add(share / 20).max(1))?;
        Ok(())
    }

    fn tcp_rr(&self, w: &workload::TcpRr) -> Vec<LanePlan> {
        let exchange = self.exchange(w.request.as_usize(), w.response.as_usize());
        let in_flight = w.outstanding() as usize;
        let each = |link: &Link| {
            let (socket, exchange, share) =
                (link.socket.clone(), exchange.clone(), self.share(link.claim.stream));
            if self.end == Side::Peer {
                let job = RrAnswer { socket, exchange, share, batched: in_flight > 1 };
                return lane(link, Role::Respond, move |context| job.run(context));
            }
            if in_flight == 1 && w.rate.is_none() {
                let job = RrAsk { socket, exchange, share };
                return lane(link, Role::Request, move |context| job.run(context));
            }
            let rate = w.rate.map(|r| (r, self.side.trial.streams));
            let job = RrPipeline { socket, exchange, in_flight, rate, share };
            lane(link, Role::Request, move |context| job.run(context))
        };
        self.links.iter().map(each).collect()
    }

    fn tcp_crr(&self, w: &workload::TcpCrr) -> Vec<LanePlan> {
        let exchange = self.exchange(w.request.as_usize(), w.response.as_usize());
        let token: Token = self.side.token;
        if self.end == Side::Dut {
            let each = |link: &Link| {
                let job = CrrAsk {
                    local: self.side.local,
                    server: link.remote,
                    workload: self.side.trial.workload.clone(),
                    token,
                    exchange: exchange.clone(),
                    rate: w.rate.map(|r| (r, self.side.trial.streams)),
                    share: self.share(link.claim.stream),
                };
                lane(link, Role::Request, move |context| job.run(context))
            };
            return self.links.iter().map(each).collect();
        }
        let Some(door) = self.door else { return Vec::new() };
        let allowed: Vec<IpAddr> = self.links.iter().map(|l| l.remote.ip()).collect();
        let each = |link: &Link| {
            let (listener, allowed, exchange) = (door.clone(), allowed.clone(), exchange.clone());
            let job = CrrAnswer { listener, allowed, token, exchange };
            lane(link, Role::Respond, move |context| job.run(context))
        };
        self.links.iter().map(each).collect()
    }

    fn udp_stream(&self, w: &workload::UdpStream) -> Vec<LanePlan> {
        let size = w.size.as_usize();
        let pattern = self.pattern(Way::ToPeer, size);
        let tag = self.side.token.tag();
        let each = |link: &Link| {
            let socket = link.socket.clone();
            if self.end == Side::Peer {
                let pattern = self.verified().then(|| pattern.clone());
                let counted = !matches!(self.side.trial.amount, Amount::DurationNs(_));
                let job = UdpRecv { socket, size, tag, counted, pattern };
                return lane(link, Role::Receive, move |context| job.run(context));
            }
            let job = UdpSend {
                socket,
                size,
                tag,
                rate: w.rate.map(|r| (r, self.side.trial.streams)),
                share: self.share(link.claim.stream),
                pattern: pattern.clone(),
                verified: self.verified(),
            };
            lane(link, Role::Send, move |context| job.run(context))
        };
        self.links.iter().map(each).collect()
    }

    fn udp_rr(&self, w: &workload::UdpRr) -> Vec<LanePlan> {
        let exchange = self.exchange(w.request.as_usize(), w.response.as_usize());
        let each = |link: &Link| {
            let (socket, exchange) = (link.socket.clone(), exchange.clone());
            if self.end == Side::Peer {
                let job = UdpRrAnswer { socket, exchange };
                return lane(link, Role::Respond, move |context| job.run(context));
            }
            let job = UdpRrAsk {
                socket,
                exchange,
                in_flight: w.outstanding() as usize,
                rate: w.rate.map(|r| (r, self.side.trial.streams)),
                share: self.share(link.claim.stream),
                timeout_ns: w.timeout_ns.max(1),
            };
            lane(link, Role::Request, move |context| job.run(context))
        };
        self.links.iter().map(each).collect()
    }

    fn exchange(&self, request: usize, response: usize) -> Exchange {
        Exchange {
            request,
            response,
            requests: self.pattern(Way::ToPeer, request.max(READ_AHEAD)),
            responses: self.pattern(Way::ToDut, response.max(READ_AHEAD)),
            verified: self.verified(),
        }
    }

    fn pattern(&self, way: Way, longest: usize) -> Arc<Pattern> {
        Arc::new(Pattern::new(self.side.trial.verify_seed.unwrap_or_default(), way, longest))
    }

    fn verified(&self) -> bool {
        self.side.trial.verify_seed.is_some()
    }

    fn sends(&self, way: Way) -> bool {
        (self.end == Side::Dut) == (way == Way::ToPeer)
    }

    fn link(&self, stream: u32, purpose: Purpose) -> Option<&Link> {
        self.links.iter().find(|l| l.claim == Claim { stream, purpose })
    }

    /// A stream's part of the amount, in bytes or transactions; none for a trial that lasts a given time.
    fn share(&self, stream: u32) -> Option<u64> {
        let (Amount::Bytes(total) | Amount::Transactions(total)) = self.side.trial.amount else {
            return None;
        };
        let streams = u64::from(self.side.trial.streams);
        Some(total / streams + u64::from(u64::from(stream) < total % streams))
    }
}

/// Most bytes that a reader of several messages takes at once; a checker compares them in one go.
const READ_AHEAD: usize = 64 << 10;

fn lane(
    link: &Link,
    role: Role,
    work: impl FnOnce(&crate::lane::LaneContext) -> Result<crate::lane::Outcome> + Send + 'static,
) -> LanePlan {
    LanePlan { stream: link.claim.stream, role, remote: link.remote, work: Box::new(work) }
}
