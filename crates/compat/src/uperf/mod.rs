//! uperf.
