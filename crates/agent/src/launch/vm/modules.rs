//! Kernel modules for a guest: where they are, and which others each needs first.
//!
//! What a module needs is read from the module itself (its `.modinfo`), not from depmod's files: a package that is
//! unpacked and not installed has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::elf;
use super::error::{Result, VmError};

/// The modules of one kernel.
#[derive(Debug)]
pub(super) struct ModuleTree {
    kernel: String,
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// A module, ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    /// Its name with underscores, as the kernel has it.
    pub(super) name: String,
    /// Its file, uncompressed.
    pub(super) content: Vec<u8>,
    /// All that it needs, the nearest first, as in modules.dep(5).
    pub(super) needs: Vec<String>,
    /// By which names the kernel asks for it.
    pub(super) aliases: Vec<String>,
}

impl ModuleTree {
    /// Reads what there is below `folder` (`/lib/modules/VERSION`) for the kernel of this version.
    ///
    /// # Errors
    /// The folder can't be read.
    pub(super) fn read(folder: &Path, kernel: &str) -> Result<Self> {
        let mut files = BTreeMap::new();
        collect(folder, &mut files).map_err(|cause| VmError::file("list", folder.display(), cause))?;
        let list = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        let built_in = list.lines().filter_map(|line| name_of(Path::new(line))).collect();
        Ok(Self { kernel: kernel.to_owned(), files, built_in })
    }

    /// Whether the kernel has this module, or has it built in.
    pub(super) fn has(&self, name: &str) -> bool {
        let name = plain(name);
        self.files.contains_key(&name) || self.built_in.contains(&name)
    }

    /// These modules and all that they need, each behind what it needs; without those that are built in.
    ///
    /// # Errors
    /// A module that the kernel does not have, or whose file can't be read.
    pub(super) fn in_order(&self, names: &[String]) -> Result<Vec<Module>> {
        let mut ordered = Vec::new();
        let mut seen = BTreeSet::new();
        for name in names {
            self.add(&plain(name), &mut seen, &mut ordered)?;
        }
        Ok(ordered)
    }

    fn add(&self, name: &str, seen: &mut BTreeSet<String>, ordered: &mut Vec<Module>) -> Result<()> {
        if self.built_in.contains(name) || !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let missing = || VmError::NoModule { module: name.to_owned(), kernel: self.kernel.clone() };
        let content = read_module(self.files.get(name).ok_or_else(missing)?)?;
        let info = elf::section(&content, ".modinfo").unwrap_or_default();
        let direct = needs(info);
        for needed in &direct {
            self.add(needed, seen, ordered)?;
        }
        for wished in wishes(info) {
            if self.has(&wished) {
                self.add(&wished, seen, ordered)?;
            }
        }
        let aliases = values(info, "alias=").map(str::to_owned).collect();
        let needs = all_needs(&direct, ordered);
        ordered.push(Module { name: name.to_owned(), content, needs, aliases });
        Ok(())
    }
}

/// What these modules are and need, each behind those that need it.
fn all_needs(direct: &[String], known: &[Module]) -> Vec<String> {
    let is_needed = |module: &Module| {
        let by = |name: &String| {
            *name == module.name
                || known.iter().any(|other| other.name == *name && other.needs.contains(&module.name))
        };
        direct.iter().any(by)
    };
    known.iter().rev().filter(|module| is_needed(module)).map(|module| module.name.clone()).collect()
}

