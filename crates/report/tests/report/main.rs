//! Reports of made-up but plausible records of every workload.

mod samples;
mod tables;
