//! Cases of the area `irq`.

pub(crate) mod irq_01;
