//! The program under test: its command lines, its records, and what it leaves on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use linerate_model::Record;

use crate::child::{Finished, run_within};

/// Longest that a command of a test may take, unless the test says otherwise.
const LIMIT: Duration = Duration::from_secs(60);
/// Nothing can be made there: runs of tests are not kept.
pub(crate) const NO_FOLDER: &str = "/proc/no-history";
/// `nobody` on Debian: an ordinary user that owns nothing.
pub const ORDINARY_USER: u32 = 65534;

/// The `linerate` that the tests were built with.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// The program at a path, as `env!("CARGO_BIN_EXE_linerate")` gives it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command of it, which leaves the history of whoever runs the tests alone.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments).env("XDG_DATA_HOME", NO_FOLDER);
        command
    }

    /// Runs it to its end, a minute at most.
    ///
    /// # Panics
    /// When it takes longer.
    pub fn run(&self, arguments: &[&str]) -> Finished {
        run_within(self.command(arguments), LIMIT)
    }

    /// Runs `linerate run --json` with more arguments and returns the records.
    ///
    /// # Panics
    /// When it does not exit with 0 within a minute, or prints no records.
    pub fn measure(&self, arguments: &[&str]) -> Vec<Record> {
        let finished = self.run(&[&["run", "--json", "--quiet"], arguments].concat()).expect_code(0);
        records(&finished.stdout)
    }

    /// As [`measure`](Self::measure), for what makes exactly one record.
    ///
    /// # Panics
    /// As it, and when there are more.
    pub fn measure_one(&self, arguments: &[&str]) -> Record {
        let mut records = self.measure(arguments);
        assert_eq!(records.len(), 1, "one record from {arguments:?}");
        records.remove(0)
    }

    /// A copy that every user may run, in a folder that every user may enter; removed when dropped.
    ///
    /// # Panics
    /// When it can't be copied.
    pub fn for_everybody(&self) -> PublicProgram {
        PublicProgram::new(&self.path)
    }
}

/// Records as `--json` prints them.
///
/// # Panics
/// When the text is something else.
pub fn records(json: &str) -> Vec<Record> {
    match serde_json::from_str(json) {
        Ok(records) => records,
        Err(cause) => panic!("no records ({cause}) in: {json}"),
    }
}

/// A copy of the program that an ordinary user may run.
#[derive(Debug)]
pub struct PublicProgram {
    folder: PathBuf,
}

impl PublicProgram {
    fn new(program: &Path) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lr-public-{}-{number}", std::process::id()));
        let copy = || {
            fs::create_dir(&folder)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
            fs::copy(program, folder.join("linerate"))?;
            fs::set_permissions(folder.join("linerate"), fs::Permissions::from_mode(0o755))
        };
        if let Err(cause) = copy() {
            panic!("copy {} to {}: {cause}", program.display(), folder.display());
        }
        Self { folder }
    }

    /// The copy.
    pub fn program(&self) -> Program {
        Program::new(self.folder.join("linerate"))
    }

    /// A command of it, run by an ordinary user without any capability.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = as_ordinary_user(&self.folder.join("linerate"));
        command.args(arguments);
        command
    }
}

impl Drop for PublicProgram {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A command that runs a program as an ordinary user without any capability, with a home that it can't write to.
pub fn as_ordinary_user(program: &Path) -> Command {
    let user = ORDINARY_USER.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--no-new-privs", "--"]).arg(program);
    command.current_dir("/").env("XDG_DATA_HOME", NO_FOLDER);
    command
}
