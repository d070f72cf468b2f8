//! The slave's side of a control connection: bytes in, bytes and actions out.
//!
//! ```text
//! P1 -> ack | P2 header, group, transactions, flowops, ports -> Prepare -> ack, ports | end -> end | commands | goodbye
//! ```

use crate::uperf::wire::{
    Ack, COMMAND_BYTES, Command, END_BYTES, GROUP_BYTES, Goodbye, GroupHead, HEADER_PREFIX, Header, Layout,
    Order, Phase, Ports, SLAVE_INFO_BYTES, TRANSACTION_BYTES, TransactionHead, WireError, decode_flowop,
    decode_ports, detect, encode_p2_ack,
};
use crate::uperf::workorder::{Group, Kind, Protocol};

/// Bytes of a first flowop by which layouts are told apart.
const DETECT_BYTES: usize = 928;

const MOST_TRANSACTIONS: u32 = 1000;
const MOST_FLOWOPS: u32 = 1000;

/// What a slave is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workorder {
    /// The group, as this side executes it.
    pub group: Group,
    /// The master's ports, one record a strand; none where the slave accepts.
    pub ports: Vec<Ports>,
}

/// What is to be done by whoever pumps the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlaveAction {
    /// Send these bytes, in one call.
    Send(Vec<u8>),
    /// Open listeners and start strands, then call [`SlaveMachine::prepared`].
    Prepare(Box<Workorder>),
    /// The handshake is over: time begins.
    Begin,
    /// Let the strands begin this transaction; what still runs of earlier ones ends.
    Release(u32),
    /// Let the strands finish, then call [`SlaveMachine::finished`].
    Finish,
    /// End the strands, then call [`SlaveMachine::finished`]. The text is why, if it is the master's fault.
    Kill(Option<String>),
    /// Close the connection.
    Close,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Header,
    Group {
        infos: u32,
    },
    Transaction,
    Flowop {
        left: u32,
    },
    Infos,
    Preparing,
    End,
    Running,
    /// Strands are finishing; what the master says does not matter any more.
    Finishing,
    Over,
}

/// The state of one control connection.
#[derive(Debug)]
pub struct SlaveMachine {
    state: State,
    input: Vec<u8>,
    most_strands: u32,
    order: Order,
    layout: Option<Layout>,
    refused: bool,
    head: Option<GroupHead>,
    infos: u32,
    work: Workorder,
}

impl SlaveMachine {
    /// Waits for P1. Workorders of more than `most_strands` strands are refused.
    pub fn new(most_strands: u32) -> Self {
        Self {
            state: State::Header,
            input: Vec::new(),
            most_strands,
            order: Order::native(),
            layout: None,
            refused: false,
            head: None,
            infos: 0,
            work: Workorder { group: Group::default(), ports: Vec::new() },
        }
    }

