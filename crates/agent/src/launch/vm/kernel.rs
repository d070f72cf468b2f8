//! Kernels for guests: those that are installed, and those that `linerate vm fetch` unpacked in the cache.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Result, VmError};

/// A kernel with its modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its release (`uname -r`).
    pub version: String,
    /// The image that QEMU boots.
    pub image: PathBuf,
    /// Its modules (`.../lib/modules/VERSION`).
    pub modules: PathBuf,
}

impl Kernel {
    /// The kernel that `choice` names (a version, or the folder that a package was unpacked to); the newest that is there
    /// where nothing is chosen.
    ///
    /// # Errors
    /// There is none, or not this one; says what can be done.
    pub fn choose(choice: Option<&str>) -> Result<Self> {
        let known = all();
        let Some(choice) = choice else {
            return known.into_iter().next().ok_or_else(|| {
                let words = "no kernel for a guest is installed or fetched: run `linerate vm fetch`, or name an \
                             unpacked kernel package with --kernel";
                VmError::Kernel(words.to_owned())
            });
        };
        if let Some(kernel) = known.iter().find(|kernel| kernel.version == choice) {
            return Ok(kernel.clone());
        }
        if let Some(kernel) = in_folder(Path::new(choice)).into_iter().next() {
            return Ok(kernel);
        }
        let versions: Vec<_> = known.into_iter().map(|kernel| kernel.version).collect();
        let known = if versions.is_empty() { "none".to_owned() } else { versions.join(", ") };
        Err(VmError::Kernel(format!(
            "no kernel {choice}: it is neither a version that is here ({known}) nor a folder with boot/vmlinuz-* and lib/modules"
        )))
    }
}

/// All kernels that are here, the newest first.
pub fn all() -> Vec<Kernel> {
    let mut kernels = in_folder(Path::new("/"));
    for folder in entries(&cache()) {
        kernels.extend(in_folder(&folder));
    }
    kernels.sort_by(|a, b| by_version(&b.version, &a.version));
    kernels.dedup_by(|a, b| a.version == b.version);
    kernels
}

/// Where fetched kernels are: `$XDG_CACHE_HOME/linerate/kernels`, a folder each.
pub fn cache() -> PathBuf {
    let home =
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/var/cache".into())).join(".cache");
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    base.unwrap_or_else(home).join("linerate/kernels")
}

/// The kernels below a folder that looks like the root of a system.
pub(super) fn in_folder(root: &Path) -> Vec<Kernel> {
    let modules = ["lib/modules", "usr/lib/modules"].map(|below| root.join(below));
    let mut found: Vec<Kernel> = Vec::new();
    for folder in modules.iter().flat_map(|folder| entries(folder)) {
        let Some(version) = folder.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
            continue;
        };
        let images = [root.join(format!("boot/vmlinuz-{version}")), folder.join("vmlinuz")];
        let Some(image) = images.into_iter().find(|image| image.is_file()) else { continue };
        if folder.join("kernel").is_dir() && found.iter().all(|known| known.version != version) {
            found.push(Kernel { version, image, modules: folder });
        }
    }
    found.sort_by(|a, b| by_version(&b.version, &a.version));
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Numbers compare as numbers: 6.12 is newer than 6.1, and 6.1.0-10 than 6.1.0-9.
fn by_version(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(u64, String)> {
        text.split(['.', '-', '+', '~', '_'])
            .map(|part| {
                let digits = part.bytes().take_while(u8::is_ascii_digit).count();
                (part[..digits].parse().unwrap_or_default(), part[digits..].to_owned())
            })
            .collect()
    };
    parts(a).cmp(&parts(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_first() {
        let mut versions = ["6.1.0-9-amd64", "6.12.5-amd64", "6.1.0-57-amd64", "5.10.0-1-amd64"];
        versions.sort_by(|a, b| by_version(b, a));
        assert_eq!(versions, ["6.12.5-amd64", "6.1.0-57-amd64", "6.1.0-9-amd64", "5.10.0-1-amd64"]);
    }

    #[test]
    fn a_package_that_was_unpacked_is_found() {
        let root = std::env::temp_dir().join(format!("lr-kernel-{}", std::process::id()));
        for folder in ["boot", "lib/modules/6.1.0-5-x/kernel", "lib/modules/6.1.0-6-x/kernel"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("boot/vmlinuz-6.1.0-5-x"), "").unwrap();
        let found = in_folder(&root);
        assert_eq!(found.iter().map(|k| k.version.as_str()).collect::<Vec<_>>(), ["6.1.0-5-x"]);
        assert_eq!(Kernel::choose(root.to_str()).unwrap().version, "6.1.0-5-x");
        assert!(Kernel::choose(Some("9.9-none")).unwrap_err().to_string().contains("no kernel 9.9-none"));
        fs::remove_dir_all(&root).unwrap();
    }
}
