//! How the bytes of a stream are handed to the kernel. Those that the kernel refers to rather than copies lie in memory that
//! is not written again while it does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;

use linerate_model::bench::flow::FlowMethod;
use linerate_sys::poll::{PollSet, Readiness};
use linerate_sys::splice::{self, PagePipe, Pages};
use linerate_sys::{memfd, sockopt, zerocopy};
use socket2::Socket;

use super::TICK;
use super::shared::Shared;
use crate::place::Key;

/// Pieces of a vector, bytes; used in turn, so that they fall on every alignment.
const PIECES: [usize; 8] = [1, 3, 7, 61, 251, 1021, 4093, 16381];
/// Most pieces of one call (`IOV_MAX` is 1024).
const MOST_PIECES: usize = 512;
/// Writes that may be with the kernel at a time.
const ZEROCOPY_BUFFERS: usize = 16;
/// Starts of spliced data wander by this, so that all places of a page come up.
const WANDER: usize = 61;
/// A pipe takes 16 pages unless told otherwise.
const SPLICE_PAGES: usize = 15;

/// A way to send, with its memory.
pub(super) enum Sender {
    Write(Vec<u8>),
    Writev(Vec<u8>),
    Sendfile { file: File, place: u64 },
    ZeroCopy(ZeroCopy),
    Splice { pipe: PagePipe, start: usize },
}

impl Sender {
    pub(super) fn new(method: FlowMethod, socket: &Socket) -> io::Result<Self> {
        Ok(match method {
            FlowMethod::Write => Self::Write(Vec::new()),
            FlowMethod::Writev => Self::Writev(Vec::new()),
            FlowMethod::Sendfile => {
                let file = memfd::memfd_with("lr-flow", &[]).map_err(io::Error::other)?;
                Self::Sendfile { file: file.into(), place: 0 }
            }
            FlowMethod::ZeroCopy => {
                zerocopy::enable(socket).map_err(io::Error::other)?;
                Self::ZeroCopy(ZeroCopy::default())
            }
            FlowMethod::Splice => Self::Splice { pipe: PagePipe::new().map_err(io::Error::other)?, start: 0 },
        })
    }

    /// Sends the `size` bytes that stand at `offset`; returns how many went, fewer only when it was stopped.
    pub(super) fn send(
        &mut self,
        shared: &Shared,
        socket: &Socket,
        key: Key,
        offset: u64,
        size: usize,
    ) -> io::Result<usize> {
        match self {
            Self::Write(buffer) => {
                made(buffer, key, offset, size);
                push(shared, size, |done| socket.send_with_flags(&buffer[done..], NO_SIGNAL))
            }
            Self::Writev(buffer) => {
                made(buffer, key, offset, size);
                push(shared, size, |done| {
                    socket.send_vectored_with_flags(&pieces(&buffer[done..]), NO_SIGNAL)
                })
            }
            Self::Sendfile { file, place } => {
                let mut bytes = vec![0; size];
                key.fill(offset, &mut bytes);
                file.write_all_at(&bytes, *place)?;
                let from = *place;
                let sent = push(shared, size, |done| {
                    memfd::send_file(socket, &*file, from + done as u64, size - done)
                });
                // The receiver may still have the pages: the next write goes to new ones.
                let page = splice::page_bytes() as u64;
                let (first, end) = (from / page * page, (from + size as u64).next_multiple_of(page));
                memfd::punch(&*file, first, end - first).map_err(io::Error::other)?;
                *place = end + (from + WANDER as u64) % page;
                sent
            }
            Self::ZeroCopy(state) => state.send(shared, socket, key, offset, size),
            Self::Splice { pipe, start } => splice_all(shared, socket, pipe, start, key, offset, size),
        }
    }

    /// Waits until the kernel needs the memory no more.
    pub(super) fn settle(&mut self, shared: &Shared, socket: &Socket) -> io::Result<()> {
        match self {
            Self::ZeroCopy(state) => state.settle(shared, socket),
            _ => Ok(()),
        }
    }
}

const NO_SIGNAL: i32 = nix::libc::MSG_NOSIGNAL;

fn made(buffer: &mut Vec<u8>, key: Key, offset: u64, size: usize) {
    buffer.resize(size, 0);
    key.fill(offset, buffer);
}

pub(super) fn pieces(mut bytes: &[u8]) -> Vec<IoSlice<'_>> {
    let mut pieces = Vec::new();
    for size in PIECES.iter().cycle().take(MOST_PIECES) {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(IoSlice::new(piece));
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    pieces
}

