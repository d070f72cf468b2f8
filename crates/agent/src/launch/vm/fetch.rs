//! Gets a kernel package through the system's package manager, and unpacks it in the cache. Nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::{Result, VmError};
use super::kernel::{self, Kernel};

/// The package that always depends on the newest kernel of a Debian system.
const NEWEST: &str = "linux-image-amd64";

/// Gets the newest kernel that the system's package sources have, or the package that is named. One that is in the cache
/// already is not got again.
///
/// # Errors
/// The system is no Debian, the package is not in its sources, or it can't be unpacked; with what apt said.
pub fn fetch(package: Option<&str>) -> Result<Kernel> {
    let package = match package {
        Some(name) => name.to_owned(),
        None => newest()?,
    };
    let version = package.trim_start_matches("linux-image-").to_owned();
    let target = kernel::cache().join(&version);
    if let Some(kernel) = kernel::in_folder(&target).into_iter().next() {
        return Ok(kernel);
    }
    let made = fs::create_dir_all(kernel::cache());
    made.map_err(|cause| VmError::file("create", kernel::cache().display(), cause))?;
    let work = Work::create(kernel::cache().join(format!(".{version}-{}", std::process::id())))?;
    // As another user than this one, where there is such a user, apt could not write here.
    run("apt-get", &["-q", "-o", "APT::Sandbox::User=root", "download", &package], work.path())?;
    let archive = fs::read_dir(work.path())
        .map_err(|cause| VmError::file("list", work.path().display(), cause))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "deb"))
        .ok_or_else(|| VmError::Kernel(format!("apt-get download {package} left no package")))?;
    let root = work.path().join("root");
    run("dpkg-deb", &["-x", &archive.display().to_string(), &root.display().to_string()], work.path())?;
    if kernel::in_folder(&root).is_empty() {
        return Err(VmError::Kernel(format!("package {package} holds no kernel with modules")));
    }
    // At once: a fetch that is killed leaves no half of a kernel.
    fs::rename(&root, &target).map_err(|cause| VmError::file("move to", target.display(), cause))?;
    kernel::in_folder(&target)
        .into_iter()
        .next()
        .ok_or_else(|| VmError::Kernel(format!("package {package} holds no kernel with modules")))
}

fn newest() -> Result<String> {
    let text = run("apt-cache", &["depends", "--important", NEWEST], Path::new("/"))?;
    parse_depends(&text).ok_or_else(|| {
        VmError::Kernel(format!(
            "{NEWEST} is in none of this system's package sources: run apt-get update first"
        ))
    })
}

/// Lines are `  Depends: linux-image-6.1.0-57-amd64`.
fn parse_depends(text: &str) -> Option<String> {
    let depends = |line: &str| line.trim().strip_prefix("Depends: ").map(str::to_owned);
    text.lines().filter_map(depends).find(|package| package.starts_with("linux-image-"))
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| {
            if cause.kind() == std::io::ErrorKind::NotFound {
                let words = "it fetches with apt: elsewhere unpack a kernel package and name the folder with --kernel";
                return VmError::Kernel(format!("there is no {program} here; {words}"));
            }
            VmError::file("run", program, cause)
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let words: Vec<_> = stderr.lines().map(str::trim).filter(|line| line.starts_with("E:")).collect();
    let words = if words.is_empty() { output.status.to_string() } else { words.join("; ") };
    Err(VmError::Kernel(format!("{program} {}: {words}", arguments.join(" "))))
}

/// A folder that is removed when this is dropped.
struct Work(PathBuf);

impl Work {
    fn create(path: PathBuf) -> Result<Self> {
        fs::create_dir_all(&path).map_err(|cause| VmError::file("create", path.display(), cause))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_the_newest_kernel_is_found() {
        let text = "linux-image-amd64\n  Depends: linux-image-6.1.0-57-amd64\n";
        assert_eq!(parse_depends(text).as_deref(), Some("linux-image-6.1.0-57-amd64"));
        assert_eq!(parse_depends("linux-image-amd64\n"), None);
    }
}
