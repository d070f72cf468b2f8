//! TCP and UDP that run while something else is done, and are looked at after each step.

use std::time::{Duration, Instant};

use linerate_model::qualification::ReasonCode;
use linerate_model::trial::Side;

use super::{Bench, FlowAsk, FlowPair};
use crate::frame::Version;
use crate::trouble::Trouble;

/// Traffic that does not move for so long stands, on a fast machine.
const STANDS: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The TCP flow's most bits a second each way: the machine must have time for what else is done.
const TCP_BITS_PER_SECOND: u64 = 100_000_000;

/// Flows that run.
#[derive(Debug)]
pub struct Running {
    flows: Vec<FlowPair>,
}

impl Bench {
    /// Starts a TCP and a UDP flow both ways, over the first IP version that the links have.
    ///
    /// # Errors
    /// As [`Bench::start_flow`].
    pub fn start_running(&mut self) -> Result<Running, Trouble> {
        let has = |version: &Version| self.addresses(*version).is_ok();
        let version = [Version::V4, Version::V6].into_iter().find(has).unwrap_or(Version::V4);
        let tcp = FlowAsk { bits_per_second: TCP_BITS_PER_SECOND, ..FlowAsk::tcp(version) };
        let flows = vec![self.start_flow(&tcp)?, self.start_flow(&FlowAsk::udp(version))?];
        Ok(Running { flows })
    }

    /// Whether each flow still moves both ways, and every byte so far is right; `when` tells after what. What is not is a
    /// fault, told once: the caller then has nothing more to find.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`].
    pub fn still_running(&mut self, running: &Running, when: &str) -> Result<bool, Trouble> {
        for pair in &running.flows {
            for side in [Side::Dut, Side::Peer] {
                if !self.moves(pair, side, when)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn moves(&mut self, pair: &FlowPair, side: Side, when: &str) -> Result<bool, Trouble> {
        let give_up = Instant::now() + self.patient(STANDS);
        let station = self.station(side);
        let name = station.name();
        let flow = if side == Side::Dut { pair.dut } else { pair.peer };
        let transport = pair.ask.transport;
        let first = station.look_at_flow(flow)?;
        loop {
            let now = self.station(side).look_at_flow(flow)?;
            if let Some(wrong) = now.first_wrong {
                let text = format!(
                    "{transport:?} at the {name} {when}: byte {} of connection {} is {:#04x}, was sent as {:#04x}",
                    wrong.offset, wrong.connection, wrong.got, wrong.expected
                );
                self.fail(ReasonCode::Data, text);
                return Ok(false);
            }
            if now.received_bytes > first.received_bytes {
                return Ok(true);
            }
            if Instant::now() >= give_up {
                self.fail(ReasonCode::StuckRx, format!("{transport:?} at the {name} stands {when}"));
                return Ok(false);
            }
            self.sleep(LOOK_EVERY)?;
        }
    }

    /// Ends the flows and judges them as [`Bench::finish_flow`] does.
    ///
    /// # Errors
    /// As [`Bench::finish_flow`].
    pub fn finish_running(&mut self, running: &Running) -> Result<(), Trouble> {
        for pair in &running.flows {
            self.finish_flow(pair, Duration::from_secs(10))?;
        }
        Ok(())
    }
}
