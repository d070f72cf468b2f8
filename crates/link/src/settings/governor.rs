//! How the kernel chooses the CPUs' clock rate (`scaling_governor`, Documentation/admin-guide/pm/cpufreq.rst).

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::part::Values;
use super::value::joined;
use crate::error::{LinkError, Result};

const ROOT: &str = "/sys/devices/system/cpu/cpufreq";

/// The governors of this machine's CPUs, by policy (`policy0`).
pub(crate) fn values() -> Result<Values> {
    values_in(Path::new(ROOT))
}

/// The governors as one value.
pub(crate) fn read() -> Result<String> {
    Ok(joined(&values()?.into_values().collect::<Vec<_>>()))
}

/// The governors that can be had, on every CPU.
pub(crate) fn available() -> Result<Vec<String>> {
    available_in(Path::new(ROOT))
}

/// Sets all CPUs to one governor.
pub(crate) fn write(value: &str) -> Result<()> {
    write_in(Path::new(ROOT), value)
}

/// Sets what differs.
pub(crate) fn put_back(before: &Values, now: &Values) -> Result<()> {
    put_back_in(Path::new(ROOT), before, now)
}

fn values_in(root: &Path) -> Result<Values> {
    let policies = policies(root)?;
    let value = |(name, folder): (String, PathBuf)| Ok((name, file(&folder.join("scaling_governor"))?));
    policies.into_iter().map(value).collect()
}

fn available_in(root: &Path) -> Result<Vec<String>> {
    let mut all: Option<Vec<String>> = None;
    for (_, folder) in policies(root)? {
        let text = file(&folder.join("scaling_available_governors"))?;
        let here: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        all = Some(match all {
            Some(all) => all.into_iter().filter(|governor| here.contains(governor)).collect(),
            None => here,
        });
    }
    Ok(all.unwrap_or_default())
}

fn write_in(root: &Path, value: &str) -> Result<()> {
    policies(root)?.into_iter().try_for_each(|(_, folder)| write_one(&folder, value))
}

fn put_back_in(root: &Path, before: &Values, now: &Values) -> Result<()> {
    for (name, folder) in policies(root)? {
        if let Some(governor) = before.get(&name).filter(|governor| now.get(&name) != Some(*governor)) {
            write_one(&folder, governor)?;
        }
    }
    Ok(())
}

fn write_one(folder: &Path, governor: &str) -> Result<()> {
    let path = folder.join("scaling_governor");
    let what = || format!("{} to {governor}", path.display());
    fs::write(&path, governor).map_err(|cause| LinkError::file("set", what(), cause))
}

fn policies(root: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |cause| LinkError::file("read", root.display().to_string(), cause);
    let mut policies = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("policy") {
            policies.push((name, entry.path()));
        }
    }
    if policies.is_empty() {
        return Err(failed(ErrorKind::NotFound.into()));
    }
    Ok(policies)
}

fn file(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path)
        .map_err(|cause| LinkError::file("read", path.display().to_string(), cause))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn governors_are_set_on_all_cpus_and_put_back_on_each() {
        let root = std::env::temp_dir().join(format!("linerate-governor-{}", std::process::id()));
        for (policy, governor) in [("policy0", "powersave"), ("policy4", "schedutil")] {
            let folder = root.join(policy);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("scaling_governor"), format!("{governor}\n")).unwrap();
            fs::write(folder.join("scaling_available_governors"), format!("performance {governor} \n"))
                .unwrap();
        }
        let before = values_in(&root).unwrap();
        assert_eq!(before["policy4"], "schedutil");
        assert_eq!(available_in(&root).unwrap(), ["performance"]);
        write_in(&root, "performance").unwrap();
        let now = values_in(&root).unwrap();
        assert!(now.values().all(|governor| governor == "performance"));
        put_back_in(&root, &before, &now).unwrap();
        assert_eq!(values_in(&root).unwrap(), before);
        fs::remove_dir_all(&root).unwrap();
        assert!(values_in(&root).is_err());
    }
}
