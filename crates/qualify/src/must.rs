//! What must arrive, worked out in software: the kernel's and the driver's word alone is never believed.

pub mod checksum;
pub mod count;
pub mod delivery;
pub mod filter;
pub mod parse;
pub mod segments;