/// Calls until all has gone; `call` is told how much has.
fn push(shared: &Shared, size: usize, mut call: impl FnMut(usize) -> io::Result<usize>) -> io::Result<usize> {
    let mut done = 0;
    while done < size {
        match call(done) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(sent) => {
                done += sent;
                shared.sent(sent);
            }
            Err(error) if is_wait(&error) => {
                if shared.stopped() {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The call's time is over without room or input, or a signal came.
pub(super) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn splice_all(
    shared: &Shared,
    socket: &Socket,
    pipe: &PagePipe,
    start: &mut usize,
    key: Key,
    offset: u64,
    size: usize,
) -> io::Result<usize> {
    let page = splice::page_bytes();
    let mut done = 0;
    while done < size {
        let length = (size - done).min((SPLICE_PAGES - 1) * page);
        *start = (*start + WANDER) % page;
        let mut pages = Pages::new(*start + length).map_err(io::Error::other)?;
        key.fill(offset + done as u64, &mut pages[*start..]);
        let put = pipe.put(&pages, *start)?;
        // They are the pipe's now, and then the receiver's.
        drop(pages);
        let sent = push(shared, put, |gone| pipe.send(socket, put - gone))?;
        done += sent;
        if sent < put {
            break;
        }
    }
    Ok(done)
}

/// Buffers that are filled again only when the kernel has told that it needs them no more.
#[derive(Default)]
pub(super) struct ZeroCopy {
    buffers: Vec<Vec<u8>>,
    /// Calls of each buffer that are not completed.
    pending: Vec<u32>,
    /// Buffer of each call that is not completed, by the kernel's number.
    calls: BTreeMap<u32, usize>,
    next_call: u32,
}

impl ZeroCopy {
    fn send(
        &mut self,
        shared: &Shared,
        socket: &Socket,
        key: Key,
        offset: u64,
        size: usize,
    ) -> io::Result<usize> {
        let Some(index) = self.free(shared, socket)? else { return Ok(0) };
        made(&mut self.buffers[index], key, offset, size);
        let mut done = 0;
        while done < size {
            match zerocopy::send(socket, &self.buffers[index][done..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => {
                    self.sent_call(index);
                    done += sent;
                    shared.sent(sent);
                }
                Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => {
                    if shared.stopped() {
                        break;
                    }
                    self.await_completion(shared, socket)?;
                }
                Err(error) if is_wait(&error) => {
                    if shared.stopped() {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        self.collect(shared, socket)?;
        Ok(done)
    }

    /// Sends one datagram; 0 when it was stopped.
    pub(super) fn send_whole(
        &mut self,
        shared: &Shared,
        socket: &impl AsFd,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let Some(index) = self.free(shared, socket)? else { return Ok(0) };
        self.buffers[index].clear();
        self.buffers[index].extend_from_slice(bytes);
        let sent = match zerocopy::send(socket, &self.buffers[index]) {
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => {
                self.await_completion(shared, socket)?;
                return Err(error);
            }
            other => other?,
        };
        self.sent_call(index);
        self.collect(shared, socket)?;
        Ok(sent)
    }

    fn sent_call(&mut self, index: usize) {
        self.calls.insert(self.next_call, index);
        self.next_call = self.next_call.wrapping_add(1);
        self.pending[index] += 1;
    }

    /// A buffer that the kernel does not need; `None` when it was stopped.
    fn free(&mut self, shared: &Shared, socket: &impl AsFd) -> io::Result<Option<usize>> {
        if self.buffers.len() < ZEROCOPY_BUFFERS {
            self.buffers.push(Vec::new());
            self.pending.push(0);
            return Ok(Some(self.buffers.len() - 1));
        }
        loop {
            if let Some(index) = self.pending.iter().position(|calls| *calls == 0) {
                return Ok(Some(index));
            }
            if shared.stopped() {
                return Ok(None);
            }
            self.await_completion(shared, socket)?;
        }
    }

    pub(super) fn settle(&mut self, shared: &Shared, socket: &impl AsFd) -> io::Result<()> {
        while !self.calls.is_empty() && !shared.aborted() {
            self.await_completion(shared, socket)?;
        }
        Ok(())
    }

    fn await_completion(&mut self, shared: &Shared, socket: &impl AsFd) -> io::Result<()> {
        let mut set = PollSet::new();
        set.add(socket.as_fd(), Readiness::NONE);
        let before = self.calls.len();
        set.wait(Some(TICK.as_nanos() as u64))?;
        self.collect(shared, socket)?;
        if self.calls.len() == before {
            // What woke us was no completion: the connection is broken.
            let broken = sockopt::take_error(socket).map_err(io::Error::other)?;
            return broken.map_or(Ok(()), Err);
        }
        Ok(())
    }

    fn collect(&mut self, shared: &Shared, socket: &impl AsFd) -> io::Result<()> {
        while let Some(completed) = zerocopy::completed(socket)? {
            if completed.copied {
                shared.copied.fetch_add(completed.calls(), Relaxed);
            }
            for step in 0..completed.calls().min(u64::from(u32::MAX)) as u32 {
                let Some(index) = self.calls.remove(&completed.first.wrapping_add(step)) else { continue };
                self.pending[index] -= 1;
            }
        }
        Ok(())
    }
}
