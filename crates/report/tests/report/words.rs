//! Words for trials and hazards.

use linerate_model::hazard::HazardKind;
use linerate_model::trial::{Amount, Family, Pinning};
use linerate_model::units::RateUnit;
use linerate_model::workload::{SendMethod, Workload, WorkloadKind};
use linerate_report::trial_text;

use crate::samples::{sample, trial, with_rate, workload};

#[test]
fn a_trial_in_one_line() {
    let mut t = trial(workload(WorkloadKind::TcpStream));
    assert_eq!(trial_text(&t), "tcp-stream 128K x1 IPv4");
    t.family = Family::V6;
    t.streams = 4;
    t.repeat = 1;
    t.verify_seed = Some(1);
    t.pin = Pinning { dut: vec![0, 2], peer: Vec::new() };
    t.amount = Amount::Bytes(1 << 30);
    let Workload::TcpStream(w) = &mut t.workload else { unreachable!() };
    w.send = SendMethod::Sendfile;
    w.socket.tos = Some(0xb8);
    w.socket.mss_bytes = Some(536);
    assert_eq!(
        trial_text(&t),
        "tcp-stream 128K x4 IPv6 sendfile mss 536 tos 0xb8 pin dut=0+2 verify repeat 2"
    );
    let rr = with_rate(sample(WorkloadKind::TcpRr), 50_000, RateUnit::RequestsPerSecond);
    assert_eq!(trial_text(&rr.trial), "tcp-rr 1/1 x1 IPv4 rate 50krps nodelay");
}

#[test]
fn hazards_are_called_as_in_json() {
    let schema = schemars::schema_for!(HazardKind).to_value();
    let words: Vec<&str> =
        schema["oneOf"].as_array().unwrap().iter().map(|v| v["const"].as_str().unwrap()).collect();
    assert!(words.len() >= 20);
    for word in words {
        let kind: HazardKind = serde_json::from_value(word.into()).unwrap();
        assert_eq!(kind.name(), word);
    }
}
