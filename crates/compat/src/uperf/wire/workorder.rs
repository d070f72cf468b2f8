//! Groups, transactions and flowops.

use crate::uperf::wire::bytes::{Builder, ENDIAN, Fields, Order};
use crate::uperf::wire::layout::HOST_AFTER_SCTP;
use crate::uperf::wire::{Layout, WireError};
use crate::uperf::workorder::{Flowop, Group, Kind, Protocol, Sctp, Transaction};

/// Bytes of a group's head.
pub const GROUP_BYTES: usize = 24;
/// Bytes of a transaction's head.
pub const TRANSACTION_BYTES: usize = 168;

const THREADS: u32 = 4;
const PROCESSES: u32 = 2;

/// Distances from SCTP's words, the same in all layouts.
const STREAMS: usize = 36;
const PR_VALUE: usize = 44;
const PR_POLICY: usize = 48;
const CONGESTION: usize = 56;
const STACK: usize = 88;
const FOLDER: usize = 120;
const LOCAL_HOST: usize = HOST_AFTER_SCTP + 256;
const ENGINE: usize = LOCAL_HOST + 256;
const CIPHER: usize = ENGINE + 20;
const METHOD: usize = CIPHER + 50;

/// What a group's head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupHead {
    /// The master's byte order, again.
    pub order: Order,
    /// Strands are processes.
    pub processes: bool,
    /// Number of strands.
    pub strands: u32,
    /// Number of transactions.
    pub transactions: u32,
}

impl GroupHead {
    /// Reads it.
    ///
    /// # Errors
    /// Cut short, or neither byte order.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let order = Order::from_word(Fields::new(bytes, GROUP_BYTES, Order::Little)?.raw(0))?;
        let fields = Fields::new(bytes, GROUP_BYTES, order)?;
        Ok(Self {
            order,
            processes: fields.u32(4) & PROCESSES != 0,
            strands: fields.u32(8),
            transactions: fields.u32(12),
        })
    }

    fn encode(group: &Group, order: Order) -> Vec<u8> {
        let mut out = Builder::new(GROUP_BYTES, order);
        out.u32(0, ENDIAN);
        out.u32(4, if group.processes { PROCESSES } else { THREADS });
        out.u32(8, group.strands);
        out.u32(12, group.transactions.len() as u32);
        // The group's id stays 0: a slave has one group, and fires the timers of that id only.
        out.done()
    }
}

/// What a transaction's head says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionHead {
    /// Flowops that follow.
    pub flowops: u32,
    /// The transaction without them.
    pub transaction: Transaction,
}

impl TransactionHead {
    /// Reads it.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, WireError> {
        let fields = Fields::new(bytes, TRANSACTION_BYTES, order)?;
        let transaction = Transaction {
            iterations: fields.u64(24),
            duration_ns: fields.u64(32),
            rate: fields.u32(16),
            rate_text: fields.text(40, 128),
            flowops: Vec::new(),
        };
        Ok(Self { flowops: fields.u32(0), transaction })
    }

    fn encode(transaction: &Transaction, index: usize, order: Order) -> Vec<u8> {
        let mut out = Builder::new(TRANSACTION_BYTES, order);
        out.u32(0, transaction.flowops.len() as u32);
        out.u32(4, index as u32);
        out.u32(16, transaction.rate);
        out.u64(24, transaction.iterations);
        out.u64(32, transaction.duration_ns);
        out.text(40, 128, &transaction.rate_text);
        out.done()
    }
}

/// Writes a group with all that belongs to it.
pub fn encode_workorder(group: &Group, layout: Layout, order: Order) -> Vec<u8> {
    let mut bytes = GroupHead::encode(group, order);
    for (index, transaction) in group.transactions.iter().enumerate() {
        bytes.extend(TransactionHead::encode(transaction, index, order));
        for flowop in &transaction.flowops {
            bytes.extend(encode_flowop(flowop, layout, order));
        }
    }
    bytes
}

