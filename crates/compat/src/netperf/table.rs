//! netperf's banner and its classic tables.

use std::fmt::Write;

use super::figures::{Figures, Outcome, is_udp_stream, method};
use super::options::{Options, Place, TestName};
use super::request::{Pattern, Transport};

/// The line before everything else.
pub(crate) fn banner(options: &Options) -> String {
    let own = &options.own;
    let family = match own.family.or(own.target.family).or(options.server.family).or(options.family) {
        Some(6) => "AF_INET6",
        _ => "AF_INET",
    };
    let any = if family == "AF_INET6" { "::" } else { "0.0.0.0" };
    let source = first_host(&own.source, &options.source).unwrap_or(any);
    let target = first_host(&own.target, &options.server).unwrap_or("localhost");
    let mut text = format!(
        "{} from {source} ({}) port {} {family} to {target} ({}) port {} {family}",
        title(options),
        short(source),
        own.ports[0],
        short(target),
        own.ports[1],
    );
    if let Some(level) = options.confidence_level {
        let only = if options.confidence_result_only { " on result only" } else { "" };
        let half = 100.0 * options.confidence_width / 2.0;
        let _infallible = write!(text, " : +/-{half:.3}% @ {level}% conf. {only}");
    }
    if own.nodelay {
        text += " : nodelay";
    }
    if options.burst[0] > 0 && options.interval_micros[0] > 0 {
        text += " : interval";
    }
    text += " : demo";
    if title(options).contains("REQUEST/RESPONSE") {
        let _infallible = write!(text, " : first burst {}", own.first_burst.unwrap_or(0));
    }
    if options.bind_cpu.iter().any(|&cpu| cpu >= 0) {
        text += " : cpu bind";
    }
    text + "\n"
}

fn first_host<'a>(first: &'a Place, second: &'a Place) -> Option<&'a str> {
    first.host.as_deref().or(second.host.as_deref())
}

/// netperf prints an address in parentheses only where it has seven characters at most; scripts know it so.
fn short(host: &str) -> &str {
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    if is_address && host.len() <= 7 { host } else { "" }
}

fn title(options: &Options) -> String {
    match options.test {
        TestName::TcpStream => "MIGRATED TCP STREAM TEST".into(),
        TestName::TcpMaerts => "MIGRATED TCP MAERTS TEST".into(),
        TestName::TcpRr => "MIGRATED TCP REQUEST/RESPONSE TEST".into(),
        TestName::TcpCrr => "MIGRATED TCP Connect/Request/Response TEST".into(),
        TestName::UdpStream => "MIGRATED UDP STREAM TEST".into(),
        TestName::UdpRr => "MIGRATED UDP REQUEST/RESPONSE TEST".into(),
        TestName::TcpSendfile => "TCP SENDFILE TEST".into(),
        TestName::TcpCc => "TCP Connect/Close TEST".into(),
        TestName::TcpMss => "TCP MSS TEST".into(),
        _ => format!("OMNI {} TEST", direction(options.own.pattern)),
    }
}

/// As DIRECTION has it.
pub(crate) fn direction(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Stream => "Send",
        Pattern::Maerts => "Receive",
        Pattern::Rr => "Send|Recv",
        Pattern::Crr => "Connect|Send|Recv",
        Pattern::Cc => "Connection",
    }
}

/// The table of a test without -o, -O or -k.
pub(crate) fn table(options: &Options, outcome: &Outcome) -> String {
    let mut text = String::new();
    if options.test == TestName::TcpMss {
        if options.headers {
            text += "Maximum\nSegment\nSize (bytes)\n\n";
        }
        return text + &format!("{} \n", outcome.last.local.tcp.mss);
    }
    if options.verbosity == 0 {
        return one_number(options, &outcome.mean);
    }
    if let Some(widths) = outcome.widths.filter(|widths| !widths.met) {
        let _infallible = write!(
            text,
            "!!! WARNING\n\
             !!! Desired confidence was not achieved within the specified iterations.\n\
             !!! This implies that there was variability in the test environment that\n\
             !!! must be investigated before going further.\n\
             !!! Confidence intervals: Throughput      : {:.3}%\n\
             !!!                       Local CPU util  : {:.3}%\n\
             !!!                       Remote CPU util : {:.3}%\n\n",
            widths.throughput, widths.local_util, widths.remote_util
        );
    }
    if options.headers {
        text += &header(options);
    }
    text += &result(options, outcome);
    if options.verbosity > 1 {
        text += &details(options, outcome);
    }
    text
}

fn with_cpu(options: &Options) -> bool {
    options.measure_cpu[0] || options.measure_cpu[1]
}

fn brand(options: &Options) -> &str {
    if options.headers { "" } else { &options.brand }
}