    /// Takes bytes from the master.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<SlaveAction> {
        self.input.extend_from_slice(bytes);
        let mut actions = Vec::new();
        while let Some(step) = self.step() {
            actions.extend(step);
        }
        if matches!(self.state, State::Finishing | State::Over) {
            self.input.clear();
        }
        actions
    }

    /// The master closed.
    pub fn closed(&mut self) -> Vec<SlaveAction> {
        match self.state {
            State::Running => {
                self.state = State::Finishing;
                vec![SlaveAction::Kill(None)]
            }
            State::Finishing => Vec::new(),
            _ => {
                self.state = State::Over;
                vec![SlaveAction::Close]
            }
        }
    }

    /// The strands wait at their first barrier and these are their ports, or it failed.
    pub fn prepared(&mut self, outcome: Result<Vec<Ports>, String>) -> Vec<SlaveAction> {
        let (ack, ports) = match outcome {
            Ok(ports) => (Ack::yes(), ports),
            Err(message) => (Ack::no(message), Vec::new()),
        };
        let answer = SlaveAction::Send(encode_p2_ack(&ack, &ports, self.order));
        if !ack.ok {
            self.state = State::Over;
            return vec![answer, SlaveAction::Close];
        }
        self.state = State::End;
        let mut actions = vec![answer];
        actions.extend(self.receive(&[]));
        actions
    }

    /// The strands are over, and this is what they did.
    pub fn finished(&mut self, goodbye: &Goodbye) -> Vec<SlaveAction> {
        self.state = State::Over;
        vec![SlaveAction::Send(goodbye.encode(self.order)), SlaveAction::Close]
    }

    /// The layout that the master speaks, once it is known.
    pub fn layout(&self) -> Option<Layout> {
        self.layout
    }

    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        (self.input.len() >= count).then(|| self.input.drain(..count).collect())
    }

    /// Does one message; none when more bytes are needed.
    fn step(&mut self) -> Option<Vec<SlaveAction>> {
        match self.state.clone() {
            State::Header => self.header(),
            State::Group { infos } => {
                let bytes = self.take(GROUP_BYTES)?;
                Some(self.group(&bytes, infos))
            }
            State::Transaction => {
                let bytes = self.take(TRANSACTION_BYTES)?;
                Some(self.transaction(&bytes))
            }
            State::Flowop { left } => self.flowop(left),
            State::Infos => {
                if self.work.ports.len() == self.infos as usize {
                    self.state = State::Preparing;
                    return Some(vec![SlaveAction::Prepare(Box::new(self.work.clone()))]);
                }
                let bytes = self.take(SLAVE_INFO_BYTES)?;
                Some(match decode_ports(&bytes, self.order) {
                    Ok(ports) => {
                        self.work.ports.push(ports);
                        Vec::new()
                    }
                    Err(e) => self.refuse_work(e),
                })
            }
            State::End => {
                self.take(END_BYTES)?;
                self.state = State::Running;
                Some(vec![SlaveAction::Send(vec![0; END_BYTES]), SlaveAction::Begin])
            }
            State::Running => {
                let bytes = self.take(COMMAND_BYTES)?;
                Some(self.command(&bytes))
            }
            State::Preparing | State::Finishing | State::Over => None,
        }
    }

    fn header(&mut self) -> Option<Vec<SlaveAction>> {
        let header = match Header::decode(self.input.get(..HEADER_PREFIX)?) {
            Ok(header) => header,
            Err(e) => {
                self.state = State::Over;
                let answer = Ack::no(e.to_string()).encode();
                return Some(vec![SlaveAction::Send(answer), SlaveAction::Close]);
            }
        };
        let length = if header.is_long() { Layout::A } else { Layout::F }.header_bytes();
        self.take(length)?;
        self.order = header.order;
        self.layout = header.is_long().then_some(Layout::A);
        if header.phase == Phase::Two && !self.refused {
            self.state = State::Group { infos: header.infos };
            return Some(Vec::new());
        }
        let ack = self.judge(&header);
        self.refused |= !ack.ok;
        Some(vec![SlaveAction::Send(ack.encode())])
    }

    fn judge(&self, header: &Header) -> Ack {
        let version = &header.version;
        if *version != Layout::A.version() && *version != Layout::F.version() {
            let own = Layout::F.version();
            return Ack::no(format!("Version {own} is incompatible with master data version {version}"));
        }
        let refused = header.protocols.iter().find_map(|n| crate::uperf::wire::offered(*n).err());
        match refused {
            Some(message) => Ack::no(message),
            None if self.refused => Ack::no("refused before"),
            None => Ack::yes(),
        }
    }

    fn group(&mut self, bytes: &[u8], infos: u32) -> Vec<SlaveAction> {
        let head = match GroupHead::decode(bytes) {
            Ok(head) => head,
            Err(e) => return self.refuse_work(e),
        };
        let most = self.most_strands;
        let checks = [
            ("threads", head.strands, most),
            ("transactions", head.transactions, MOST_TRANSACTIONS),
            ("records of ports", infos, head.strands),
        ];
        for (what, number, most) in checks {
            if number > most {
                return self.refuse_work(WireError::TooMany {
                    what,
                    number: number.into(),
                    most: most.into(),
                });
            }
        }
        self.head = Some(head);
        self.infos = infos;
        self.work.group = Group { strands: head.strands, processes: head.processes, ..Group::default() };
        self.state = self.after_transaction();
        Vec::new()
    }

    fn after_transaction(&self) -> State {
        let wanted = self.head.map_or(0, |h| h.transactions);
        if (self.work.group.transactions.len() as u32) < wanted { State::Transaction } else { State::Infos }
    }

    fn transaction(&mut self, bytes: &[u8]) -> Vec<SlaveAction> {
        let head = match TransactionHead::decode(bytes, self.order) {
            Ok(head) => head,
            Err(e) => return self.refuse_work(e),
        };
        if head.flowops > MOST_FLOWOPS {
            let (number, most) = (head.flowops.into(), MOST_FLOWOPS.into());
            return self.refuse_work(WireError::TooMany { what: "flowops", number, most });
        }
        self.work.group.transactions.push(head.transaction);
        self.state =
            if head.flowops > 0 { State::Flowop { left: head.flowops } } else { self.after_transaction() };
        Vec::new()
    }

    fn flowop(&mut self, left: u32) -> Option<Vec<SlaveAction>> {
        let layout = match self.layout {
            Some(layout) => layout,
            None => {
                let first = self.input.get(..DETECT_BYTES)?;
                *self.layout.insert(detect(first, self.order).unwrap_or(Layout::F))
            }
        };
        let bytes = self.take(layout.flowop_bytes())?;
        let flowop = match decode_flowop(&bytes, layout, self.order) {
            Ok(flowop) => flowop,
            Err(e) => return Some(self.refuse_work(e)),
        };
        // A master's sendfile is a slave's read: whoever asks for another wants to see our files.
        if matches!(flowop.kind, Kind::Sendfile | Kind::Sendfilev) {
            return Some(self.refuse_text("a slave sends no files".to_owned()));
        }
        if flowop.kind.opens() && !flowop.protocol.is_offered() {
            let name = Protocol::title(flowop.protocol);
            return Some(self.refuse_text(format!("Unsupported protocol:{name}")));
        }
        if let Some(transaction) = self.work.group.transactions.last_mut() {
            transaction.flowops.push(flowop);
        }
        self.state = if left > 1 { State::Flowop { left: left - 1 } } else { self.after_transaction() };
        Some(Vec::new())
    }

    fn refuse_work(&mut self, error: WireError) -> Vec<SlaveAction> {
        self.refuse_text(error.to_string())
    }

    fn refuse_text(&mut self, message: String) -> Vec<SlaveAction> {
        self.state = State::Preparing;
        self.prepared(Err(message))
    }

    fn command(&mut self, bytes: &[u8]) -> Vec<SlaveAction> {
        match Command::decode(bytes, self.order) {
            // Masters tell every slave, also those that have fewer transactions.
            Ok(Command::Next(index)) if index as usize >= self.work.group.transactions.len() => Vec::new(),
            Ok(Command::Next(index)) => vec![SlaveAction::Release(index)],
            Ok(Command::SendStats) => {
                self.state = State::Finishing;
                vec![SlaveAction::Finish]
            }
            Ok(Command::Abort) => {
                self.state = State::Finishing;
                vec![SlaveAction::Kill(None)]
            }
            Err(e) => {
                self.state = State::Finishing;
                vec![SlaveAction::Kill(Some(e.to_string()))]
            }
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