fn collect(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A link (`build`, `source`) leads out of the tree.
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else if let Some(name) = name_of(&entry.path()) {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}

/// The module that a file holds: `kernel/net/8021q/8021q.ko.xz` is `8021q`.
fn name_of(file: &Path) -> Option<String> {
    let (name, ending) = file.file_name()?.to_str()?.split_once(".ko")?;
    matches!(ending, "" | ".xz" | ".zst" | ".gz").then(|| plain(name))
}

/// `-` and `_` are the same in names of modules.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// What must be loaded first.
fn needs(info: &[u8]) -> Vec<String> {
    values(info, "depends=").flat_map(|v| v.split(',')).filter(|name| !name.is_empty()).map(plain).collect()
}

/// What should be loaded first where it is there (`softdep=pre: a b post: c`).
fn wishes(info: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for value in values(info, "softdep=") {
        let mut before = false;
        for word in value.split_ascii_whitespace() {
            match word {
                "pre:" => before = true,
                "post:" => before = false,
                name if before => found.push(plain(name)),
                _ => {}
            }
        }
    }
    found
}

fn values<'a>(info: &'a [u8], key: &'a str) -> impl Iterator<Item = &'a str> {
    let texts = info.split(|byte| *byte == 0).filter_map(|line| std::str::from_utf8(line).ok());
    texts.filter_map(move |line| line.strip_prefix(key))
}

fn read_module(file: &Path) -> Result<Vec<u8>> {
    let program = match file.extension().and_then(|ending| ending.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(file).map_err(|cause| VmError::file("read", file.display(), cause)),
    };
    let output =
        Command::new(program).args(["-d", "-c"]).arg(file).stdin(Stdio::null()).output().map_err(
            |cause| VmError::file("run", format!("{program} to unpack {}", file.display()), cause),
        )?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(VmError::file("unpack", file.display(), io::Error::other(words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &[u8] =
        b"license=GPL\0depends=mii,net-failover\0softdep=pre: crc32c post: late pre: x-y\0name=a\0";

    #[test]
    fn a_module_tells_what_it_needs() {
        assert_eq!(needs(INFO), ["mii", "net_failover"]);
        assert_eq!(needs(b"depends=\0"), Vec::<String>::new());
        assert_eq!(wishes(INFO), ["crc32c", "x_y"]);
    }

    #[test]
    fn files_have_the_names_of_modules() {
        let name = |file: &str| name_of(Path::new(file));
        assert_eq!(name("kernel/net/8021q/8021q.ko").as_deref(), Some("8021q"));
        assert_eq!(name("a/pcs-xpcs.ko.xz").as_deref(), Some("pcs_xpcs"));
        assert_eq!(name("modules.order"), None);
        assert_eq!(name("a.ko.bak"), None);
    }

    /// The least of an ELF file that has a `.modinfo`.
    fn module(info: &str) -> Vec<u8> {
        let names = b"\0.modinfo\0.shstrtab\0";
        let info = info.as_bytes();
        let (names_at, info_at) = (64, 64 + names.len());
        let headers_at = info_at + info.len();
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        file[0x28..0x30].copy_from_slice(&(headers_at as u64).to_le_bytes());
        for (at, value) in [(0x3a, 64u16), (0x3c, 3), (0x3e, 2)] {
            file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        file.extend_from_slice(names);
        file.extend_from_slice(info);
        for (name, start, length) in [(0u32, 0, 0), (1, info_at, info.len()), (10, names_at, names.len())] {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[24..32].copy_from_slice(&(start as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(length as u64).to_le_bytes());
            file.extend_from_slice(&header);
        }
        file
    }

    #[test]
    fn each_comes_behind_what_it_needs() {
        let folder = std::env::temp_dir().join(format!("lr-modules-{}", std::process::id()));
        let kernel = folder.join("kernel/net");
        fs::create_dir_all(&kernel).unwrap();
        fs::write(folder.join("modules.builtin"), "kernel/lib/crc.ko\n").unwrap();
        let files = [
            ("card", "depends=bus-a,mii\0"),
            ("bus-a", "depends=crc\0"),
            ("mii", "depends=bus-a\0"),
            ("lost", "depends=gone\0"),
        ];
        for (name, info) in files {
            fs::write(kernel.join(format!("{name}.ko")), module(info)).unwrap();
        }
        let tree = ModuleTree::read(&folder, "6.0").unwrap();
        let order = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            tree.in_order(&names).map(|all| all.into_iter().map(|module| module.name).collect::<Vec<_>>())
        };
        assert_eq!(order(&["card", "crc"]).unwrap(), ["bus_a", "mii", "card"]);
        let card = tree.in_order(&["card".to_owned()]).unwrap().pop().unwrap();
        assert_eq!(card.needs, ["mii", "bus_a"]);
        assert_eq!(order(&["lost"]).unwrap_err().to_string(), "kernel 6.0 has no module gone");
        assert!(tree.has("bus_a") && tree.has("crc") && !tree.has("gone"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
