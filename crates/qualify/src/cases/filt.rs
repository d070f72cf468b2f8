//! Cases of the area `filt`.

pub(crate) mod filt_01;
pub(crate) mod filt_02;
pub(crate) mod filt_03;
pub(crate) mod filt_04;
pub(crate) mod filt_05;
pub(crate) mod filt_06;
