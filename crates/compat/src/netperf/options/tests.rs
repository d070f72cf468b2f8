use super::super::request::Transport;
use super::*;

fn parse(text: &str) -> Result<Options, Refusal> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    Options::parse(&words)
}

#[test]
fn both_parts_of_the_command_line_are_read() {
    let options = parse("-H host,6 -t udp_rr -l -500 -c 50 -C -T ,1 -- -r 64,1K -b 3 -P 5,6").unwrap();
    assert_eq!((options.test, options.length), (TestName::UdpRr, Length::Count(500)));
    assert_eq!((options.server.family, options.bind_cpu), (Some(6), [-1, 1]));
    assert_eq!(options.measure_cpu, [true, true]);
    assert_eq!((options.own.exchange, options.in_flight(), options.own.ports), ([64, 1024], 4, [5, 6]));
    assert_eq!(parse("").unwrap().length, Length::Seconds(10));
}

#[test]
fn a_level_alone_leaves_the_width() {
    let options = parse("-I 99").unwrap();
    assert_eq!((options.confidence_level, options.iterations), (Some(99), [10, 3]));
    assert!((options.confidence_width - 0.05).abs() < 1e-9);
    assert!((parse("-I 95,10 -i 40,1").unwrap().confidence_width - 0.1).abs() < 1e-9);
    assert_eq!(parse("-i 40,1").unwrap().iterations, [30, 3]);
    assert!(matches!(parse("-I 90"), Err(Refusal::Complain(_, 255))));
}

#[test]
fn an_omni_test_gets_its_pattern_from_its_options() {
    for (own, pattern) in [
        ("", Pattern::Stream),
        ("-d recv", Pattern::Maerts),
        ("-d 6", Pattern::Rr),
        ("-c -d rr", Pattern::Crr),
        ("-c", Pattern::Cc),
        ("-M ,100", Pattern::Maerts),
        ("-r 1,1", Pattern::Rr),
    ] {
        assert_eq!(parse(&format!("-t omni -- {own}")).unwrap().own.pattern, pattern, "{own}");
    }
    assert_eq!(parse("-t omni -- -T udp").unwrap().own.transport, Transport::Udp);
}

#[test]
fn what_is_not_offered_says_so() {
    for line in ["-F a,b", "-N", "-t TCP_STREAM -- -C", "-- -T sctp", "-l ten", "-x", "-t NO_SUCH", "stray"] {
        assert!(matches!(parse(line), Err(Refusal::Complain(_, 1))), "{line}");
    }
    assert!(matches!(parse("-V"), Err(Refusal::Print(_))));
}
