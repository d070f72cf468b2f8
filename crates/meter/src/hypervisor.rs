//! Which hypervisor the machine runs under.

use crate::file::read_trimmed;

/// Names by which hypervisors make themselves known in CPUID leaf 0x4000_0000, with their usual names.
#[cfg(target_arch = "x86_64")]
const SIGNATURES: [(&str, &str); 8] = [
    ("KVMKVMKVM", "KVM"),
    ("Linux KVM Hv", "KVM"),
    ("Microsoft Hv", "Hyper-V"),
    ("VMwareVMware", "VMware"),
    ("XenVMMXenVMM", "Xen"),
    ("bhyve bhyve ", "bhyve"),
    ("ACRNACRNACRN", "ACRN"),
    ("TCGTCGTCGTCG", "QEMU (TCG)"),
];

/// The hypervisor, from the CPU (x86-64) or from what the firmware told (arm64); `None` on bare metal. `cpu_info` is
/// `/proc/cpuinfo`.
pub(crate) fn hypervisor(cpu_info: &str) -> Option<String> {
    from_cpu(cpu_info).or_else(from_firmware)
}

#[cfg(target_arch = "x86_64")]
fn from_cpu(cpu_info: &str) -> Option<String> {
    let mut flags =
        cpu_info.lines().filter(|line| line.starts_with("flags")).flat_map(str::split_ascii_whitespace);
    if !flags.any(|flag| flag == "hypervisor") {
        return None;
    }
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let signature: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let signature = String::from_utf8_lossy(&signature);
    let signature = signature.trim_end_matches('\0');
    let known = SIGNATURES.iter().find(|(of, _)| *of == signature).map(|(_, name)| (*name).to_owned());
    Some(
        known.unwrap_or_else(
            || if signature.is_empty() { "unknown".to_owned() } else { signature.to_owned() },
        ),
    )
}

#[cfg(not(target_arch = "x86_64"))]
fn from_cpu(_cpu_info: &str) -> Option<String> {
    None
}

fn from_firmware() -> Option<String> {
    const FILES: [&str; 2] = ["/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible"];
    let mut texts = FILES.iter().filter_map(|path| read_trimmed(path).ok());
    texts.find_map(|text| Some(text.split('\0').next()?.to_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_cpus_flag_decides() {
        assert_eq!(from_cpu("flags\t\t: fpu vme\n"), None);
        assert_eq!(from_cpu("processor: 0\n"), None);
        assert!(from_cpu("flags\t\t: fpu hypervisor lahf_lm\n").is_some());
    }
}
