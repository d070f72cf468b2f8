//! `cargo xtask docs-check`: what is written about the code holds together.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::{repository, step};

/// A longer file does more than one thing.
const LONGEST_FILE_LINES: usize = 600;

/// Rustdoc without a warning, links that lead somewhere, files of a bearable length.
pub(crate) fn run() -> Result<()> {
    let mut rustdoc = step::cargo(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    step::run("rustdoc", rustdoc.env("RUSTDOCFLAGS", "-D warnings"))?;
    let files = files_under(repository::root())?;
    let complaints: Vec<_> = files.iter().map(|path| complaints(path)).collect::<Result<Vec<_>>>()?.concat();
    if !complaints.is_empty() {
        bail!("documents:\n  {}", complaints.join("\n  "));
    }
    Ok(())
}

fn complaints(path: &Path) -> Result<Vec<String>> {
    let is = |ending| path.extension().is_some_and(|extension| extension == ending);
    if !is("md") && !is("rs") {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let shown = path.strip_prefix(repository::root()).unwrap_or(path).display();
    if is("rs") {
        let lines = text.lines().count();
        let is_long = lines > LONGEST_FILE_LINES;
        return Ok(is_long
            .then(|| format!("{shown}: {lines} lines, at most {LONGEST_FILE_LINES}"))
            .into_iter()
            .collect());
    }
    let folder = path.parent().unwrap_or(path);
    let broken = links(&text).into_iter().filter(|link| !folder.join(link).exists());
    Ok(broken.map(|link| format!("{shown}: no file for the link {link}")).collect())
}

/// The targets in the repository of a document's links, without the part after `#`.
fn links(markdown: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
        links.extend(targets.filter(|target| !target.is_empty() && !target.contains(':')));
    }
    links
}

fn files_under(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry.with_context(|| format!("list {}", folder.display()))?;
        let path = entry.path();
        let name = entry.file_name();
        // Whatever cargo built, and hidden folders.
        if path.join("CACHEDIR.TAG").exists() || name == "target" || name.to_string_lossy().starts_with('.') {
            continue;
        }
        match entry.file_type().with_context(|| format!("look at {}", path.display()))? {
            kind if kind.is_dir() => files.extend(files_under(&path)?),
            kind if kind.is_file() => files.push(path),
            _ => {}
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_into_the_repository_are_found() {
        let text = "See [a](docs/a.md#part) and [b](https://example.org), [c](#here), [d](../d.md \"title\").\n```\n[x](no)\n```\n";
        assert_eq!(links(text), ["docs/a.md", "../d.md"]);
    }
}
