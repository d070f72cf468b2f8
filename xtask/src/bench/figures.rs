//! What the tools themselves report, from what they print.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{
    tools::Tool,
    work::{Unit, Work},
};

/// A tool's own figures, in units of the work a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// What the receiver got, where the tool tells.
    pub(crate) received: Option<f64>,
    /// What the sender sent, where it may be more.
    pub(crate) sent: Option<f64>,
}

impl Figures {
    /// Reads what each client of a run printed, and adds up.
    pub(crate) fn read(tool: Tool, work: Work, outputs: &[String]) -> Result<Self> {
        let mut sum = Self { received: None, sent: None };
        for output in outputs {
            let one = Self::read_one(tool, work, output)
                .with_context(|| format!("read the output of {tool}: {}", shortened(output)))?;
            sum = Self { received: add(sum.received, one.received), sent: add(sum.sent, one.sent) };
        }
        Ok(sum)
    }

    fn read_one(tool: Tool, work: Work, output: &str) -> Result<Self> {
        match tool {
            Tool::Linerate => linerate(work, output),
            Tool::Iperf3 => iperf3(work, output),
            Tool::Netperf => netperf(work, output),
            Tool::Nuttcp => nuttcp(work, output),
            Tool::Sockperf => sockperf(work, output),
            Tool::Qperf => qperf(work, output),
        }
    }

    fn received(units_per_second: f64) -> Self {
        Self { received: Some(units_per_second), sent: None }
    }

    fn both(received: f64, sent: f64) -> Self {
        Self { received: Some(received), sent: Some(sent) }
    }
}

/// An array of records; the figures are in the `summary` of the only one.
fn linerate(work: Work, output: &str) -> Result<Figures> {
    let records: Value = serde_json::from_str(output).context("no JSON")?;
    let summary = "/0/summary";
    match work.unit() {
        Unit::Byte => {
            Ok(Figures::received(number(&records, &format!("{summary}/goodput_bits_per_second"))? / 8.0))
        }
        Unit::Transaction => {
            Ok(Figures::received(number(&records, &format!("{summary}/transactions_per_second"))?))
        }
        Unit::Datagram => {
            let sent_bits = number(&records, &format!("{summary}/directions/0/sent_bits_per_second"))?;
            let sent = sent_bits / 8.0 / f64::from(Work::DATAGRAM_SIZE_BYTES);
            Ok(Figures::both(number(&records, &format!("{summary}/packets_per_second"))?, sent))
        }
    }
}

fn iperf3(work: Work, output: &str) -> Result<Figures> {
    let report: Value = serde_json::from_str(output).context("no JSON")?;
    let bytes_per_second =
        |sum: &str| Ok::<_, anyhow::Error>(number(&report, &format!("/end/{sum}/bits_per_second"))? / 8.0);
    let received = bytes_per_second("sum_received")?;
    if work.unit() == Unit::Byte {
        return Ok(Figures::received(received));
    }
    let size = f64::from(Work::DATAGRAM_SIZE_BYTES);
    Ok(Figures::both(received / size, bytes_per_second("sum_sent")? / size))
}

/// `KEY=VALUE` lines.
fn netperf(work: Work, output: &str) -> Result<Figures> {
    let value = |key: &str| keyed(output.lines(), key);
    match work.unit() {
        // 10^6 bits a second.
        Unit::Byte => Ok(Figures::received(value("THROUGHPUT")? * 1e6 / 8.0)),
        Unit::Transaction => Ok(Figures::received(value("THROUGHPUT")?)),
        Unit::Datagram => {
            let seconds = value("ELAPSED_TIME")?;
            Ok(Figures::both(value("REMOTE_RECV_CALLS")? / seconds, value("LOCAL_SEND_CALLS")? / seconds))
        }
    }
}

/// `KEY=VALUE` words on one line.
fn nuttcp(work: Work, output: &str) -> Result<Figures> {
    let value = |key: &str| keyed(output.split_whitespace(), key);
    let seconds = value("real_seconds")?;
    if work.unit() == Unit::Byte {
        return Ok(Figures::received(value("megabytes")? * 1024.0 * 1024.0 / seconds));
    }
    let (sent, dropped) = (value("pkt")?, value("drop")?);
    Ok(Figures::both((sent - dropped) / seconds, sent / seconds))
}

fn sockperf(work: Work, output: &str) -> Result<Figures> {
    if work.unit() == Unit::Datagram {
        return Ok(Figures { received: None, sent: Some(number_after(output, "Message Rate is ")?) });
    }
    let (_, valid) = output.split_once("[Valid Duration]").context("no valid duration")?;
    Ok(Figures::received(number_after(valid, "ReceivedMessages=")? / number_after(valid, "RunTime=")?))
}

/// `KEY = VALUE UNIT` lines; `-uu` makes the units bytes a second and nanoseconds.
fn qperf(work: Work, output: &str) -> Result<Figures> {
    let value = |key: &str| {
        let line = output.lines().find(|line| line.split_whitespace().next() == Some(key));
        let line = line.with_context(|| format!("no {key}"))?;
        number_after(line, "= ")
    };
    match work.unit() {
        Unit::Byte => Ok(Figures::received(value("bw")?)),
        // Its latency is half a round trip.
        Unit::Transaction => Ok(Figures::received(1e9 / (2.0 * value("latency")?))),
        Unit::Datagram => {
            let size = f64::from(Work::DATAGRAM_SIZE_BYTES);
            Ok(Figures::both(value("recv_bw")? / size, value("send_bw")? / size))
        }
    }
}

