//! Packet steering in software: which CPUs take over received packets (RPS), and from which a queue sends (XPS).

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::part::Values;
use super::value::{joined, mask, mask_for_kernel, spread};
use crate::error::{LinkError, Result};
use crate::{links, netns, sysfs};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Steering {
    /// Receive packet steering.
    Rps,
    /// Transmit packet steering.
    Xps,
}

impl Steering {
    pub(crate) const ALL: [Self; 2] = [Self::Rps, Self::Xps];

    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Rps => "rps-cpus",
            Self::Xps => "xps-cpus",
        }
    }

    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Rps => "CPUs that take over received packets",
            Self::Xps => "CPUs that send by a queue",
        }
    }

    const fn queue_and_file(self) -> (&'static str, &'static str) {
        match self {
            Self::Rps => ("rx-", "rps_cpus"),
            Self::Xps => ("tx-", "xps_cpus"),
        }
    }

    /// The masks of all queues, by queue (`rx-0`).
    pub(crate) fn values(self, link: &str) -> Result<Values> {
        self.queues(link)?
            .into_iter()
            .map(|(queue, path)| {
                let what = || format!("{} of {queue} of {link}{}", self.key(), netns::place());
                let text =
                    fs::read_to_string(path).map_err(|cause| LinkError::file("read", what(), cause))?;
                let mask = mask(text.trim())
                    .ok_or_else(|| LinkError::unexpected(&format!("read {}", what()), text.trim()))?;
                Ok((queue.clone(), mask))
            })
            .collect()
    }

    /// The masks as one value.
    pub(crate) fn read(self, link: &str) -> Result<String> {
        let masks: Vec<_> = in_order(self.values(link)?).into_iter().map(|(_, mask)| mask).collect();
        Ok(joined(&masks))
    }

    /// Sets the masks to a checked value.
    pub(crate) fn write(self, link: &str, value: &str) -> Result<()> {
        let what = format!("{}={value} on {link}", self.key());
        let queues: Vec<_> = in_order(self.queues(link)?);
        let masks = spread(&what, value, queues.len())?;
        let mut each = queues.iter().zip(masks);
        each.try_for_each(|((queue, path), mask)| self.write_one(link, queue, path, mask))
    }

    /// Sets what differs; a queue that is gone is left to the comparison afterwards.
    pub(crate) fn put_back(self, link: &str, before: &Values, now: &Values) -> Result<()> {
        let queues = self.queues(link)?;
        for (queue, path) in queues {
            if let Some(mask) = before.get(&queue).filter(|mask| now.get(&queue) != Some(*mask)) {
                self.write_one(link, &queue, &path, mask)?;
            }
        }
        Ok(())
    }

    fn write_one(self, link: &str, queue: &str, path: &PathBuf, mask: &str) -> Result<()> {
        fs::write(path, mask_for_kernel(mask)).map_err(|cause| {
            let what = format!("{}={mask} of {queue} on {link}{}", self.key(), netns::place());
            LinkError::file("set", what, cause)
        })
    }

    fn queues(self, link: &str) -> Result<Vec<(String, PathBuf)>> {
        links::named(link)?;
        let (prefix, file) = self.queue_and_file();
        let folder = sysfs::class_folder(link).join("queues");
        let entries = fs::read_dir(&folder)
            .map_err(|cause| LinkError::file("read", folder.display().to_string(), cause))?;
        let queue = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let path = entry.path().join(file);
            (name.starts_with(prefix) && path.exists()).then_some((name, path))
        };
        let queues: Vec<_> = entries.filter_map(queue).collect();
        if queues.is_empty() {
            let cause = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(LinkError::file("read", format!("{file} of {link}'s queues"), cause));
        }
        Ok(queues)
    }
}

/// By the number behind the last `-`: `rx-2` comes before `rx-10`.
fn in_order<T>(queues: impl IntoIterator<Item = (String, T)>) -> Vec<(String, T)> {
    let number = |name: &str| name.rsplit('-').next().and_then(|number| number.parse::<u32>().ok());
    let mut queues: Vec<_> = queues.into_iter().collect();
    queues.sort_by_key(|(name, _)| number(name));
    queues
}
