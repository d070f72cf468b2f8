//! Installing Debian packages without a question and without a trace but for the packages.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::{
    needs::{Component, DebianPackage},
    os_release,
    sources::{self, SourceFile},
};
use crate::step;

const SOURCE_FOLDER: &str = "/etc/apt/sources.list.d";
const SOURCE_LIST: &str = "/etc/apt/sources.list";
const LISTS: &str = "/var/lib/apt/lists";
/// The name of our source entry, without its ending.
const OUR_SOURCE: &str = "linerate-setup-non-free";

/// Installs packages.
pub(crate) fn install(packages: &[&DebianPackage]) -> Result<()> {
    let of = |component| packages.iter().copied().filter(move |package| package.component == component);
    let (free, non_free): (Vec<_>, Vec<_>) =
        (of(Component::Main).collect(), of(Component::NonFree).collect());

    remove_our_sources()?;
    answer_questions(packages)?;
    step::run("refresh Debian's package lists", apt_get().args(["update", "-q"]))?;
    if !free.is_empty() {
        apt_install(&free)?;
    }
    if !non_free.is_empty() {
        install_non_free(&non_free)?;
    }
    Ok(())
}

fn apt_install(packages: &[&DebianPackage]) -> Result<()> {
    let names: Vec<_> = packages.iter().map(|package| package.name).collect();
    let mut install = apt_get();
    install.args(["install", "-q", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold"]);
    step::run(&format!("install {}", names.join(" ")), install.args(&names))
}

/// With a source entry that is removed afterwards, as are the lists it brought.
fn install_non_free(packages: &[&DebianPackage]) -> Result<()> {
    let lists_before = files_in(LISTS)?;
    let sources = write_our_sources()?;
    let installed = refresh_only(&sources).and_then(|()| apt_install(packages));
    remove_our_sources()?;
    for list in files_in(LISTS)?.difference(&lists_before) {
        fs::remove_file(list).with_context(|| format!("remove {}", list.display()))?;
    }
    installed
}

fn refresh_only(sources: &[PathBuf]) -> Result<()> {
    for source in sources {
        let mut update = apt_get();
        update.args(["update", "-q", "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0"]);
        update.arg("-o").arg(format!("Dir::Etc::sourcelist={}", source.display()));
        step::run("read the package list of the component non-free", &mut update)?;
    }
    Ok(())
}

/// Writes, for each file with a source entry for this release's `main`, the same entry for `non-free`.
fn write_our_sources() -> Result<Vec<PathBuf>> {
    let release = os_release("VERSION_CODENAME").context("/etc/os-release names no VERSION_CODENAME")?;
    let mut written = Vec::new();
    for (number, file) in source_files()?.iter().enumerate() {
        let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let Some(format) = SourceFile::of(file) else { continue };
        let derived = sources::for_component(&text, format, &release, "non-free");
        if derived.is_empty() {
            continue;
        }
        let path = Path::new(SOURCE_FOLDER).join(format!("{OUR_SOURCE}-{number}.{}", format.ending()));
        fs::write(&path, derived).with_context(|| format!("write {}", path.display()))?;
        written.push(path);
    }
    if written.is_empty() {
        bail!("no source entry of this machine has the suite {release} with the component main");
    }
    Ok(written)
}

fn source_files() -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = files_in(SOURCE_FOLDER)?.into_iter().collect();
    if Path::new(SOURCE_LIST).exists() {
        files.push(SOURCE_LIST.into());
    }
    Ok(files)
}

/// Also removes what a set-up that was killed has left.
fn remove_our_sources() -> Result<()> {
    for file in files_in(SOURCE_FOLDER)? {
        let is_ours = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(OUR_SOURCE));
        if is_ours {
            fs::remove_file(&file).with_context(|| format!("remove {}", file.display()))?;
        }
    }
    Ok(())
}

fn answer_questions(packages: &[&DebianPackage]) -> Result<()> {
    let answers: String =
        packages.iter().flat_map(|package| package.answers).flat_map(|line| [line, "\n"]).collect();
    if answers.is_empty() {
        return Ok(());
    }
    let mut child = Command::new("debconf-set-selections")
        .stdin(Stdio::piped())
        .spawn()
        .context("start debconf-set-selections")?;
    let mut stdin = child.stdin.take().context("debconf-set-selections has no standard input")?;
    stdin.write_all(answers.as_bytes()).context("answer the packages' questions")?;
    drop(stdin);
    let status = child.wait().context("wait for debconf-set-selections")?;
    if !status.success() {
        bail!("debconf-set-selections ended with {status}");
    }
    Ok(())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    // Another apt may be at work; it gets two minutes.
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "DPkg::Lock::Timeout=120"]);
    command
}

fn files_in(folder: &str) -> Result<BTreeSet<PathBuf>> {
    let list = || -> std::io::Result<BTreeSet<PathBuf>> {
        let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        Ok(entries.iter().map(fs::DirEntry::path).filter(|path| path.is_file()).collect())
    };
    list().with_context(|| format!("list {folder}"))
}