fn number(value: &Value, pointer: &str) -> Result<f64> {
    value.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no number at {pointer}"))
}

fn keyed<'a>(mut pairs: impl Iterator<Item = &'a str>, key: &str) -> Result<f64> {
    let value = pairs.find_map(|pair| pair.trim().strip_prefix(key)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).with_context(|| format!("no {key}"))
}

/// The number that follows a text, spaces between them ignored.
fn number_after(output: &str, text: &str) -> Result<f64> {
    let Some((_, rest)) = output.split_once(text) else { bail!("no {text:?}") };
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().with_context(|| format!("no number after {text:?}"))
}

fn add(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other).map(|(one, other)| one + other).or(one).or(other)
}

fn shortened(output: &str) -> String {
    output.trim().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(tool: Tool, work: Work, output: &str) -> f64 {
        Figures::read(tool, work, &[output.to_owned()]).unwrap().received.unwrap()
    }

    #[test]
    fn linerate_is_read_from_its_record() {
        let output = r#"[{"summary": {"goodput_bits_per_second": 8e9, "transactions_per_second": 5,
            "packets_per_second": 6, "directions": [{"sent_bits_per_second": 5120}]}}]"#;
        assert_eq!(received(Tool::Linerate, Work::TcpStream, output), 1e9);
        assert_eq!(received(Tool::Linerate, Work::TcpRr, output), 5.0);
        let figures = Figures::read(Tool::Linerate, Work::Udp64, &[output.to_owned()]).unwrap();
        assert_eq!(figures, Figures::both(6.0, 10.0));
        let error = Figures::read(Tool::Linerate, Work::TcpRr, &["[]".to_owned()]).unwrap_err();
        assert!(format!("{error:#}").contains("/0/summary/transactions_per_second"));
    }

    #[test]
    fn iperf3_is_read_at_the_receiver() {
        let output =
            r#"{"end": {"sum_sent": {"bits_per_second": 1024}, "sum_received": {"bits_per_second": 512}}}"#;
        assert_eq!(received(Tool::Iperf3, Work::TcpStream, output), 64.0);
        let figures = Figures::read(Tool::Iperf3, Work::Udp64, &[output.to_owned()]).unwrap();
        assert_eq!(figures, Figures::both(1.0, 2.0));
    }

    #[test]
    fn netperf_clients_add_up() {
        let output =
            "THROUGHPUT=8.00\nLOCAL_SEND_CALLS=30\nREMOTE_RECV_CALLS=20\nELAPSED_TIME=2.00\n".to_owned();
        let figures =
            Figures::read(Tool::Netperf, Work::TcpStreams4, &[output.clone(), output.clone()]).unwrap();
        assert_eq!(figures.received, Some(2e6));
        assert_eq!(Figures::read(Tool::Netperf, Work::Udp64, &[output]).unwrap(), Figures::both(10.0, 15.0));
    }

    #[test]
    fn nuttcp_is_read_from_its_words() {
        let output =
            "megabytes=4.0 real_seconds=2.00 rate_Mbps=9 tx_cpu=9 rx_cpu=3 drop=2 pkt=10 data_loss=2.2";
        assert_eq!(received(Tool::Nuttcp, Work::TcpStream, output), 2.0 * 1024.0 * 1024.0);
        assert_eq!(
            Figures::read(Tool::Nuttcp, Work::Udp64, &[output.to_owned()]).unwrap(),
            Figures::both(4.0, 5.0)
        );
    }

    #[test]
    fn sockperf_tells_transactions_but_not_datagrams_received() {
        let output = "[Total Run] RunTime=2.0 sec; ReceivedMessages=99\n[Valid Duration] RunTime=1.5 sec; SentMessages=30; ReceivedMessages=30\n";
        assert_eq!(received(Tool::Sockperf, Work::TcpRr, output), 20.0);
        let output = "Summary: Message Rate is 726263 [msg/sec]";
        let figures = Figures::read(Tool::Sockperf, Work::Udp64, &[output.to_owned()]).unwrap();
        assert_eq!(figures, Figures { received: None, sent: Some(726_263.0) });
    }

    #[test]
    fn qperf_latency_is_half_a_round_trip() {
        assert_eq!(received(Tool::Qperf, Work::TcpRr, "tcp_lat:\n    latency  =  50000 ns\n"), 10_000.0);
        assert_eq!(received(Tool::Qperf, Work::TcpStream, "tcp_bw:\n    bw  =  128 bytes/sec\n"), 128.0);
        let output = "udp_bw:\n    send_bw  =  128 bytes/sec\n    recv_bw  =  64 bytes/sec\n";
        assert_eq!(
            Figures::read(Tool::Qperf, Work::Udp64, &[output.to_owned()]).unwrap(),
            Figures::both(1.0, 2.0)
        );
    }

    #[test]
    fn other_output_is_an_error_that_shows_it() {
        for tool in Tool::ALL {
            let error = Figures::read(tool, Work::TcpStream, &["no route to host".to_owned()]).unwrap_err();
            assert!(format!("{error:#}").contains("no route to host"), "{error:#}");
        }
    }
}
