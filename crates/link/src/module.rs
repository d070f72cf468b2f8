//! Modules of the running kernel: where their files are, and loading one with what it needs (modules.dep(5)).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_sys::module;

use crate::error::{LinkError, Result};

/// Folders are not searched deeper than they are ever laid out.
const DEEPEST: usize = 12;

/// Loads a module and first what it depends on; what is loaded already is left alone.
///
/// # Errors
/// There is no file of it for the running kernel, it is loaded already, or the kernel's refusal.
pub fn load(name: &str, parameters: &str) -> Result<()> {
    let name = plain(name)?;
    let files = files_of(&folder()?, &name)?;
    let Some((own, needed)) = files.split_first() else {
        return Err(missing(&name));
    };
    // modules.dep has the nearest first.
    for file in needed.iter().rev().filter(|file| !is_loaded(&name_of(file))) {
        module::load(file, "")?;
    }
    if module::load(own, parameters)? {
        return Ok(());
    }
    Err(LinkError::Invalid { what: format!("load module {name}"), why: "it is loaded already".to_owned() })
}

/// Unloads a module; what depends on it must go first.
///
/// # Errors
/// The kernel's refusal: ENOENT, or EWOULDBLOCK where it is in use.
pub fn unload(name: &str) -> Result<()> {
    Ok(module::unload(&plain(name)?)?)
}

/// Whether a module is loaded or built in.
pub fn is_loaded(name: &str) -> bool {
    Path::new("/sys/module").join(name.replace('-', "_")).is_dir()
}

/// A name that can't lead out of any folder; the kernel writes `_` where files may have `-`.
fn plain(name: &str) -> Result<String> {
    let good = !name.is_empty()
        && name.len() < 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if good {
        return Ok(name.replace('-', "_"));
    }
    let why = "a module's name has letters, digits, _ and -".to_owned();
    Err(LinkError::Invalid { what: format!("module {name:?}"), why })
}

fn folder() -> Result<PathBuf> {
    let release = "/proc/sys/kernel/osrelease";
    let text = fs::read_to_string(release).map_err(|cause| LinkError::file("read", release, cause))?;
    Ok(Path::new("/lib/modules").join(text.trim()))
}

/// The file of a module and those of what it needs, by modules.dep; where that does not name it, the file alone.
fn files_of(folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let listed = fs::read_to_string(folder.join("modules.dep")).unwrap_or_default();
    if let Some(files) = dependencies(&listed, name) {
        return Ok(files.into_iter().map(|file| folder.join(file)).collect());
    }
    let mut found = BTreeMap::new();
    search(folder, DEEPEST, &mut found);
    Ok(found.remove(name).into_iter().collect())
}

fn dependencies(listed: &str, name: &str) -> Option<Vec<PathBuf>> {
    let (own, needed) = listed
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(own, _)| name_of(Path::new(own)) == name)?;
    let all = std::iter::once(own).chain(needed.split_whitespace());
    Some(all.map(PathBuf::from).collect())
}

fn search(folder: &Path, deeper: usize, found: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && deeper > 0 {
            search(&path, deeper - 1, found);
        } else if path.to_string_lossy().contains(".ko") {
            found.insert(name_of(&path), path);
        }
    }
}

/// `e1000e` of `kernel/drivers/net/e1000e.ko.zst`.
fn name_of(path: &Path) -> String {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    file.split(".ko").next().unwrap_or_default().replace('-', "_")
}

fn missing(name: &str) -> LinkError {
    let what = format!("load module {name}");
    let why = folder().map_or_else(
        |error| error.to_string(),
        |folder| format!("there is no file of it below {}", folder.display()),
    );
    LinkError::Invalid { what, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_name_with_what_they_need() {
        let listed = "kernel/net/8021q/8021q.ko.zst: kernel/net/802/garp.ko.zst kernel/net/802/stp.ko.zst\n\
                      kernel/drivers/net/virtio-net.ko:\n";
        let files = dependencies(listed, "8021q").unwrap();
        assert_eq!(files.len(), 3);
        assert_eq!(name_of(&files[1]), "garp");
        assert_eq!(dependencies(listed, "virtio_net").unwrap().len(), 1);
        assert_eq!(dependencies(listed, "none"), None);
    }

    #[test]
    fn without_a_list_the_file_alone_is_found() {
        let folder = std::env::temp_dir().join(format!("linerate-modules-{}", std::process::id()));
        fs::create_dir_all(folder.join("kernel/net")).unwrap();
        fs::write(folder.join("kernel/net/lr-some.ko.xz"), "").unwrap();
        let files = files_of(&folder, "lr_some").unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(files, [folder.join("kernel/net/lr-some.ko.xz")]);
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        assert!(matches!(load("../x", "").unwrap_err(), LinkError::Invalid { .. }));
        assert!(load("lr_no_such_module", "").unwrap_err().to_string().contains("lr_no_such_module"));
    }
}