/// `-v 0`.
fn one_number(options: &Options, mean: &Figures) -> String {
    let brand = brand(options);
    let connects = matches!(options.own.pattern, Pattern::Crr | Pattern::Cc);
    if with_cpu(options) {
        let local = options.measure_cpu[0];
        let demand = if local { mean.local_demand } else { mean.remote_demand };
        return if connects {
            format!("{demand:>6.3}\n")
        } else if is_udp_stream(options) {
            format!("{demand:>6.2} {}\n", method(local))
        } else {
            format!("{demand:>6.3} {} {brand}\n", method(true))
        };
    }
    if is_udp_stream(options) {
        return format!("{:>7.2}\n", mean.sent);
    }
    if connects {
        format!("{:>7.2}\n", mean.throughput)
    } else {
        format!("{:>7.2} {brand}\n", mean.throughput)
    }
}

fn header(options: &Options) -> String {
    let cpu = with_cpu(options);
    let (local, remote) = (method(options.measure_cpu[0]), method(options.measure_cpu[1]));
    let unit = options.result_unit().name();
    let bytes = options.byte_unit().name();
    match options.own.pattern {
        Pattern::Stream if options.own.transport == Transport::Udp => {
            let plain = format!(
                "Socket  Message  Elapsed      Messages                \n\
                 Size    Size     Time         Okay Errors   Throughput\n\
                 bytes   bytes    secs            #      #   {bytes}/sec\n\n"
            );
            let full = format!(
                "Socket  Message  Elapsed      Messages                   CPU      Service\n\
                 Size    Size     Time         Okay Errors   Throughput   Util     Demand\n\
                 bytes   bytes    secs            #      #   {bytes}/sec % {local}{remote}     us/KB\n\n"
            );
            if cpu { full } else { plain }
        }
        Pattern::Stream | Pattern::Maerts if cpu => {
            let (near, far) =
                if options.own.pattern == Pattern::Stream { ("Send", "Recv") } else { ("Recv", "Send") };
            format!(
                "Recv   Send    Send                          Utilization       Service Demand\n\
                 Socket Socket  Message  Elapsed              {near}     {far}     {near}    {far}\n\
                 Size   Size    Size     Time     Throughput  local    remote   local   remote\n\
                 bytes  bytes   bytes    secs.    {bytes:<8}/s  % {local}      % {remote}      us/KB   us/KB\n\n"
            )
        }
        Pattern::Stream | Pattern::Maerts => format!(
            "Recv   Send    Send                          \n\
             Socket Socket  Message  Elapsed              \n\
             Size   Size    Size     Time     Throughput  \n\
             bytes  bytes   bytes    secs.    {bytes}/sec  \n\n"
        ),
        Pattern::Rr | Pattern::Crr | Pattern::Cc if cpu => {
            let rr = options.own.pattern == Pattern::Rr;
            let counts = unit == "Trans" || !rr;
            let (word, rate, per) = if counts {
                ("Trans.  ", "Rate    ".to_owned(), "Tr")
            } else {
                ("Tput    ", format!("{unit:<8}"), "KB")
            };
            let (local, remote) = if rr { (local, remote) } else { (' ', ' ') };
            format!(
                "Local /Remote\n\
                 Socket Size   Request Resp.  Elapsed {word} CPU    CPU    S.dem   S.dem\n\
                 Send   Recv   Size    Size   Time    {rate} local  remote local   remote\n\
                 bytes  bytes  bytes   bytes  secs.   per sec  % {local}    % {remote}    us/{per}   us/{per}\n\n"
            )
        }
        Pattern::Rr | Pattern::Crr | Pattern::Cc if unit == "Trans" => "\
            Local /Remote\n\
            Socket Size   Request  Resp.   Elapsed  Trans.\n\
            Send   Recv   Size     Size    Time     Rate         \n\
            bytes  Bytes  bytes    bytes   secs.    per sec   \n\n"
            .to_owned(),
        Pattern::Rr | Pattern::Crr | Pattern::Cc => format!(
            "Local /Remote\n\
             Socket Size   Request  Resp.   Elapsed  \n\
             Send   Recv   Size     Size    Time     Throughput \n\
             bytes  Bytes  bytes    bytes   secs.    {unit}/sec   \n\n"
        ),
    }
}

