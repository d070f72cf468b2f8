//! Packets and bytes of this machine's links during a run, from `/proc/net/dev` (proc_net(5)).

use std::io;

use crate::uperf::front::progress::rule;
use crate::uperf::text::{column, rate};

/// Counters of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkCounters {
    name: String,
    bytes_in: u64,
    packets_in: u64,
    bytes_out: u64,
    packets_out: u64,
}

/// Reads all links' counters.
pub(crate) fn sample() -> io::Result<Vec<LinkCounters>> {
    Ok(parse(&std::fs::read_to_string("/proc/net/dev")?))
}

fn parse(text: &str) -> Vec<LinkCounters> {
    text.lines()
        .filter_map(|line| {
            let (name, numbers) = line.split_once(':')?;
            let numbers: Vec<u64> =
                numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
            Some(LinkCounters {
                name: name.trim().to_owned(),
                bytes_in: *numbers.first()?,
                packets_in: *numbers.get(1)?,
                bytes_out: *numbers.get(8)?,
                packets_out: *numbers.get(9)?,
            })
        })
        .collect()
}

/// The table, with a blank line before it.
pub(crate) fn table(before: &[LinkCounters], after: &[LinkCounters], elapsed_ns: u64) -> String {
    let seconds = (elapsed_ns as f64 / 1e9).max(1e-9);
    let mut text = format!("\nNetstat statistics for this run\n{}\n", rule());
    text += "Nic       opkts/s     ipkts/s      obits/s      ibits/s\n";
    for link in after {
        let Some(earlier) = before.iter().find(|b| b.name == link.name) else { continue };
        let a_second = |of: fn(&LinkCounters) -> u64| of(link).wrapping_sub(of(earlier)) as f64 / seconds;
        let (packets_out, packets_in) = (a_second(|l| l.packets_out), a_second(|l| l.packets_in));
        if packets_out + packets_in == 0.0 {
            continue;
        }
        text.extend([format!(
            "{:<8}{packets_out:>9.0} {packets_in:>11.0} {} {}\n",
            link.name,
            column(&rate(a_second(|l| l.bytes_out) * 8.0), 12),
            column(&rate(a_second(|l| l.bytes_in) * 8.0), 12),
        )]);
    }
    text + &rule() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0
  eth0: 5 6 0 0 0 0 0 0 7 8 0 0 0 0 0 0
";

    #[test]
    fn quiet_links_are_left_out() {
        let before = parse(TEXT);
        assert_eq!(before.len(), 2);
        let mut after = before.clone();
        after[0].packets_out += 187_869;
        after[0].packets_in += 187_869;
        after[0].bytes_out += 2_536_250_000;
        after[0].bytes_in += 2_536_250_000;
        let table = table(&before, &after, 1_000_000_000);
        assert!(table.contains("lo         187869      187869    20.29Gb/s    20.29Gb/s\n"), "{table}");
        assert!(!table.contains("eth0"));
    }
}
