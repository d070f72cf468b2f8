//! Cases of the area `vlan`.

pub(crate) mod vlan_01;
pub(crate) mod vlan_02;
pub(crate) mod vlan_03;
pub(crate) mod vlan_04;
pub(crate) mod vlan_05;
