//! The omni output: CSV, human and keyval, by names of what is to be shown.

use super::figures::{Outcome, method};
use super::options::{Form, Options};
use super::request::{Pattern, Transport};
use super::selectors::{self, BLOCK_STARTS, SELECTORS};
use super::table::direction;

/// Why a specification can't be used: netperf's exit code, and what to say.
pub(crate) type BadSpec = (u8, String);

/// Blocks of names.
pub(crate) type Blocks = Vec<Vec<String>>;

/// Most blocks of a human output.
const BLOCKS_MAX: usize = 4;

/// The blocks that a specification asks for. `read` gives the text of a file.
pub(crate) fn blocks(
    options: &Options,
    spec: &str,
    read: impl FnOnce(&str) -> std::io::Result<String>,
) -> Result<Blocks, BadSpec> {
    if spec == "?" {
        let names: Vec<&str> = SELECTORS.iter().map(|(name, _)| *name).collect();
        return Err((1, format!("{}\n", names.join(","))));
    }
    if spec.is_empty() {
        return Ok(vec![default_names(options)]);
    }
    if spec.eq_ignore_ascii_case("all") {
        return Ok(all_blocks());
    }
    let text = if spec.contains([',', ';']) || selectors::find(spec).is_some() {
        spec.replace(';', "\n")
    } else {
        read(spec).map_err(|e| (255, format!("netperf: output selection file {spec}: {e}\n")))?
    };
    let blocks = text.lines().map(|line| {
        let names = line.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(str::to_ascii_uppercase).collect::<Vec<_>>()
    });
    Ok(blocks.filter(|names| !names.is_empty()).take(BLOCKS_MAX).collect())
}

fn all_blocks() -> Blocks {
    let mut blocks = vec![Vec::new()];
    for (name, _) in &SELECTORS[1..SELECTORS.len() - 1] {
        if BLOCK_STARTS.contains(name) {
            blocks.push(Vec::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push((*name).to_owned());
        }
    }
    blocks
}

fn default_names(options: &Options) -> Vec<String> {
    let first: &[&str] = match options.own.pattern {
        Pattern::Stream => &["LSS_SIZE_END", "RSR_SIZE_END", "LOCAL_SEND_SIZE"],
        Pattern::Maerts => &["RSS_SIZE_END", "LSR_SIZE_END", "REMOTE_SEND_SIZE"],
        Pattern::Rr | Pattern::Crr | Pattern::Cc => {
            &["LSS_SIZE_END", "LSR_SIZE_END", "RSR_SIZE_END", "RSS_SIZE_END", "REQUEST_SIZE", "RESPONSE_SIZE"]
        }
    };
    let mut names: Vec<String> = first.iter().map(|name| (*name).to_owned()).collect();
    names.extend(["ELAPSED_TIME", "THROUGHPUT", "THROUGHPUT_UNITS"].map(str::to_owned));
    if options.measure_cpu.contains(&true) {
        for side in ["LOCAL", "REMOTE"] {
            for what in
                ["UTIL", "PERCENT_USER", "PERCENT_SYSTEM", "PERCENT_IOWAIT", "PERCENT_IRQ", "PERCENT_SWINTR"]
            {
                names.push(format!("{side}_CPU_{what}"));
            }
            names.push(format!("{side}_CPU_METHOD"));
        }
        names.extend(["LOCAL_SD", "REMOTE_SD", "SD_UNITS"].map(str::to_owned));
    }
    names
}

/// Whether any of the names needs latency statistics.
pub(crate) fn wants_latency(blocks: &Blocks) -> bool {
    blocks.iter().flatten().any(|name| name.ends_with("_LATENCY") && name != "RT_LATENCY")
}

/// The output of a form.
pub(crate) fn render(
    form: Form,
    blocks: &Blocks,
    options: &Options,
    outcome: &Outcome,
    uuid: &str,
) -> String {
    let values = Values { options, outcome, uuid };
    match form {
        Form::Csv => csv(blocks, &values),
        Form::Human => human(blocks, &values),
        Form::Keyval => keyval(blocks, &values),
    }
}

fn csv(blocks: &Blocks, values: &Values<'_>) -> String {
    let names: Vec<&String> = blocks.iter().flatten().collect();
    let mut text = String::new();
    if values.options.headers {
        // A name that is not known is an empty column.
        let label =
            |name: &&String| selectors::find(name).map_or(String::new(), |(_, label)| one_line(label));
        text += &names.iter().map(label).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        match values.of(name) {
            Some(value) => text += &value,
            None if selectors::find(name).is_some() => text.push(' '),
            None => {}
        }
    }
    text + "\n"
}

fn one_line(label: &str) -> String {
    label.split('|').filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ")
}

fn keyval(blocks: &Blocks, values: &Values<'_>) -> String {
    let lines = blocks.iter().flatten().filter_map(|name| Some(format!("{name}={}\n", values.of(name)?)));
    lines.collect()
}

fn human(blocks: &Blocks, values: &Values<'_>) -> String {
    let blocks: Vec<String> = blocks.iter().map(|names| human_block(names, values)).collect();
    blocks.join("\n")
}

fn human_block(names: &[String], values: &Values<'_>) -> String {
    let mut lines = vec![String::new(); 5];
    for name in names {
        let label = selectors::find(name).map_or("", |(_, label)| label);
        let labels: Vec<&str> = label.split('|').collect();
        let value = values.of(name).unwrap_or_default();
        let widest = labels.iter().map(|line| line.len()).max().unwrap_or(0);
        let width = widest.max(value.len() + 1) + 1;
        for (index, line) in lines.iter_mut().enumerate() {
            let cell = if index < 4 { labels.get(index).copied().unwrap_or_default() } else { &value };
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.len().min(width)));
        }
    }
    let shown = if values.options.headers { &lines[..] } else { &lines[4..] };
    shown.iter().map(|line| format!("{line}\n")).collect()
}

