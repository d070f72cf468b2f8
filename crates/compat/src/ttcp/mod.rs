//! ttcp.
