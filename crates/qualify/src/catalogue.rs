//! All cases, in the order of their value: bugs found for their cost, over many drivers.

use crate::case::Case;
use crate::cases;

/// Every case that the suite knows, whether it offers it or not.
pub static CATALOGUE: [&Case; 116] = [
    &cases::tx::tx_01::CASE,
    &cases::rx::rx_01::CASE,
    &cases::rx::rx_02::CASE,
    &cases::data::data_01::CASE,
    &cases::csum::csum_01::CASE,
    &cases::csum::csum_02::CASE,
    &cases::csum::csum_03::CASE,
    &cases::tso::tso_01::CASE,
    &cases::tx::tx_02::CASE,
    &cases::life::life_01::CASE,
    &cases::life::life_02::CASE,
    &cases::life::life_03::CASE,
    &cases::fault::fault_01::CASE,
    &cases::stat::stat_01::CASE,
    &cases::stat::stat_02::CASE,
    &cases::filt::filt_01::CASE,
    &cases::filt::filt_02::CASE,
    &cases::filt::filt_03::CASE,
    &cases::vlan::vlan_01::CASE,
    &cases::vlan::vlan_02::CASE,
    &cases::mtu::mtu_01::CASE,
    &cases::mtu::mtu_02::CASE,
    &cases::frag::frag_01::CASE,
    &cases::offl::offl_01::CASE,
    &cases::ring::ring_01::CASE,
    &cases::chan::chan_01::CASE,
    &cases::rss::rss_01::CASE,
    &cases::link::link_01::CASE,
    &cases::link::link_02::CASE,
    &cases::mac::mac_01::CASE,
    &cases::stress::stress_01::CASE,
    &cases::stress::stress_02::CASE,
    &cases::tx::tx_03::CASE,
    &cases::tso::tso_02::CASE,
    &cases::tso::tso_03::CASE,
    &cases::gro::gro_01::CASE,
    &cases::gro::gro_02::CASE,
    &cases::rxovf::rxovf_01::CASE,
    &cases::coal::coal_01::CASE,
    &cases::diag::diag_01::CASE,
    &cases::diag::diag_02::CASE,
    &cases::irq::irq_01::CASE,
    &cases::xdp::xdp_01::CASE,
    &cases::xdp::xdp_02::CASE,
    &cases::pm::pm_01::CASE,
    &cases::pci::pci_01::CASE,
    &cases::bench::bench_01::CASE,
    &cases::env::env_01::CASE,
    &cases::csum::csum_04::CASE,
    &cases::csum::csum_05::CASE,
    &cases::csum::csum_06::CASE,
    &cases::csum::csum_07::CASE,
    &cases::csum::csum_08::CASE,
    &cases::csum::csum_09::CASE,
    &cases::uso::uso_01::CASE,
    &cases::gro::gro_03::CASE,
    &cases::gro::gro_04::CASE,
    &cases::vlan::vlan_03::CASE,
    &cases::vlan::vlan_04::CASE,
    &cases::vlan::vlan_05::CASE,
    &cases::filt::filt_04::CASE,
    &cases::filt::filt_05::CASE,
    &cases::filt::filt_06::CASE,
    &cases::mac::mac_02::CASE,
    &cases::link::link_03::CASE,
    &cases::link::link_04::CASE,
    &cases::link::link_05::CASE,
    &cases::link::link_06::CASE,
    &cases::pause::pause_01::CASE,
    &cases::pause::pause_02::CASE,
    &cases::stat::stat_03::CASE,
    &cases::stat::stat_04::CASE,
    &cases::stat::stat_05::CASE,
    &cases::stat::stat_06::CASE,
    &cases::rss::rss_02::CASE,
    &cases::rss::rss_03::CASE,
    &cases::rss::rss_04::CASE,
    &cases::ntup::ntup_01::CASE,
    &cases::ts::ts_01::CASE,
    &cases::ts::ts_02::CASE,
    &cases::txq::txq_01::CASE,
    &cases::txq::txq_02::CASE,
    &cases::napi::napi_01::CASE,
    &cases::poll::poll_01::CASE,
    &cases::hds::hds_01::CASE,
    &cases::afxdp::afxdp_01::CASE,
    &cases::xdp::xdp_03::CASE,
    &cases::fault::fault_02::CASE,
    &cases::fault::fault_03::CASE,
    &cases::bond::bond_01::CASE,
    &cases::pci::pci_02::CASE,
    &cases::pci::pci_03::CASE,
    &cases::pci::pci_04::CASE,
    &cases::pci::pci_05::CASE,
    &cases::pm::pm_02::CASE,
    &cases::pm::pm_03::CASE,
    &cases::fw::fw_01::CASE,
    &cases::nvm::nvm_01::CASE,
    &cases::sriov::sriov_01::CASE,
    &cases::forw::forw_01::CASE,
    &cases::pois::pois_01::CASE,
    &cases::fcs::fcs_01::CASE,
    &cases::bench::bench_02::CASE,
    &cases::bench::bench_03::CASE,
    &cases::bench::bench_04::CASE,
    &cases::bench::bench_05::CASE,
    &cases::bench::bench_06::CASE,
    &cases::bench::bench_07::CASE,
    &cases::bench::bench_08::CASE,
    &cases::bench::bench_09::CASE,
    &cases::stress::stress_03::CASE,
    &cases::stress::stress_04::CASE,
    &cases::stress::stress_05::CASE,
    &cases::rdma::rdma_01::CASE,
    &cases::sec::sec_01::CASE,
    &cases::mm::mm_01::CASE,
];

/// The case of an id, whatever its letters' case.
pub fn find(id: &str) -> Option<&'static Case> {
    CATALOGUE.into_iter().find(|case| case.id.eq_ignore_ascii_case(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use linerate_model::qualification::Level;

    #[test]
    fn every_case_is_there_once_and_told_in_full() {
        let ids: BTreeSet<&str> = CATALOGUE.iter().map(|case| case.id).collect();
        assert_eq!(ids.len(), 116);
        let of = |low, high| CATALOGUE.iter().filter(|case| (low..=high).contains(&case.level)).count();
        assert_eq!(of(Level::Quick, Level::Core), 48);
        assert_eq!(of(Level::Extended, Level::Extended), 42);
        assert_eq!(of(Level::Full, Level::Full), 26);
        for case in CATALOGUE {
            for text in [case.title, case.does, case.holds, case.source, case.shown_on] {
                assert!(!text.is_empty() && !text.contains("  "), "{}: {text}", case.id);
            }
            let variants: BTreeSet<&str> = case.variants().iter().copied().collect();
            assert_eq!(variants.len(), case.variants().len(), "{} names a variant twice", case.id);
        }
    }
}
