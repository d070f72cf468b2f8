//! Cases of the area `rdma`.

pub(crate) mod rdma_01;
