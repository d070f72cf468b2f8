//! The master's side of a control connection: bytes in, bytes and events out.

use crate::uperf::wire::{
    ACK_BYTES, Ack, Command, END_BYTES, GOODBYE_BYTES, Goodbye, Header, Layout, Order, P2_ACK_BYTES, Phase,
    Ports, SLAVE_INFO_BYTES, WireError, decode_p2_ack, decode_ports, encode_ports, encode_workorder,
};
use crate::uperf::workorder::Group;

/// What a slave said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MasterEvent {
    /// P1 is fine: [`MasterMachine::second`] is next.
    Accepted,
    /// It will not: why.
    Refused(String),
    /// Strands and listeners are there, with these ports; [`MasterMachine::end`] is next.
    Prepared(Vec<Ports>),
    /// The handshake is over: commands are next.
    Ready,
    /// Its figures.
    Goodbye(Box<Goodbye>),
    /// It spoke or closed when it should not have.
    Aborted,
    /// What it said can't be.
    Malformed(WireError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    First,
    Second,
    Infos(u32),
    /// Nothing is to come until we send the end.
    Prepared,
    End,
    /// A slave is silent while it runs.
    Running,
    Goodbye,
    Over,
}

/// The state of one control connection.
#[derive(Debug)]
pub struct MasterMachine {
    state: State,
    input: Vec<u8>,
    layout: Layout,
    order: Order,
    strands: u32,
    ports: Vec<Ports>,
}

impl MasterMachine {
    /// For a slave of that layout, and a group of that many strands.
    pub fn new(layout: Layout, order: Order, strands: u32) -> Self {
        Self { state: State::First, input: Vec::new(), layout, order, strands, ports: Vec::new() }
    }

    /// The layout that it speaks.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// P1, to be sent first.
    pub fn first(&self, group: &Group) -> Vec<u8> {
        self.header(Phase::One, 0, group.protocols().iter().map(|p| *p as u32).collect())
    }

    /// P2 with the workorder and, where the master accepts, its ports.
    pub fn second(&mut self, far: &Group, ports: &[Ports]) -> Vec<u8> {
        self.state = State::Second;
        let mut bytes = self.header(Phase::Two, ports.len() as u32, Vec::new());
        bytes.extend(encode_workorder(far, self.layout, self.order));
        bytes.extend(ports.iter().flat_map(|p| encode_ports(p, self.order)));
        bytes
    }

    fn header(&self, phase: Phase, infos: u32, protocols: Vec<u32>) -> Vec<u8> {
        let version = self.layout.version().to_owned();
        Header { order: self.order, phase, infos, protocols, version }.encode(self.layout)
    }

    /// The end of the handshake.
    pub fn end(&mut self) -> Vec<u8> {
        self.state = State::End;
        vec![0; END_BYTES]
    }

    /// A command, to be sent in one call. After [`Command::SendStats`] or [`Command::Abort`] a goodbye is due.
    pub fn command(&mut self, command: Command) -> Vec<u8> {
        if command != Command::SendStats && command != Command::Abort {
            return command.encode(self.order);
        }
        self.state = State::Goodbye;
        command.encode(self.order)
    }

    /// Takes bytes from the slave.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<MasterEvent> {
        self.input.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(event) = self.step() {
            match event {
                Ok(Some(event)) => events.push(event),
                Ok(None) => {}
                Err(e) => {
                    self.state = State::Over;
                    events.push(MasterEvent::Malformed(e));
                }
            }
        }
        events
    }

    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        (self.input.len() >= count).then(|| self.input.drain(..count).collect())
    }

    fn step(&mut self) -> Option<Result<Option<MasterEvent>, WireError>> {
        match self.state {
            State::First => {
                let ack = Ack::decode(&self.take(ACK_BYTES)?);
                Some(ack.map(|ack| Some(self.judge(ack, State::Prepared, MasterEvent::Accepted))))
            }
            State::Second => {
                let bytes = self.take(P2_ACK_BYTES)?;
                Some(self.second_ack(&bytes))
            }
            State::Infos(0) => {
                self.state = State::Prepared;
                Some(Ok(Some(MasterEvent::Prepared(std::mem::take(&mut self.ports)))))
            }
            State::Infos(left) => {
                let bytes = self.take(SLAVE_INFO_BYTES)?;
                Some(decode_ports(&bytes, self.order).map(|ports| {
                    self.ports.push(ports);
                    self.state = State::Infos(left - 1);
                    None
                }))
            }
            State::End => {
                self.take(END_BYTES)?;
                self.state = State::Running;
                Some(Ok(Some(MasterEvent::Ready)))
            }
            State::Goodbye => {
                let bytes = self.take(GOODBYE_BYTES)?;
                self.state = State::Over;
                let goodbye = Goodbye::decode(&bytes, self.order);
                Some(goodbye.map(|g| Some(MasterEvent::Goodbye(Box::new(g)))))
            }
            State::Prepared | State::Running => {
                if self.input.is_empty() {
                    return None;
                }
                // What it says is its goodbye, if anything.
                self.state = State::Goodbye;
                Some(Ok(Some(MasterEvent::Aborted)))
            }
            State::Over => None,
        }
    }

    fn judge(&mut self, ack: Ack, next: State, event: MasterEvent) -> MasterEvent {
        if !ack.ok {
            self.state = State::Over;
            return MasterEvent::Refused(ack.message);
        }
        self.state = next;
        event
    }

    fn second_ack(&mut self, bytes: &[u8]) -> Result<Option<MasterEvent>, WireError> {
        let (ack, infos) = decode_p2_ack(bytes, self.order)?;
        if !ack.ok {
            self.state = State::Over;
            return Ok(Some(MasterEvent::Refused(ack.message)));
        }
        if infos > self.strands {
            let (number, most) = (infos.into(), self.strands.into());
            return Err(WireError::TooMany { what: "records of ports", number, most });
        }
        self.state = State::Infos(infos);
        Ok(None)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
