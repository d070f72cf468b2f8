//! Where results go: stdout, files, pipes that close, disks that refuse.

use std::process::Command;
use std::time::Duration;

use linerate_testkit::{Program, Wire, need, records, run_within};

const LIMIT: Duration = Duration::from_secs(30);

fn linerate() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

fn run(wire: &Wire, options: &str) -> linerate_testkit::Finished {
    let (dut, peer) = (wire.left.node(), wire.right.node());
    let words = ["run", &peer, "--dut", &dut].into_iter().chain(options.split_whitespace());
    linerate().run(&words.collect::<Vec<_>>())
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    need!(netns());
    let wire = Wire::new();
    let (dut, peer) = (wire.left.node(), wire.right.node());
    for format in ["", "--json", "--csv"] {
        let script = format!(
            "{{ {} run {peer} --dut {dut} -w tcp-rr,udp-rr -t 0.1 --warmup 0 -q --no-store {format}; echo code $? >&2; }} | head -c 1",
            linerate().path().display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        let finished = run_within(command, LIMIT).expect_code(0);
        assert_eq!(finished.stderr.trim(), "code 0", "{format}");
    }
    let mut full = Command::new("sh");
    let program = linerate().path().display().to_string();
    let script =
        format!("{program} run {peer} --dut {dut} -w tcp-rr -t 0.1 --warmup 0 -q --no-store >/dev/full");
    full.args(["-c", &script]);
    let finished = run_within(full, LIMIT).expect_code(3);
    assert!(finished.stderr.contains("write to stdout: No space left"), "{}", finished.stderr);
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_the_table_is_not_lost() {
    need!(netns());
    let wire = Wire::new();
    for file in ["/proc/nothing/run.json", "/dev/full"] {
        let finished = run(&wire, &format!("-w tcp-rr -t 0.1 --warmup 0 -o {file}")).expect_code(3);
        assert!(finished.stderr.contains(file), "{}", finished.output());
        let early = finished.elapsed < Duration::from_millis(400) && finished.stdout.is_empty();
        assert!(early || finished.stdout.contains("tcp-rr"), "{}", finished.output());
    }
}

#[test]
fn the_table_the_csv_and_the_file_tell_the_same() {
    need!(netns());
    let wire = Wire::new();
    let file = std::env::temp_dir().join(format!("lr-output-{}.json", std::process::id()));
    let options = format!("-w tcp-stream,tcp-rr -t 0.2 --warmup 0 --csv -o {}", file.display());
    let finished = run(&wire, &options).expect_code(0);
    let stored = records(&std::fs::read_to_string(&file).unwrap());
    std::fs::remove_file(&file).unwrap();
    let mut rows = finished.stdout.lines();
    let names: Vec<&str> = rows.next().unwrap().split(',').collect();
    assert_eq!((stored.len(), finished.stdout.lines().count()), (2, 3));
    for (record, row) in stored.iter().zip(rows) {
        let cell = |name: &str| row.split(',').nth(names.iter().position(|n| *n == name).unwrap()).unwrap();
        assert_eq!(cell("workload"), record.trial.workload.kind().name());
        let goodput: f64 = cell("goodput_bits_per_second").parse().unwrap();
        assert!((goodput - record.summary.goodput_bits_per_second).abs() < 1.0, "{row}");
    }
}

#[test]
fn intervals_are_shown_live_on_stderr_and_quiet_is_quiet() {
    need!(netns());
    let wire = Wire::new();
    let live = run(&wire, "-w tcp-stream -t 1 --warmup 0 --interval 0.25").expect_code(0);
    assert!(live.stderr.lines().count() >= 5, "{}", live.output());
    let quiet = run(&wire, "-w tcp-stream -t 0.5 --warmup 0 --interval 0.25 -q --no-store").expect_code(0);
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.contains("us/KB") && quiet.stdout.contains("limited by"), "{}", quiet.stdout);
}
