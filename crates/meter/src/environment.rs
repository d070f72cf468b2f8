//! What machine a node is: everything of `Environment` but the link.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use linerate_model::environment::Environment;
use linerate_sys::affinity::{allowed_cpus, online_cpus};

use crate::error::{MeterError, Result};
use crate::file::{failed, read_trimmed};
use crate::hypervisor::hypervisor;

/// Sysctls that bear on results (the kernel's Documentation/admin-guide/sysctl/net.rst and networking/ip-sysctl.rst).
const SYSCTLS: [&str; 41] = [
    "net.core.bpf_jit_enable",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.gro_normal_batch",
    "net.core.high_order_alloc_disable",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.skb_defer_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
];

const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Reads what the machine is, and the network sysctls of the calling thread's namespace. `link` stays `None`.
///
/// Sysctls that the kernel or the namespace lacks are left out. What should be there and can't be read is named in
/// `unavailable`, with its reason.
pub fn environment() -> Environment {
    let mut notes = Vec::new();
    let mut kernel = |name: &str| keep(read_trimmed(format!("/proc/sys/kernel/{name}")), &mut notes);
    let host = kernel("hostname");
    let release = kernel("osrelease");
    let build = kernel("version");
    let boot_id = kernel("random/boot_id");
    let cpu_info = keep(read_trimmed("/proc/cpuinfo"), &mut notes);
    let controls = keep(read_trimmed(CONGESTION_CONTROLS), &mut notes);
    let cpus = keep(online_cpus().map_err(MeterError::from), &mut notes);
    let allowed = keep(allowed_cpus().map_err(MeterError::from), &mut notes);
    Environment {
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        kernel: release,
        kernel_build: build,
        architecture: std::env::consts::ARCH.to_owned(),
        boot_id,
        cpu_model: cpu_model(&cpu_info),
        cpus_online: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
        cpus_allowed: allowed.into_iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect(),
        numa_nodes: numa_nodes(),
        memory_bytes: keep(memory_bytes(), &mut notes),
        hypervisor: hypervisor(&cpu_info),
        governor: optional("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clocksource: optional("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        mitigations: keep(mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities")), &mut notes),
        sysctls: sysctls(Path::new("/proc/sys")),
        congestion_controls: controls.split_ascii_whitespace().map(str::to_owned).collect(),
        link: None,
        unavailable: notes,
    }
}

fn keep<T: Default>(result: Result<T>, notes: &mut Vec<String>) -> T {
    result.unwrap_or_else(|error| {
        notes.push(error.to_string());
        T::default()
    })
}

/// A file that many machines don't have.
fn optional(path: &str) -> Option<String> {
    read_trimmed(path).ok().filter(|text| !text.is_empty())
}

/// The first `model name`; on arm64, which has none, the implementer's and the part's numbers.
fn cpu_model(cpu_info: &str) -> String {
    let field = |wanted: &str| {
        let fields = cpu_info.lines().filter_map(|line| line.split_once(':'));
        let mut found = fields.filter(|(name, _)| name.trim() == wanted);
        found.next().map(|(_, value)| value.trim().to_owned())
    };
    let arm = || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").or_else(arm).unwrap_or_else(|| "unknown".to_owned())
}

/// Nodes with memory or CPUs that are online; a kernel without NUMA has one.
fn numa_nodes() -> u32 {
    let online = read_trimmed("/sys/devices/system/node/online").unwrap_or_default();
    count_list(&online).filter(|&count| count > 0).unwrap_or(1)
}

/// How many numbers a list such as `0-3,8` has.
fn count_list(list: &str) -> Option<u32> {
    let mut count = 0u32;
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?)?.checked_add(1)?;
    }
    Some(count)
}

fn memory_bytes() -> Result<u64> {
    const PATH: &str = "/proc/meminfo";
    parse_memory(&read_trimmed(PATH)?).ok_or_else(|| MeterError::malformed(PATH, "no MemTotal in kB"))
}

fn parse_memory(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn mitigations(directory: &Path) -> Result<BTreeMap<String, String>> {
    let mut mitigations = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(|cause| failed("list", directory, cause))? {
        let entry = entry.map_err(|cause| failed("list", directory, cause))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        mitigations.insert(name, read_trimmed(entry.path())?);
    }
    Ok(mitigations)
}

/// Those of [`SYSCTLS`] that there are, blanks between their numbers.
fn sysctls(root: &Path) -> BTreeMap<String, String> {
    let value = |name: &str| {
        let text = read_trimmed(root.join(name.replace('.', "/"))).ok()?;
        Some(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
    };
    SYSCTLS.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn this_machine_is_described() {
        let environment = environment();
        assert_eq!(environment.unavailable, Vec::<String>::new());
        assert_eq!(environment.boot_id.len(), 36, "{environment:?}");
        assert_eq!(environment.architecture, std::env::consts::ARCH);
        assert!(environment.cpus_online >= 1 && !environment.cpus_allowed.is_empty());
        assert!(environment.memory_bytes > 1 << 20);
        assert!(environment.numa_nodes >= 1);
        assert!(environment.kernel.starts_with(|first: char| first.is_ascii_digit()));
        assert!(environment.congestion_controls.iter().any(|control| control == "reno"));
        let receive = &environment.sysctls["net.ipv4.tcp_rmem"];
        assert_eq!(receive.split(' ').filter(|number| number.parse::<u64>().is_ok()).count(), 3, "{receive}");
        assert!(environment.sysctls["net.core.rmem_max"].parse::<u64>().is_ok());
    }

    #[test]
    fn cpu_models_of_both_architectures_are_read() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\n"), "Some CPU @ 2.0GHz");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu_model(arm), "implementer 0x41 part 0xd0c");
        assert_eq!(cpu_model(""), "unknown");
    }

    #[test]
    fn lists_are_counted() {
        assert_eq!(count_list("0-3,8"), Some(5));
        assert_eq!(count_list(""), Some(0));
        assert_eq!(count_list("3-1"), None);
        assert_eq!(count_list("0-4294967295"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(parse_memory("MemFree: 1 kB\nMemTotal:   2048 kB\n"), Some(2 << 20));
        assert_eq!(parse_memory("MemTotal: 18446744073709551615 kB\n"), None);
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "(.{0,12}[:,-]?.{0,12}\n?){0,5}") {
            let _ = cpu_model(&text);
            let _ = count_list(&text);
            let _ = parse_memory(&text);
        }
    }
}
