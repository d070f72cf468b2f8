//! Reports of made-up but plausible records of every workload.

mod browser;
mod csv;
mod documents;
mod html;
mod json;
mod live;
mod pivot;
mod qualification;
mod random;
mod samples;
mod schema;
mod tables;
mod trends;
mod verdicts;
mod words;
