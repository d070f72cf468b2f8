//! One tool doing one work once, with the same window cut out of its middle for every tool.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use linerate_testkit::ChildGuard;

use super::{
    counters::{Counted, Snapshot},
    figures::Figures,
    place::Place,
    tools::Tool,
    work::Work,
};

/// How long each tool is told to run.
const RUN_SECONDS: u32 = 3;
/// From the first traffic to the window: slow start and start-up of threads are over.
const SETTLE: Duration = Duration::from_millis(600);
/// Over which everything is counted.
const WINDOW: Duration = Duration::from_secs(2);
/// Packets that no greeting between client and server needs.
const TRAFFIC_PACKETS: u64 = 500;
const START_LIMIT: Duration = Duration::from_secs(10);
const END_LIMIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What came of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Counted from outside, over the window.
    pub(crate) counted: Counted,
    /// What the tool said, over its whole run.
    pub(crate) figures: Figures,
}

/// Set by Ctrl-C.
pub(crate) type Interrupted<'a> = &'a AtomicBool;

/// Runs a tool.
pub(crate) fn run(tool: Tool, work: Work, place: &Place, interrupted: Interrupted<'_>) -> Result<Turn> {
    let plan = tool.plan(work, place, RUN_SECONDS);
    let server =
        plan.server.map(|(command, port)| start_server(command, port, place, interrupted)).transpose()?;
    let packets_before = Snapshot::packets_so_far(place);
    let mut clients: Vec<_> = plan.clients.into_iter().map(ChildGuard::spawn).collect();

    let has_traffic = || Snapshot::packets_so_far(place) >= packets_before + TRAFFIC_PACKETS;
    wait(START_LIMIT, "traffic", interrupted, || Ok(has_traffic() || has_ended(&mut clients)))?;
    ensure_running(&mut clients)?;
    thread::sleep(SETTLE);
    let roots: Vec<_> = server.iter().chain(&clients).map(ChildGuard::pid).collect();
    let start = Snapshot::take(place, &roots)?;
    thread::sleep(WINDOW);
    let end = Snapshot::take(place, &roots)?;
    ensure_running(&mut clients).context("before the window was over")?;

    let outputs =
        clients.into_iter().map(|client| output(client, interrupted)).collect::<Result<Vec<_>>>()?;
    let figures = Figures::read(tool, work, &outputs)?;
    Ok(Turn { counted: start.until(&end, work.unit(), place), figures })
}

fn start_server(
    command: Command,
    port: u16,
    place: &Place,
    interrupted: Interrupted<'_>,
) -> Result<ChildGuard> {
    let mut server = ChildGuard::spawn(command);
    wait(START_LIMIT, "a listening server", interrupted, || {
        if !server.is_running() {
            bail!("the server ended: {}", said(&server));
        }
        Ok(["tcp", "tcp6", "udp", "udp6"].iter().any(|table| is_bound(&place.server_net(table), port)))
    })?;
    Ok(server)
}

/// Whether a socket of a table such as `/proc/net/tcp` (proc_pid_net(5)) listens at a port, or is bound to it without a
/// peer (states 0A and 07).
fn is_bound(table: &str, port: u16) -> bool {
    let ending = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_local = fields.next().is_some_and(|local| local.ends_with(&ending));
        is_local && fields.nth(1).is_some_and(|state| matches!(state, "0A" | "07"))
    })
}

fn output(mut client: ChildGuard, interrupted: Interrupted<'_>) -> Result<String> {
    wait(END_LIMIT, "the client's end", interrupted, || Ok(!client.is_running()))?;
    let finished = client.wait_within(END_LIMIT);
    ensure!(
        finished.success(),
        "the client ended with {}: {}",
        finished.status,
        first_lines(&finished.output())
    );
    Ok(finished.stdout)
}

fn ensure_running(clients: &mut [ChildGuard]) -> Result<()> {
    for client in clients {
        ensure!(client.is_running(), "a client ended: {}", said(client));
    }
    Ok(())
}

fn has_ended(clients: &mut [ChildGuard]) -> bool {
    clients.iter_mut().any(|client| !client.is_running())
}

fn wait(
    limit: Duration,
    what: &str,
    interrupted: Interrupted<'_>,
    mut is_there: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let end = Instant::now() + limit;
    while !is_there()? {
        ensure!(!interrupted.load(Ordering::Relaxed), "interrupted");
        ensure!(Instant::now() < end, "no sign of {what} in {limit:?}");
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn said(child: &ChildGuard) -> String {
    // What it wrote last may still be on its way.
    thread::sleep(10 * POLL_INTERVAL);
    first_lines(&format!("{}{}", child.stderr_so_far(), child.stdout_so_far()))
}

fn first_lines(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_is_found() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1451 00000000:0000 0A 0\n   1: 0100007F:1452 0100007F:1451 01 0\n";
        assert!(is_bound(table, 5201));
        assert!(!is_bound(table, 5202));
    }
}
