//! netperf.
