//! Where the project's files are.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// The folder that cargo builds in.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The release binary that the users get.
pub(crate) fn linerate() -> PathBuf {
    target().join("release/linerate")
}

/// The cargo that runs this.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
