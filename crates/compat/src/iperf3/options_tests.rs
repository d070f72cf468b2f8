//! Tests of the command line.

use super::*;

fn parsed(line: &str) -> Result<Request, String> {
    parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

fn client(line: &str) -> ClientRequest {
    match parsed(line).unwrap() {
        Request::Client(client) => *client,
        other => panic!("{other:?}"),
    }
}

fn server(line: &str) -> ServerRequest {
    match parsed(line).unwrap() {
        Request::Server(server) => *server,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_has_iperf3s_defaults() {
    let request = client("-c host");
    assert_eq!((request.options.host.as_str(), request.options.port), ("host", 5201));
    let p = &request.options.params;
    assert_eq!((p.time_s, p.parallel, p.bandwidth, p.transport), (10, 1, None, Transport::Tcp));
    assert_eq!(client("-c h -u").options.params.bandwidth, Some(1_048_576));
    assert_eq!(client("-c h -u -b 0").options.params.bandwidth, Some(0));
}

#[test]
fn options_become_parameters() {
    let request = client(
        "-c h -u -b 2.5G/10 -t 3 -O 2 -P4 -l 1200 -w 1M -S 0x20 --bidir --udp-counters-64bit -A 1,3 -i 0.5 -J --gsro",
    );
    let p = &request.options.params;
    assert_eq!((p.bandwidth, p.burst, p.time_s, p.omit_s, p.parallel), (Some(2_500_000_000), 10, 3, 2, 4));
    assert_eq!((request.options.len, p.window, p.tos, p.bidir), (Some(1200), Some(1 << 20), 32, true));
    assert_eq!((request.output.affinity, p.server_affinity), (Some(1), Some(3)));
    assert!(request.output.json && p.counters_64bit && p.offload.gso && p.offload.gro);
    assert_eq!(request.options.interval_s, 0.5);
    let by_bytes = client("-c h -n 10M -R -M 1400 -N -C cubic -Z");
    let p = &by_bytes.options.params;
    assert_eq!(
        (p.num, p.time_s, p.mss, p.nodelay, p.reverse, p.zerocopy),
        (10 << 20, 0, Some(1400), true, true, true)
    );
}

#[test]
fn a_server_has_limits() {
    let request =
        server("-s -p 5000 -1 --server-bitrate-limit 10M/3 --server-max-duration 60 --one-at-a-time -4");
    assert_eq!((request.port, request.one_off, request.limits.clients), (5000, true, 1));
    assert_eq!(request.limits.rate, Some((10_000_000, 3)));
    assert_eq!(request.limits.duration_s, Some(60));
    assert_eq!(request.family, Family::V4);
    assert!(server("-s").limits.clients > 1);
    assert_eq!(server("-s --allow 10.0.0.0/8,::1/128").limits.allow.len(), 2);
}

#[test]
fn what_cannot_be_is_refused() {
    for (line, part) in [
        ("", "must either be a client"),
        ("-s -c h", "both server and client"),
        ("-s -t 5", "client only"),
        ("-c h -D", "server only"),
        ("-c h -t 5 -n 5", "only one test end condition"),
        ("-c h -R --bidir", "reverse and bidirectional"),
        ("-c h -P 129", "1 to 128"),
        ("-c h -t 86401", "0 to 86400"),
        ("-c h -l 2M", "1 to 1048576"),
        ("-c h -u -l 15", "16 to 65507"),
        ("-c h -b 10x", "unknown suffix"),
        ("-c h -i 0.05", "0.1 to 60"),
        ("-c h --sctp", "not offered"),
        ("-c h -L 5", "not offered"),
        ("-c h --gsro", "need UDP"),
        ("-c h --username x", "need each other"),
        ("-s --rsa-private-key-path x", "need each other"),
        ("-c h --cntl-ka=3/1/3", "must exceed"),
    ] {
        let error = parsed(line).unwrap_err();
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn help_and_version_need_no_role() {
    assert!(matches!(parsed("-h"), Ok(Request::Help)));
    assert!(matches!(parsed("--version"), Ok(Request::Version)));
    assert!(version_text().starts_with("iperf 3."));
}
