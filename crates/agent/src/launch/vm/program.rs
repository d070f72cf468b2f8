//! linerate as a guest runs it: this program, and where it is not static, the libraries that it loads.
//!
//! A static build would do without the latter, and is taken as it is; but `cargo build` makes a dynamic one, and a fresh
//! clone has nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::archive::Archive;
use super::elf;
use super::error::{Result, VmError};
use crate::guest;

/// Adds the program and what it loads.
///
/// # Errors
/// A file can't be read, the program is not for x86-64, or a library is missing.
pub(super) fn add(program: &Path, archive: &mut Archive) -> Result<()> {
    let file = read(program)?;
    let loaded = elf::loaded_part(&file).ok_or_else(|| {
        VmError::Guest(format!("{} is not a program that a guest can run", program.display()))
    })?;
    archive.file(guest::PROGRAM, &loaded);
    let Some(loader) = elf::loader(&file) else { return Ok(()) };
    for (path, host_path) in libraries(loader, program)? {
        archive.file(&path, &read(&host_path)?);
    }
    archive.file(loader, &read(Path::new(loader))?);
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|cause| VmError::file("read", path.display(), cause))
}

/// Asks the dynamic loader what it would load (ld.so(8), `--list`): the path of each in the guest, and here.
fn libraries(loader: &str, program: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let output = Command::new(loader)
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| VmError::file("run", loader, cause))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(VmError::Guest(format!("list the libraries of {}: {words}", program.display())));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Lines are `NAME => PATH (ADDRESS)`; those without a path are the loader itself and the kernel's own.
fn parse(list: &str) -> BTreeMap<String, PathBuf> {
    let paths = list.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" => ")?;
        let (path, _) = rest.rsplit_once(" (")?;
        path.starts_with('/').then(|| (path.to_owned(), PathBuf::from(path)))
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let list = "\tlinux-vdso.so.1 (0x7ffd)\n\tlibgcc_s.so.1 => /lib/x/libgcc_s.so.1 (0x7f0a)\n\
                    \tlibc.so.6 => /lib/x/libc.so.6 (0x7f0b)\n\t/lib64/ld-linux-x86-64.so.2 (0x7f0c)\n";
        let expected = ["/lib/x/libc.so.6", "/lib/x/libgcc_s.so.1"];
        assert_eq!(parse(list).keys().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn this_program_can_be_packed() {
        let mut archive = Archive::default();
        add(&std::env::current_exe().unwrap(), &mut archive).unwrap();
        assert!(archive.finish().len() > 100_000);
        let script = std::env::temp_dir().join(format!("lr-script-{}", std::process::id()));
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(add(&script, &mut Archive::default()).is_err());
        fs::remove_file(&script).unwrap();
    }
}