fn result(options: &Options, outcome: &Outcome) -> String {
    let (mean, last, brand) = (&outcome.mean, &outcome.last, brand(options));
    let (local_send, local_receive) = last.buffers;
    let (remote_send, remote_receive) = (last.response.send_buffer, last.response.receive_buffer);
    let (elapsed, rate) = (mean.elapsed, mean.throughput);
    let utils = (mean.local_util, mean.remote_util, mean.local_demand, mean.remote_demand);
    let (lu, ru, ld, rd) = utils;
    match options.own.pattern {
        Pattern::Stream if options.own.transport == Transport::Udp => {
            let (size, sent, failed) = (last.sizes.0, last.count.sent.messages, last.count.refused);
            let (got, got_rate) = (last.results.receive_calls, outcome.server_received(options));
            let sent_rate = mean.sent;
            if with_cpu(options) {
                return format!(
                    "{local_send:>6}  {size:>6}   {elapsed:<7.2}   {sent:>7} {failed:>6}    {sent_rate:>7.1}     {lu:<6.2}   {ld:<6.3}\n\
                     {remote_receive:>6}           {elapsed:<7.2}   {got:>7}           {got_rate:>7.1}     {ru:<6.2}   {rd:<6.3}\n\n"
                );
            }
            format!(
                "{local_send:>6}  {size:>6}   {elapsed:<7.2}   {sent:>7} {failed:>6}    {sent_rate:>7.2}\n\
                 {remote_receive:>6}           {elapsed:<7.2}   {got:>7}           {got_rate:>7.2}\n\n"
            )
        }
        pattern @ (Pattern::Stream | Pattern::Maerts) => {
            let (receive, send, size) = if pattern == Pattern::Stream {
                (remote_receive, local_send, last.sizes.0)
            } else {
                (local_receive, remote_send, last.response.send_size)
            };
            if with_cpu(options) {
                return format!(
                    "{receive:>6} {send:>6} {size:>6}    {elapsed:<6.2}     {rate:>7.2}   {lu:<6.2}   {ru:<6.2}   {ld:<6.3}  {rd:<6.3} {brand}\n"
                );
            }
            format!("{receive:>6} {send:>6} {size:>6}    {elapsed:<6.2}   {rate:>7.2}   {brand}\n")
        }
        Pattern::Rr | Pattern::Crr | Pattern::Cc => {
            let [request, response] = options.own.exchange;
            let rr = options.own.pattern == Pattern::Rr;
            let brand = if rr { brand } else { "" };
            let first = if with_cpu(options) {
                let gap = if rr && options.own.transport == Transport::Tcp { "  " } else { "   " };
                let end = if rr { format!(" {brand}") } else { String::new() };
                format!(
                    "{local_send:<6} {local_receive:<6} {request:<6}  {response:<6} {elapsed:<6.2}  {rate:<6.2}{gap}{lu:<6.2} {ru:<6.2} {ld:<6.3}  {rd:<6.3}{end}"
                )
            } else {
                format!(
                    "{local_send:<6} {local_receive:<6} {request:<6}   {response:<6}  {elapsed:<6.2}   {rate:>7.2}   {brand}"
                )
            };
            format!("{first}\n{remote_send:<6} {remote_receive:<6}\n")
        }
    }
}

/// `-v 2`.
fn details(options: &Options, outcome: &Outcome) -> String {
    let (last, mean) = (&outcome.last, &outcome.mean);
    if options.own.transport == Transport::Udp {
        return String::new();
    }
    let (local, remote) = (&last.count, &last.results);
    match options.own.pattern {
        pattern @ (Pattern::Stream | Pattern::Maerts) => {
            let (near, far, bytes, near_calls, far_bytes, far_calls) = if pattern == Pattern::Stream {
                let sent = local.sent;
                ("Send", "Recv", sent.bytes, sent.messages, remote.received_bytes, remote.receive_calls)
            } else {
                let got = local.received;
                ("Recv", "Send", got.bytes, got.messages, remote.sent_bytes, remote.send_calls)
            };
            let near_each = Outcome::per_call(bytes, near_calls);
            let far_each = Outcome::per_call(far_bytes, far_calls.into());
            format!(
                "\nAlignment      Offset         Bytes    Bytes       {near}s   Bytes    {far}s\n\
                 Local  Remote  Local  Remote  Xfered   Per                 Per\n\
                 {near}   {far}    {near}   {far}             {near} (avg)          {far} (avg)\n\
                 {:>5}   {:>5}  {:>5}   {:>5} {bytes:>6}  {near_each:>8.2}{near_calls:>10}   {far_each:>8.2}{far_calls:>7}\n\
                 \nMaximum\nSegment\nSize (bytes)\n{:>6}\n",
                8, 8, 0, 0, last.local.tcp.mss
            )
        }
        Pattern::Rr => {
            let unit = options.byte_unit();
            let (out, back) =
                (outcome.rate_of(unit, local.sent.bytes), outcome.rate_of(unit, local.received.bytes));
            format!(
                "Alignment      Offset         RoundTrip  Trans    Throughput\n\
                 Local  Remote  Local  Remote  Latency    Rate     {:<8}/s\n\
                 Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound\n\
                 {:>5}  {:>5}   {:>5}  {:>5}   {:<6.3}   {:<6.3} {out:<6.3}    {back:<6.3}\n",
                unit.name(),
                8,
                0,
                0,
                0,
                mean.round_trip_us,
                mean.transactions,
            )
        }
        Pattern::Crr | Pattern::Cc => format!(
            "\nAlignment      Offset\nLocal  Remote  Local  Remote\nSend   Recv    Send   Recv\n{:>5}  {:>5}   {:>5}  {:>5}\n",
            8, 8, 0, 0
        ),
    }
}
