use super::*;
use crate::uperf::workorder::{Protocol, flag};

fn environment(name: &str) -> Option<String> {
    let known =
        [("h", "192.0.2.1"), ("nthr", "2"), ("proto", "UDP"), ("opts", "size=8k count=3"), ("empty", "")];
    known.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

fn parse(text: &str) -> Result<Profile, ProfileError> {
    read(text, &environment)
}

const SAMPLE: &str = r#"<?xml version="1.0"?>
<!-- a comment
     of two lines -->
<profile name="Sample One">
  <group nthreads="$NTHR">
    <transaction iterations="1">
      <flowop type="connect" options="remotehost=$h protocol=$proto wndsz=50k
         tcp_nodelay"/>
    </transaction>
    <transaction duration="3s" rate="1k">
      <flowop type="write" options="$opts"/>
      <flowop type="think" options="idle duration=10m"/>
    </transaction>
    <transaction iterations="1">
      <flowop type="disconnect" />
    </transaction>
  </group>
</profile>
"#;

#[test]
fn a_profile_as_uperf_ships_them_is_read() {
    let profile = parse(&SAMPLE.replace("$proto", "udp")).unwrap();
    assert_eq!(profile.name, "sample one");
    let group = &profile.groups[0];
    assert_eq!((group.strands, group.processes, group.transactions.len()), (2, false, 3));
    let connect = &group.transactions[0].flowops[0];
    assert_eq!((connect.kind, connect.protocol, connect.window), (Kind::Connect, Protocol::Udp, 51200));
    assert_eq!((connect.remote_host.as_str(), connect.flags), ("192.0.2.1", flag::TCP_NODELAY));
    let stream = &group.transactions[1];
    assert_eq!((stream.duration_ns, stream.rate), (3_000_000_000, 1024));
    assert_eq!((stream.flowops[0].size, stream.flowops[0].count), (8192, 3));
    assert_eq!(stream.flowops[1].duration_ns, 10_000_000);
}

#[test]
fn environment_values_keep_their_case_and_then_may_be_wrong() {
    // protocol=$proto is UDP in capitals: uperf knows no such protocol either.
    let error = parse(SAMPLE).unwrap_err();
    assert!(error.message.contains("Protocol UDP not supported"), "{error}");
    assert_eq!((error.line, error.column), (7, 30));
}

#[test]
fn minified_single_quoted_and_unquoted_xml_is_read() {
    let text = "<!DOCTYPE profile><profile name='x'><group nprocs=3 name=\"G\"><transaction duration='2s'>\
                <flowop type='accept' options='remotehost=h protocol=tcp'></flowop><flowop type='read' \
                options='size=rand(1,8k) canfail'/></transaction></group></profile>";
    let profile = parse(text).unwrap();
    let group = &profile.groups[0];
    assert_eq!((group.strands, group.processes, group.name.as_deref()), (3, true, Some("g")));
    assert_eq!(group.transactions[0].duration_ns, 2_000_000_000);
    assert_eq!(group.transactions[0].flowops.len(), 2);
    assert!(group.transactions[0].flowops[1].has(flag::CAN_FAIL));
    assert!(group.accepts());
    assert_eq!(group.hosts(), ["h"]);
    assert_eq!(group.protocols(), [Protocol::Tcp]);
}

#[test]
fn the_last_of_two_counts_wins_and_duration_resets_iterations() {
    let text = "<profile><group nthreads=\"4\" nprocs=\"2\"><transaction iterations=\"9\" duration=\"1s\"/></group></profile>";
    let profile = parse(text).unwrap();
    assert_eq!((profile.groups[0].strands, profile.groups[0].processes), (2, true));
    assert_eq!(profile.groups[0].transactions[0].iterations, 1);
}

#[test]
fn faults_have_line_and_column() {
    for (text, line, column, part) in [
        ("", 1, 1, "empty"),
        ("<profile>\n  <gruop/>\n</profile>", 2, 3, "Unknown symbol: <gruop"),
        ("<profile>\n  hello\n</profile>", 2, 3, "Unknown symbol: hello"),
        ("<profile><group nthreads=\"2x\"/></profile>", 1, 17, "cannot parse 2x"),
        ("<profile><group\n\n  nthreads=\"$no\"/></profile>", 3, 3, "$no is not set"),
        ("<profile><group nthreads=\"$empty\"/></profile>", 1, 17, "$empty is not set"),
        ("<profile><flowop type=\"nop\"/></profile>", 1, 10, "<flowop> has no place here"),
        ("<profile rate=\"1\"/>", 1, 10, "belongs to a transaction"),
        ("<profile><group><transaction><flowop type=\"sendto\"/>", 1, 38, "Unknown flowop sendto"),
        ("<profile><group><transaction><flowop/>", 1, 30, "flowop needs type="),
        ("<profile><group><transaction><flowop type=\"write\"/>", 1, 30, "write needs size="),
        ("<profile><group>", 1, 17, "ends within"),
        ("<profile/><profile/>", 1, 11, "has no place here"),
        ("<!-- only -->", 1, 14, "no <profile>"),
        ("<profile a=\"1\"/>", 1, 10, "Unknown symbol: a="),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.message.contains(part), "{text}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
    }
}

#[test]
fn a_broken_tag_is_a_fault_with_its_place() {
    let error = parse("<profile>\n  <group nthreads=\"2\"\n").unwrap_err();
    assert_eq!(error.line, 2, "{error}");
    assert!(parse("<profile></group></profile>").is_err());
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(text in ".{0,400}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_damaged_profile_is_survived(at in 0..SAMPLE.len(), byte in 0u8..128) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }
}