fn encode_flowop(flowop: &Flowop, layout: Layout, order: Order) -> Vec<u8> {
    let at = layout.offsets();
    let mut out = Builder::new(at.total, order);
    let words = [
        flowop.size,
        flowop.random.0,
        flowop.random.1,
        flowop.rsize,
        flowop.protocol as u32,
        flowop.port,
        flowop.flags,
        flowop.files,
    ];
    for (index, word) in words.iter().enumerate() {
        out.u32(index * 4, *word);
    }
    out.u32(at.encapsulation, flowop.encapsulation_port);
    out.u64(at.duration, flowop.duration_ns);
    out.u64(at.duration + 8, flowop.window);
    out.u64(at.duration + 16, flowop.count);
    if let Some(at) = at.repeat {
        out.u64(at, flowop.repeat);
    }
    if let Some(at) = at.batch {
        out.u64(at, flowop.batch);
    }
    out.u64(at.timeout, flowop.timeout_ns);
    if let Some(at) = at.bblog {
        out.u32(at, flowop.bblog);
    }
    let sctp = &flowop.sctp;
    for (index, word) in sctp.words.iter().enumerate() {
        out.u32(at.sctp + index * 4, *word);
    }
    for (index, word) in sctp.streams.iter().enumerate() {
        out.u16(at.sctp + STREAMS + index * 2, *word);
    }
    out.u32(at.sctp + PR_VALUE, sctp.pr_value);
    let texts = [
        (PR_POLICY, 8, &sctp.pr_policy),
        (CONGESTION, 32, &flowop.congestion),
        (STACK, 32, &flowop.stack),
        (FOLDER, 128, &flowop.folder),
        (HOST_AFTER_SCTP, 256, &flowop.remote_host),
        (LOCAL_HOST, 256, &flowop.local_host),
        (ENGINE, 20, &flowop.engine),
        (CIPHER, 50, &flowop.cipher),
        (METHOD, 5, &flowop.method),
    ];
    for (offset, length, text) in texts {
        out.text(at.sctp + offset, length, text);
    }
    out.u32(at.kind, flowop.kind as u32);
    out.u32(at.kind + 4, flowop.connection);
    out.done()
}

/// Reads a flowop.
///
/// # Errors
/// Cut short, or of a kind or protocol that is none.
pub fn decode_flowop(bytes: &[u8], layout: Layout, order: Order) -> Result<Flowop, WireError> {
    let at = layout.offsets();
    let fields = Fields::new(bytes, at.total, order)?;
    let number = fields.u32(at.kind);
    let kind = Kind::from_number(number).ok_or(WireError::Unknown { what: "flowop", number })?;
    let number = fields.u32(16);
    let protocol = Protocol::from_number(number).ok_or(WireError::Unknown { what: "protocol", number })?;
    let text = |offset, length| fields.text(at.sctp + offset, length);
    Ok(Flowop {
        kind,
        size: fields.u32(0),
        random: (fields.u32(4), fields.u32(8)),
        rsize: fields.u32(12),
        protocol,
        port: fields.u32(20),
        flags: fields.u32(24),
        files: fields.u32(28),
        encapsulation_port: fields.u32(at.encapsulation),
        duration_ns: fields.u64(at.duration),
        window: fields.u64(at.duration + 8),
        count: fields.u64(at.duration + 16),
        repeat: at.repeat.map_or(1, |at| fields.u64(at)),
        batch: at.batch.map_or(1, |at| fields.u64(at)),
        timeout_ns: fields.u64(at.timeout),
        bblog: at.bblog.map_or(0, |at| fields.u32(at)),
        sctp: Sctp {
            words: std::array::from_fn(|index| fields.u32(at.sctp + index * 4)),
            streams: std::array::from_fn(|index| fields.u16(at.sctp + STREAMS + index * 2)),
            pr_value: fields.u32(at.sctp + PR_VALUE),
            pr_policy: text(PR_POLICY, 8),
        },
        congestion: text(CONGESTION, 32),
        stack: text(STACK, 32),
        folder: text(FOLDER, 128),
        remote_host: text(HOST_AFTER_SCTP, 256),
        local_host: text(LOCAL_HOST, 256),
        engine: text(ENGINE, 20),
        cipher: text(CIPHER, 50),
        method: text(METHOD, 5),
        connection: fields.u32(at.kind + 4),
    })
}