struct Values<'a> {
    options: &'a Options,
    outcome: &'a Outcome,
    uuid: &'a str,
}

impl Values<'_> {
    /// The value of a name; none where there is nothing to say.
    fn of(&self, name: &str) -> Option<String> {
        let (known, _) = selectors::find(name)?;
        if let Some(rest) = known.strip_prefix("LOCAL_") {
            return self.sided(rest, true);
        }
        if let Some(rest) = known.strip_prefix("REMOTE_") {
            return self.sided(rest, false);
        }
        if known.contains("LATENCY") && known != "RT_LATENCY" {
            return self.latency(known);
        }
        self.common(known)
    }

    fn common(&self, name: &str) -> Option<String> {
        let (options, own, mean, last) =
            (self.options, &self.options.own, &self.outcome.mean, &self.outcome.last);
        let widths = self.outcome.widths;
        let level = options.confidence_level;
        Some(match name {
            "SOCKET_TYPE" => match own.transport {
                Transport::Tcp => "Stream".into(),
                Transport::Udp => "Datagram".into(),
            },
            "PROTOCOL" => match own.transport {
                Transport::Tcp => "TCP".into(),
                Transport::Udp => "UDP".into(),
            },
            "DIRECTION" => direction(own.pattern).into(),
            "ELAPSED_TIME" => format!("{:.2}", mean.elapsed),
            "THROUGHPUT" => format!("{:.2}", mean.throughput),
            "THROUGHPUT_UNITS" => format!("{}/s", options.result_unit().name()),
            "LSS_SIZE_REQ" => own.local_buffers[0].to_string(),
            "LSR_SIZE_REQ" => own.local_buffers[1].to_string(),
            "RSS_SIZE_REQ" => own.remote_buffers[0].to_string(),
            "RSR_SIZE_REQ" => own.remote_buffers[1].to_string(),
            "LSS_SIZE" => last.buffers.0.to_string(),
            "LSR_SIZE" => last.buffers.1.to_string(),
            "RSS_SIZE" => last.response.send_buffer.to_string(),
            "RSR_SIZE" => last.response.receive_buffer.to_string(),
            "LSS_SIZE_END" => last.local.send_buffer.to_string(),
            "LSR_SIZE_END" => last.local.receive_buffer.to_string(),
            "RSS_SIZE_END" => last.results.send_buffer.to_string(),
            "RSR_SIZE_END" => last.results.receive_buffer.to_string(),
            "REQUEST_SIZE" => last.request.request_size.to_string(),
            "RESPONSE_SIZE" => last.request.response_size.to_string(),
            "SD_UNITS" => if options.result_unit().0 == 'x' { "usec/Tran" } else { "usec/KB" }.into(),
            "CONFIDENCE_LEVEL" => level.unwrap_or(0).to_string(),
            "CONFIDENCE_INTERVAL" => {
                format!("{:.6}", if level.is_some() { 100.0 * options.confidence_width } else { -1.0 })
            }
            "CONFIDENCE_ITERATION" => self.outcome.iterations.to_string(),
            "THROUGHPUT_CONFID" => format!("{:.3}", widths.map_or(-1.0, |w| w.throughput)),
            "TRANSACTION_RATE" => format!("{:.3}", mean.transactions),
            "RT_LATENCY" => format!("{:.3}", mean.round_trip_us),
            "BURST_SIZE" => own.first_burst.unwrap_or(0).to_string(),
            "TRANSPORT_MSS" => last.local.tcp.mss.to_string(),
            "SOURCE_PORT" => own.ports[0].to_string(),
            "DEST_PORT" => own.ports[1].to_string(),
            "SOURCE_ADDR" => own
                .source
                .host
                .as_ref()
                .or(options.source.host.as_ref())
                .cloned()
                .unwrap_or_else(|| "0.0.0.0".into()),
            "DEST_ADDR" => own
                .target
                .host
                .as_ref()
                .or(options.server.host.as_ref())
                .cloned()
                .unwrap_or_else(|| "localhost".into()),
            "SOURCE_FAMILY" => family_number(own.source.family.or(own.family)).to_string(),
            "DEST_FAMILY" => family_number(Some(last.request.family)).to_string(),
            "RESULT_BRAND" => (!options.brand.is_empty()).then(|| format!("\"{}\"", options.brand))?,
            "UUID" => self.uuid.to_owned(),
            "COMMAND_LINE" => format!("\"{}\"", options.command_line),
            _ => return None,
        })
    }

    fn latency(&self, name: &str) -> Option<String> {
        let histogram = self.outcome.last.local.latency.as_ref()?;
        let micros = |ns: u64| (ns / 1000).to_string();
        let percentile = |percent: f64| micros(histogram.percentile_ns(percent).unwrap_or(0));
        Some(match name {
            "MIN_LATENCY" => micros(histogram.min_ns),
            "MAX_LATENCY" => micros(histogram.max_ns),
            "P50_LATENCY" => percentile(50.0),
            "P90_LATENCY" => percentile(90.0),
            "P99_LATENCY" => percentile(99.0),
            "MEAN_LATENCY" => format!("{:.2}", histogram.mean_ns().unwrap_or(0.0) / 1e3),
            "STDDEV_LATENCY" => format!("{:.2}", deviation_ns(&histogram.counts) / 1e3),
            _ => return None,
        })
    }

    /// Names that both ends have.
    fn sided(&self, name: &str, local: bool) -> Option<String> {
        let (options, own, mean, last) =
            (self.options, &self.options.own, &self.outcome.mean, &self.outcome.last);
        let side = usize::from(!local);
        let pick = |near: f64, far: f64| if local { near } else { far };
        let count = &last.count;
        let results = &last.results;
        let (sent, sends, got, gets) = if local {
            (count.sent.bytes, count.sent.messages, count.received.bytes, count.received.messages)
        } else {
            let calls = (u64::from(results.send_calls), u64::from(results.receive_calls));
            (results.sent_bytes, calls.0, results.received_bytes, calls.1)
        };
        let measured = options.measure_cpu[side];
        let shares = if local { last.cpu.map(|(cpu, _)| cpu) } else { results.cpu.filter(|_| measured) };
        let cpus = if local { last.cpu.map_or(0, |(_, cpus)| cpus) } else { results.cpus };
        let share =
            |pick: fn(&super::reply::CpuShares) -> f32| format!("{:.2}", shares.as_ref().map_or(0.0, pick));
        let unit = options.byte_unit();
        let (sends_here, gets_here) = (sends > 0, gets > 0);
        let response = &last.response;
        Some(match name {
            "SEND_SIZE" => match own.pattern {
                Pattern::Rr | Pattern::Crr => own.exchange[side],
                _ if local => {
                    if sends_here {
                        last.sizes.0
                    } else {
                        0
                    }
                }
                _ => response.send_size,
            }
            .to_string(),
            "RECV_SIZE" => match own.pattern {
                Pattern::Rr | Pattern::Crr => own.exchange[1 - side],
                _ if local => {
                    if gets_here {
                        last.sizes.1
                    } else {
                        0
                    }
                }
                _ => response.receive_size,
            }
            .to_string(),
            "CPU_UTIL" => format!("{:.2}", pick(mean.local_util, mean.remote_util)),
            "CPU_PERCENT_USER" => share(|s| s.user),
            "CPU_PERCENT_SYSTEM" => share(|s| s.system),
            "CPU_PERCENT_IOWAIT" => share(|s| s.iowait),
            "CPU_PERCENT_IRQ" => share(|s| s.irq),
            "CPU_PERCENT_SWINTR" => share(|s| s.softirq),
            "CPU_METHOD" => method(shares.is_some()).to_string(),
            "CPU_BIND" => options.bind_cpu[side].to_string(),
            "CPU_COUNT" => cpus.to_string(),
            "CPU_PEAK_UTIL" => format!("{:.2}", shares.map_or(-1.0, |s| s.peak)),
            "CPU_PEAK_ID" => shares.map_or(-1, |s| s.peak_id).to_string(),
            "CPU_FREQUENCY" => "0".into(),
            "CPU_CONFID" => {
                let widths = self.outcome.widths;
                format!("{:.3}", widths.map_or(-1.0, |w| pick(w.local_util, w.remote_util)))
            }
            "SD" => format!("{:.3}", pick(mean.local_demand, mean.remote_demand)),
            "TRANSPORT_RETRANS" => {
                if local { last.local.tcp.retransmits } else { results.retransmits }.to_string()
            }
            "SEND_THROUGHPUT" => format!("{:.2}", self.outcome.rate_of(unit, sent)),
            "RECV_THROUGHPUT" => format!("{:.2}", self.outcome.rate_of(unit, got)),
            "SEND_CALLS" => sends.to_string(),
            "RECV_CALLS" => gets.to_string(),
            "BYTES_PER_RECV" => format!("{:.2}", Outcome::per_call(got, gets)),
            "BYTES_PER_SEND" => format!("{:.2}", Outcome::per_call(sent, sends)),
            "BYTES_SENT" => sent.to_string(),
            "BYTES_RECVD" => got.to_string(),
            "BYTES_XFERD" => (sent + got).to_string(),
            "SEND_OFFSET" | "RECV_OFFSET" | "CORK" => "0".into(),
            "SEND_ALIGN" | "RECV_ALIGN" => "8".into(),
            "SEND_WIDTH" => {
                let near = if sends_here { last.request.send_width.max(1) } else { 0 };
                if local { near } else { response.send_width }.to_string()
            }
            "RECV_WIDTH" => {
                let near = if gets_here { last.request.receive_width.max(1) } else { 0 };
                if local { near } else { response.receive_width }.to_string()
            }
            "SEND_DIRTY_COUNT" | "RECV_DIRTY_COUNT" | "RECV_CLEAN_COUNT" => "-1".into(),
            "NODELAY" => u8::from(if local { own.nodelay } else { response.nodelay }).to_string(),
            "INTERFACE_VENDOR" | "INTERFACE_DEVICE" | "INTERFACE_SUBVENDOR" | "INTERFACE_SUBDEVICE" => {
                "0xfffffffe".into()
            }
            "INTERVAL_USECS" => options.interval_micros[side].to_string(),
            "INTERVAL_BURST" => options.burst[side].to_string(),
            "SECURITY_TYPE_ID" | "SECURITY_ENABLED_NUM" => "0".into(),
            "SOCKET_PRIO" => if local { options.priority[0] } else { response.priority }.to_string(),
            "SOCKET_TOS" => format!("0x{:02x}", if local { options.tos[0] } else { response.tos }),
            "CONG_CONTROL" => if local { &last.local.tcp.congestion } else { &results.congestion }.clone(),
            "FILL_FILE" => String::new(),
            _ => "Deprecated".into(),
        })
    }
}

fn family_number(family: Option<u8>) -> u8 {
    match family {
        Some(4) => 2,
        Some(6) => 10,
        _ => 0,
    }
}

fn deviation_ns(counts: &[(u64, u64)]) -> f64 {
    let total: f64 = counts.iter().map(|&(_, n)| n as f64).sum();
    if total == 0.0 {
        return 0.0;
    }
    let mean = counts.iter().map(|&(ns, n)| ns as f64 * n as f64).sum::<f64>() / total;
    let square = counts.iter().map(|&(ns, n)| (ns as f64 - mean).powi(2) * n as f64).sum::<f64>() / total;
    square.sqrt()
}
