//! Running other programs, one named step at a time.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::repository;

/// Runs a step with its output shown, after its name and before its time.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<()> {
    println!("==> {name}");
    let started = Instant::now();
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("{name}: start {}", shown(command)))?;
    if !status.success() {
        bail!("{name}: {} ended with {status}", shown(command));
    }
    println!("    {name}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a command and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("start {}", shown(command)))?;
    if !output.status.success() {
        bail!(
            "{} ended with {}: {}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A command of this project's cargo, in the workspace's folder.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(repository::cargo());
    command.args(arguments).current_dir(repository::root());
    command
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    // Cargo tells its own program by the whole path.
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
