//! Energy by RAPL domain (`/sys/class/powercap`, the kernel's Documentation/power/powercap/powercap.rst).

use std::fs;
use std::path::Path;

use linerate_model::counters::EnergyReading;

use crate::error::Result;
use crate::file::{KeptFile, failed, read_trimmed};
use crate::growth::{grown_within, or_note};

/// The control type of the domains that are read. `intel-rapl-mmio` shows a package that this one has too, and counts the
/// same energy; AMD processors appear under this name as well.
const CONTROL_TYPE: &str = "intel-rapl:";

/// One domain with its counter open.
#[derive(Debug)]
struct Domain {
    name: String,
    range_microjoules: u64,
    counter: KeptFile,
}

/// All domains that may be read.
#[derive(Debug, Default)]
pub(crate) struct Energy {
    domains: Vec<Domain>,
}

/// A domain's counter at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnergySample {
    domain: String,
    range_microjoules: u64,
    microjoules: u64,
}

impl Energy {
    /// Opens the domains below `directory`. What may not be read (the counter is root's) goes into `notes`.
    pub(crate) fn open(directory: &Path, notes: &mut Vec<String>) -> Self {
        match Self::try_open(directory, notes) {
            Ok(energy) => energy,
            Err(error) => {
                notes.push(format!("energy: {error}"));
                Self::default()
            }
        }
    }

    fn try_open(directory: &Path, notes: &mut Vec<String>) -> Result<Self> {
        let mut zones = Vec::new();
        for entry in fs::read_dir(directory).map_err(|cause| failed("list", directory, cause))? {
            let entry = entry.map_err(|cause| failed("list", directory, cause))?;
            zones.extend(entry.file_name().into_string().ok().filter(|name| name.starts_with(CONTROL_TYPE)));
        }
        zones.sort();
        let mut domains = Vec::new();
        for zone in zones {
            match Domain::open(directory, &zone) {
                Ok(domain) => domains.push(domain),
                Err(error) => notes.push(format!("energy: {error}")),
            }
        }
        Ok(Self { domains })
    }

    pub(crate) fn sample(&mut self, notes: &mut Vec<String>) -> Vec<EnergySample> {
        let mut samples = Vec::with_capacity(self.domains.len());
        for domain in &mut self.domains {
            match domain.sample() {
                Ok(sample) => samples.push(sample),
                Err(error) => notes.push(format!("energy: {error}")),
            }
        }
        samples
    }
}

impl Domain {
    fn open(directory: &Path, zone: &str) -> Result<Self> {
        let folder = directory.join(zone);
        let range = folder.join("max_energy_range_uj");
        Ok(Self {
            name: name(directory, zone)?,
            range_microjoules: number(&range, &read_trimmed(&range)?)?,
            counter: KeptFile::open(folder.join("energy_uj"))?,
        })
    }

    fn sample(&mut self) -> Result<EnergySample> {
        let text = self.counter.read_text()?;
        Ok(EnergySample {
            domain: self.name.clone(),
            range_microjoules: self.range_microjoules,
            microjoules: number(Path::new(&self.name), text.trim())?,
        })
    }
}

/// The domain's name, after its parent's: `intel-rapl:1:0` may be `package-1/dram`.
fn name(directory: &Path, zone: &str) -> Result<String> {
    let own = read_trimmed(directory.join(zone).join("name"))?;
    match zone.rsplit_once(':') {
        Some((parent, _)) if parent.contains(':') => Ok(format!("{}/{own}", name(directory, parent)?)),
        _ => Ok(own),
    }
}

fn number(object: &Path, text: &str) -> Result<u64> {
    let malformed =
        |_| crate::MeterError::malformed(object.display().to_string(), format!("{text:?} is no number"));
    text.parse().map_err(malformed)
}

/// Energy used between two samples. A counter that wrapped twice can't be told from one that wrapped once: at 200 W a
/// package's does so after about 40 minutes.
pub(crate) fn difference(
    earlier: &[EnergySample],
    later: &[EnergySample],
    notes: &mut Vec<String>,
) -> Vec<EnergyReading> {
    let mut readings = Vec::new();
    for after in later {
        let Some(before) = earlier.iter().find(|before| before.domain == after.domain) else { continue };
        let growth = grown_within(after.range_microjoules, before.microjoules, after.microjoules);
        let microjoules = or_note(growth, &format!("energy of {}", after.domain), notes);
        readings.push(EnergyReading { domain: after.domain.clone(), microjoules });
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(label: &str) -> Self {
            let path = std::env::temp_dir().join(format!("linerate-energy-{label}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn zone(&self, zone: &str, files: &[(&str, &str)]) {
            fs::create_dir_all(self.0.join(zone)).unwrap();
            for (file, text) in files {
                fs::write(self.0.join(zone).join(file), format!("{text}\n")).unwrap();
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn domains_are_read_and_wrap() {
        let folder = Folder::new("wrap");
        let package = [("name", "package-0"), ("max_energy_range_uj", "1000"), ("energy_uj", "990")];
        folder.zone("intel-rapl:0", &package);
        folder
            .zone("intel-rapl:0:0", &[("name", "dram"), ("max_energy_range_uj", "1000"), ("energy_uj", "5")]);
        folder.zone("intel-rapl-mmio:0", &package);
        folder
            .zone("intel-rapl:1", &[("name", "package-1"), ("max_energy_range_uj", "x"), ("energy_uj", "5")]);
        let mut notes = Vec::new();
        let mut energy = Energy::open(&folder.0, &mut notes);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("intel-rapl:1/max_energy_range_uj"), "{notes:?}");
        let before = energy.sample(&mut notes);
        folder.zone("intel-rapl:0", &[("energy_uj", "30")]);
        folder.zone("intel-rapl:0:0", &[("energy_uj", "17")]);
        let after = energy.sample(&mut notes);
        let readings = difference(&before, &after, &mut notes);
        let expected = [("package-0", 40), ("package-0/dram", 12)]
            .map(|(domain, microjoules)| EnergyReading { domain: domain.to_owned(), microjoules });
        assert_eq!(readings, expected);
        folder.zone("intel-rapl:0", &[("energy_uj", "garbage")]);
        assert_eq!(energy.sample(&mut notes).len(), 1);
        assert!(notes.last().unwrap().contains("garbage"), "{notes:?}");
    }

    #[test]
    fn a_machine_that_does_not_tell_says_so() {
        let mut notes = Vec::new();
        let mut energy = Energy::open(Path::new("/no/powercap"), &mut notes);
        assert!(energy.sample(&mut notes).is_empty());
        assert!(notes[0].starts_with("energy: list on /no/powercap"), "{notes:?}");
    }
}
