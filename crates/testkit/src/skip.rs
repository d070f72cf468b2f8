//! Skips that cannot go unseen.
//!
//! The test harness knows no skip at run time: a test that returns early counts as passed. So a skipped test says so
//! itself, in one line `SKIPPED name: reason`, on stdout and in the file that the environment variable
//! [`SKIP_FILE_VARIABLE`] names. `cargo xtask test` sets it, lists the lines in its summary, and fails on any of them
//! where `CI=true`.

use std::{
    env,
    fmt::{self, Display},
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

/// Names the file to which each skipped test appends its line.
pub const SKIP_FILE_VARIABLE: &str = "LINERATE_TEST_SKIPS";

/// Why a test can't run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    reason: String,
}

impl Skip {
    /// A skip for a reason, as a half-sentence: `needs root`.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

/// Returns from the test, reported as skipped, unless every need is met.
///
/// Each need is a call of a function of [`skip`](crate::skip) (`root()`, `netns()`, `tool("iperf3")`, `unprivileged()`) or, after
/// `with`, any expression of type `Result<_, Skip>`.
///
/// ```no_run
/// use linerate_testkit::{Skip, need};
/// need!(root(), tool("ethtool"));
/// need!(with Err::<(), Skip>(Skip::new("needs two CPUs")));
/// ```
#[macro_export]
macro_rules! need {
    (with $need:expr) => {
        if let Err(skip) = $need {
            fn here() {}
            return $crate::skip::report(::std::any::type_name_of_val(&here), &skip);
        }
    };
    ($($name:ident($($argument:expr),*)),+ $(,)?) => {
        $( $crate::need!(with $crate::skip::$name($($argument),*)); )+
    };
}

/// Needs the superuser.
///
/// # Errors
/// The effective user is not root.
pub fn root() -> Result<(), Skip> {
    if nix::unistd::geteuid().is_root() { Ok(()) } else { Err(Skip::new("needs root")) }
}

/// Needs to make network namespaces by `ip netns`: root and iproute2.
///
/// # Errors
/// Not root, or no `ip`.
pub fn netns() -> Result<(), Skip> {
    root()?;
    tool("ip")
}

/// Needs to make TAP links: root and `/dev/net/tun`.
///
/// # Errors
/// Not root, or no such device.
pub fn tun() -> Result<(), Skip> {
    root()?;
    if Path::new("/dev/net/tun").exists() { Ok(()) } else { Err(Skip::new("needs /dev/net/tun")) }
}

/// Needs a program on the search path, or in the folders of system programs that an ordinary user's path may lack.
///
/// # Errors
/// The program is in none of them.
pub fn tool(name: &str) -> Result<(), Skip> {
    match find_tool(name) {
        Some(_) => Ok(()),
        None => Err(Skip::new(format!("needs {name} (cargo xtask setup)"))),
    }
}

/// Needs to become an ordinary user: root, and `setpriv` to change to `nobody`.
///
/// # Errors
/// Not root, or no `setpriv`.
pub fn unprivileged() -> Result<(), Skip> {
    root()?;
    tool("setpriv")
}

/// The path of a program; see [`tool`].
pub fn find_tool(name: &str) -> Option<PathBuf> {
    let search = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&search)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Reports a skip; [`need!`](crate::need!) calls it. `scope` is the path of an item inside the test function.
pub fn report(scope: &str, skip: &Skip) {
    let line = line(scope, skip);
    print!("{line}");
    if let Some(path) = env::var_os(SKIP_FILE_VARIABLE) {
        append(Path::new(&path), &line);
    }
}

fn line(scope: &str, skip: &Skip) -> String {
    let name = scope.rsplit_once("::").map_or(scope, |(test, _item)| test);
    format!("SKIPPED {name}: {skip}\n")
}

/// One `write` on a file opened for appending, so that tests in parallel don't mix their lines.
fn append(path: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(cause) = written {
        panic!("report the skip in {}: {cause}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_test_and_the_reason() {
        let line = line("e2e::faults::peer_dies::here", &Skip::new("needs root"));
        assert_eq!(line, "SKIPPED e2e::faults::peer_dies: needs root\n");
    }

    #[test]
    fn a_missing_tool_is_a_skip_that_names_it() {
        assert_eq!(tool("sh"), Ok(()));
        let skip = tool("no-such-tool").unwrap_err();
        assert_eq!(skip.to_string(), "needs no-such-tool (cargo xtask setup)");
    }

    #[test]
    fn an_unmet_need_returns_from_the_test() {
        fn test(reached_end: &mut bool) {
            need!(tool("sh"));
            need!(with Err::<(), Skip>(Skip::new("is an example")));
            *reached_end = true;
        }
        let mut reached_end = false;
        // `report` would list this example in the summary of `cargo xtask test`.
        if env::var_os(SKIP_FILE_VARIABLE).is_none() {
            test(&mut reached_end);
        }
        assert!(!reached_end);
    }

    #[test]
    fn lines_are_appended() {
        let path = env::temp_dir().join(format!("linerate-testkit-{}", std::process::id()));
        append(&path, "one\n");
        append(&path, "two\n");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }
}
