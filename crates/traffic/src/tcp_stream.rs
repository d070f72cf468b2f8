//! A TCP byte stream in one direction: the sender's loop and the receiver's.

use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_model::units::Rate;
use linerate_model::workload::SendMethod;
use linerate_sys::{clock, memfd};
use nix::errno::Errno;
use socket2::Socket;

use crate::call;
use crate::error::Result;
use crate::lane::{LaneContext, Outcome};
use crate::pace::Schedule;
use crate::pattern::{AlignedBytes, Checker, Pattern, Payload};
use crate::zerocopy::ZeroCopy;

/// The sending end of a stream.
pub(crate) struct StreamSend {
    pub(crate) socket: Arc<Socket>,
    /// Bytes a call.
    pub(crate) size: usize,
    pub(crate) method: SendMethod,
    /// The trial's rate and number of streams.
    pub(crate) rate: Option<(Rate, u32)>,
    /// Bytes to send; none is until stopped.
    pub(crate) share: Option<u64>,
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) verified: bool,
}

/// The receiving end of a stream.
pub(crate) struct StreamRecv {
    pub(crate) socket: Arc<Socket>,
    /// Buffer bytes.
    pub(crate) size: usize,
    /// Bytes that will come; none is until the end of the stream.
    pub(crate) share: Option<u64>,
    /// What the bytes must be, if they are checked.
    pub(crate) pattern: Option<Arc<Pattern>>,
}

/// One way to hand `length` bytes of payload to the kernel.
pub(crate) trait Method {
    fn send(
        &mut self,
        socket: &Socket,
        payload: &Payload,
        length: usize,
    ) -> std::result::Result<usize, Errno>;
}

struct Write;

impl Method for Write {
    fn send(
        &mut self,
        socket: &Socket,
        payload: &Payload,
        length: usize,
    ) -> std::result::Result<usize, Errno> {
        call::send(socket, payload.peek(length))
    }
}

struct Sendfile(OwnedFd);

impl Method for Sendfile {
    fn send(
        &mut self,
        socket: &Socket,
        payload: &Payload,
        length: usize,
    ) -> std::result::Result<usize, Errno> {
        match memfd::send_file(socket, &self.0, payload.position() as u64, length) {
            Ok(count) => Ok(count),
            Err(e) => match e.raw_os_error().map_or(Errno::EIO, Errno::from_raw) {
                Errno::EINTR => Ok(0),
                other => Err(other),
            },
        }
    }
}

impl StreamSend {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let payload = Payload::new(self.pattern.clone(), context.stream, self.verified);
        match self.method {
            SendMethod::Write => self.send_all(context, payload, &mut Write)?,
            SendMethod::Sendfile => {
                let file = memfd::memfd_with("linerate-payload", payload.file_content())?;
                self.send_all(context, payload, &mut Sendfile(file))?;
            }
            SendMethod::Zerocopy => {
                let mut method = ZeroCopy::new(&self.socket)?;
                self.send_all(context, payload, &mut method)?;
                let zerocopy = Some(method.finish(&self.socket));
                return Ok(Outcome { zerocopy, ..Outcome::default() });
            }
        }
        Ok(Outcome::default())
    }

    fn send_all(&self, context: &LaneContext, mut payload: Payload, method: &mut impl Method) -> Result<()> {
        let start_ns = context.ready()?;
        let mut schedule = self
            .rate
            .map(|(rate, streams)| Schedule::new(rate, self.size as u64, streams, context.stream, start_ns));
        let mut left = self.share.unwrap_or(u64::MAX);
        while left > 0 && !context.control.stopped() {
            if let Some(schedule) = &mut schedule
                && !schedule.take_turn(&context.control)
            {
                break;
            }
            let length = self.size.min(usize::try_from(left).unwrap_or(usize::MAX));
            if !self.send_call(context, &mut payload, method, length)? {
                break;
            }
            left -= length as u64;
        }
        // Tells the receiver that no more will come. The stop may have done so before.
        let _already = self.socket.shutdown(Shutdown::Write);
        Ok(())
    }

    /// Hands over one call's bytes; the kernel takes fewer only when a signal or the stop comes between. False once stopped.
    fn send_call(
        &self,
        context: &LaneContext,
        payload: &mut Payload,
        method: &mut impl Method,
        length: usize,
    ) -> Result<bool> {
        let mut left = length;
        loop {
            let count = match method.send(&self.socket, payload, left) {
                Ok(count) => count,
                Err(e) => {
                    context.failed_unless_stopped("send", e)?;
                    return Ok(false);
                }
            };
            payload.advance(count);
            left -= count;
            context.counters.sent(count, u64::from(left == 0));
            if left == 0 {
                return Ok(true);
            }
        }
    }
}

impl StreamRecv {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let mut buffer = AlignedBytes::zeroed(self.size);
        let buffer = buffer.as_mut();
        let mut checker = self.pattern.clone().map(|p| Checker::new(p, context.stream));
        context.ready()?;
        let mut total = 0;
        loop {
            match call::recv(&*self.socket, buffer) {
                Ok(0) => break,
                Ok(count) => {
                    context.counters.received(count, 1);
                    if let Some(checker) = &mut checker {
                        checker.check(&buffer[..count]);
                    }
                    total += count as u64;
                    if Some(total) == self.share {
                        context.control.note_done(clock::monotonic_ns());
                    }
                }
                Err(e) => {
                    context.failed_unless_stopped("receive", e)?;
                    break;
                }
            }
        }
        if self.share != Some(total) {
            context.closed(total)?;
        }
        Ok(Outcome { verify: checker.map(|c| c.found()), ..Outcome::default() })
    }
}
