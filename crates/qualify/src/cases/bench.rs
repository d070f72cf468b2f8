//! Cases of the area `bench`.

pub(crate) mod bench_01;
pub(crate) mod bench_02;
pub(crate) mod bench_03;
pub(crate) mod bench_04;
pub(crate) mod bench_05;
pub(crate) mod bench_06;
pub(crate) mod bench_07;
pub(crate) mod bench_08;
pub(crate) mod bench_09;
