//! From a machine's own source entries to the same ones for another component.
//!
//! Both formats of sources.list(5) are known: deb822 stanzas in `*.sources`, and one entry a line in `*.list`.

use std::path::Path;

/// How a source file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceFile {
    /// Stanzas of fields.
    Deb822,
    /// One entry a line.
    OneLine,
}

impl SourceFile {
    /// By the ending of a name; `None` for files that apt does not read.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "sources" => Some(Self::Deb822),
            "list" => Some(Self::OneLine),
            _ => None,
        }
    }

    /// The ending of its name.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Deb822 => "sources",
            Self::OneLine => "list",
        }
    }
}

/// The entries of `text` that serve binary packages of `main` for the suite `release`, as entries for `component` of
/// that suite alone. Empty when there are none.
pub(crate) fn for_component(text: &str, format: SourceFile, release: &str, component: &str) -> String {
    match format {
        SourceFile::Deb822 => deb822(text, release, component),
        SourceFile::OneLine => one_line(text, release, component),
    }
}

fn deb822(text: &str, release: &str, component: &str) -> String {
    let stanzas = stanzas(text);
    let derived = stanzas.iter().filter_map(|stanza| deb822_stanza(stanza, release, component));
    derived.collect::<Vec<_>>().join("\n")
}

/// The lines of each stanza, comments left out.
fn stanzas(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.split(|line| line.trim().is_empty()).filter(|lines| !lines.is_empty()).map(<[_]>::to_vec).collect()
}

fn deb822_stanza(lines: &[&str], release: &str, component: &str) -> Option<String> {
    let fields = fields(lines);
    let has = |name: &str, word: &str| {
        let field = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        field.is_some_and(|(_, value)| value.split_whitespace().any(|one| one == word))
    };
    let serves = has("Types", "deb") && has("Suites", release) && has("Components", "main");
    if !serves || has("Enabled", "no") {
        return None;
    }
    let derived = fields.iter().map(|(key, value)| match key.to_ascii_lowercase().as_str() {
        "types" => format!("{key}: deb\n"),
        "suites" => format!("{key}: {release}\n"),
        "components" => format!("{key}: {component}\n"),
        _ => format!("{key}:{value}\n"),
    });
    Some(derived.collect())
}

/// Names and values; a value keeps the lines that continue it (an embedded key in `Signed-By` has many).
fn fields(lines: &[&str]) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        let continues = line.starts_with([' ', '\t']);
        match (fields.last_mut(), line.split_once(':')) {
            (Some((_, value)), _) if continues => {
                value.push('\n');
                value.push_str(line);
            }
            (_, Some((key, value))) if !continues => fields.push((key.to_owned(), value.to_owned())),
            _ => {}
        }
    }
    fields
}

fn one_line(text: &str, release: &str, component: &str) -> String {
    text.lines().filter_map(|line| one_line_entry(line, release, component)).collect()
}

/// `deb [OPTIONS] URI SUITE COMPONENT...`
fn one_line_entry(line: &str, release: &str, component: &str) -> Option<String> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb")?.strip_prefix([' ', '\t'])?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(bracketed) => {
            let (options, rest) = bracketed.split_once(']')?;
            (format!("[{}] ", options.trim()), rest)
        }
        None => (String::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    let serves = suite == release && words.any(|word| word == "main");
    serves.then(|| format!("deb {options}{uri} {release} {component}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stanza_keeps_all_but_suite_and_component() {
        let text = "\
# of the installer
Types: deb deb-src
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb
URIs: http://archive.example/debian-security
Suites: bookworm-security
Components: main
";
        let derived = for_component(text, SourceFile::Deb822, "bookworm", "non-free");
        let expected = "\
Types: deb
URIs: http://archive.example/debian
Suites: bookworm
Components: non-free
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
";
        assert_eq!(derived, expected);
    }

    #[test]
    fn a_stanza_of_another_archive_or_switched_off_is_left_out() {
        let other = "Types: deb\nURIs: http://other.example/\nSuites: nodistro\nComponents: main\n";
        assert_eq!(for_component(other, SourceFile::Deb822, "bookworm", "non-free"), "");
        let off = "Enabled: no\nTypes: deb\nURIs: http://a.example/\nSuites: bookworm\nComponents: main\n";
        assert_eq!(for_component(off, SourceFile::Deb822, "bookworm", "non-free"), "");
        let source_only = "Types: deb-src\nURIs: http://a.example/\nSuites: bookworm\nComponents: main\n";
        assert_eq!(for_component(source_only, SourceFile::Deb822, "bookworm", "non-free"), "");
    }

    #[test]
    fn a_line_keeps_its_options() {
        let text = "\
# deb http://archive.example/debian bookworm main
deb [ signed-by=/usr/share/keyrings/a.gpg arch=amd64 ] http://archive.example/debian bookworm main contrib # note
deb-src http://archive.example/debian bookworm main
deb http://archive.example/debian bookworm-updates main
deb\thttp://mirror.example/debian bookworm main
";
        let derived = for_component(text, SourceFile::OneLine, "bookworm", "non-free");
        let expected = "\
deb [signed-by=/usr/share/keyrings/a.gpg arch=amd64] http://archive.example/debian bookworm non-free
deb http://mirror.example/debian bookworm non-free
";
        assert_eq!(derived, expected);
    }

    #[test]
    fn only_files_that_apt_reads_have_a_format() {
        assert_eq!(SourceFile::of(Path::new("/a/debian.sources")), Some(SourceFile::Deb822));
        assert_eq!(SourceFile::of(Path::new("/a/sources.list")), Some(SourceFile::OneLine));
        assert_eq!(SourceFile::of(Path::new("/a/x.list.disabled")), None);
    }
}
