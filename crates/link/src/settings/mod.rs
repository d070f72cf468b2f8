//! Settings: named keys that can be listed, read, checked and written, each in the calling thread's namespace.
//!
//! | key | what |
//! |---|---|
//! | `tso` `gso` `gro` `lro` `tx` `rx` `sg` `rxvlan` `txvlan` `rxhash` `ntuple` | features as ethtool(8) groups them |
//! | `tx-udp-segmentation` ... | any feature by its kernel name |
//! | `up` `mac` `promiscuous` `all-multicast` `mtu` `txqueuelen` | of the link |
//! | `ring-rx` `channels-combined` `pause-autoneg` ... | rings, queues, flow control |
//! | `rx-usecs` `adaptive-rx` ... | interrupt moderation |
//! | `rx-copybreak` `tx-copybreak` | tunables of the driver |
//! | `flag:NAME` | private flags of the driver |
//! | `napi-threaded` `napi-defer-hard-irqs` `gro-flush-timeout` | NAPI |
//! | `rps-cpus` `xps-cpus` `irq-affinity` `governor` | which CPU does what, and how fast |
//! | `qdisc` | kind of the root queueing discipline |
//! | `busy-poll` `tcp-rmem` ... | parameters of the kernel |
//! | `sysctl:NAME` | any other of them |
//!
//! To change settings and have them put back, use [`crate::changes::Changes`].

pub(crate) mod attributes;
mod features;
mod flags;
mod governor;
mod ipv4;
mod ipv6;
mod irq;
pub(crate) mod key;
pub(crate) mod made;
mod parameters;
pub(crate) mod part;
mod qdisc;
mod steering;
mod sysctls;
mod tunables;
pub(crate) mod value;

use linerate_sys::ethtool_memory::Tunable;
use serde::{Deserialize, Serialize};

pub use self::value::Allowed;

use self::attributes::Attribute;
use self::key::{FLAG_PREFIX, Key};
use self::steering::Steering;
use self::value::on_off;
use crate::error::{LinkError, Result};
use crate::ethtool::Group;
use crate::{links, netns};

/// A setting with its present value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingInfo {
    /// Its name.
    pub key: String,
    /// What it is now; `None` where it can't be read here.
    pub value: Option<String>,
    /// Why it can't be read, in the kernel's words.
    pub unavailable: Option<String>,
    /// Whether it can be changed at all. Where it can, the kernel may still refuse a value.
    pub changeable: bool,
    /// What it takes.
    pub allowed: Allowed,
    /// What it is.
    pub description: String,
}

/// All settings of a link and of the machine it is in; `sysctl:NAME` stands for itself and is not among them.
///
/// # Errors
/// [`LinkError::NoSuchLink`]. What can't be read is listed as unavailable.
pub fn list(link: &str) -> Result<Vec<SettingInfo>> {
    links::named(link)?;
    let mut keys: Vec<_> = features::SHORT_NAMES.iter().map(Key::ShortFeature).collect();
    keys.extend(Attribute::ALL.map(Key::Attribute));
    for group in Group::ALL {
        keys.extend(group.parameters().map(|name| Key::Parameter(group, name)));
    }
    keys.extend(tunables::ALL.map(|(_, tunable)| Key::Tunable(tunable)));
    keys.extend(Steering::ALL.map(Key::Steering));
    keys.extend([Key::IrqAffinity, Key::Governor, Key::Qdisc]);
    let sysctl = |short: &sysctls::Short| Key::Sysctl(short.sysctl.replace('.', "/"));
    keys.extend(sysctls::SHORT_NAMES.iter().map(sysctl));
    // A driver without flags has none to list.
    keys.extend(flags::values(link).unwrap_or_default().into_keys().map(Key::Flag));
    keys.extend(features::all(link).unwrap_or_default().into_keys().map(Key::Feature));
    Ok(keys.iter().map(|key| info(link, key)).collect())
}

/// One setting; unlike in [`list`], one that can't be read is an error.
///
/// # Errors
/// No such link or setting, or the kernel's refusal.
pub fn find(link: &str, key: &str) -> Result<SettingInfo> {
    present(link, &Key::parse(key)?)
}

/// The present value of a setting.
///
/// # Errors
/// As [`find`].
pub fn read(link: &str, key: &str) -> Result<String> {
    Ok(find(link, key)?.value.unwrap_or_default())
}

/// Checks a value against what the setting takes; returns it as it would be written.
///
/// # Errors
/// As [`find`]; [`LinkError::Invalid`] that says what is allowed.
pub fn check(link: &str, key: &str, value: &str) -> Result<String> {
    let info = find(link, key)?;
    let what = format!("{key}={value} on {link}{}", netns::place());
    let wanted = info.allowed.check(&what, value)?;
    if info.changeable || info.value.as_ref() == Some(&wanted) {
        return Ok(wanted);
    }
    let now = info.value.unwrap_or_default();
    Err(LinkError::Invalid { what, why: format!("it is {now} and can't be changed on this link") })
}

/// Sets a setting and reads it back. Nothing puts it back afterwards: that is what [`crate::changes::Changes`] is for.
///
/// # Errors
/// As [`check`]; the kernel's refusal; or that the driver made something else of the value.
pub fn write(link: &str, key: &str, value: &str) -> Result<()> {
    let wanted = check(link, key, value)?;
    write_checked(link, &Key::parse(key)?, &wanted)
}

/// Writes a value that [`check`] returned, unless it is there already.
pub(crate) fn write_checked(link: &str, key: &Key, wanted: &str) -> Result<()> {
    // A short name reads as on when only some of its features are.
    let in_part = matches!(key, Key::ShortFeature(_));
    if !in_part && present(link, key)?.value.as_deref() == Some(wanted) {
        return Ok(());
    }
    match key {
        Key::ShortFeature(short) => features::switch_short(link, short, wanted == "on")?,
        Key::Feature(name) => features::switch(link, |other| other == name, wanted == "on")?,
        Key::Parameter(group, name) => parameters::write(link, *group, name, wanted)?,
        Key::Flag(flag) => flags::write(link, flag, wanted == "on")?,
        Key::Tunable(tunable) => tunables::write(link, *tunable, wanted)?,
        Key::Attribute(attribute) => attribute.write(link, wanted)?,
        Key::Steering(steering) => steering.write(link, wanted)?,
        Key::IrqAffinity => irq::write(link, wanted)?,
        Key::Governor => governor::write(wanted)?,
        Key::Qdisc => qdisc::write(link, wanted)?,
        Key::Sysctl(path) => crate::sysctl::write(path, wanted)?,
    }
    let now = present(link, key)?.value.unwrap_or_default();
    let left_to_kernel = *key == Key::Qdisc && wanted == qdisc::DEFAULT;
    if now == wanted || left_to_kernel {
        return Ok(());
    }
    let what = format!("{}={wanted} on {link}{}", key.name(), netns::place());
    Err(LinkError::NotTaken { what, now })
}

/// The settings of NAPI with their present values; those that can't be read are left out.
pub(crate) fn napi(link: &str) -> std::collections::BTreeMap<String, String> {
    let all = [Attribute::NapiThreaded, Attribute::NapiDeferHardIrqs, Attribute::GroFlushTimeout];
    let value = |attribute: Attribute| Some((attribute.key().to_owned(), attribute.read(link).ok()?.0));
    all.into_iter().filter_map(value).collect()
}

fn info(link: &str, key: &Key) -> SettingInfo {
    present(link, key).unwrap_or_else(|error| SettingInfo {
        key: key.name(),
        value: None,
        unavailable: Some(error.cause_text()),
        changeable: false,
        allowed: allowed_in_general(key),
        description: description(key),
    })
}

fn present(link: &str, key: &Key) -> Result<SettingInfo> {
    let (value, allowed, changeable) = match key {
        Key::ShortFeature(short) => {
            let all = features::all(link)?;
            let state = features::short_state(short, &all).ok_or_else(|| unknown(key))?;
            (on_off(state.active).to_owned(), Allowed::Switch, state.changeable)
        }
        Key::Feature(name) => {
            let state = features::all(link)?.remove(name).ok_or_else(|| unknown(key))?;
            (on_off(state.active).to_owned(), Allowed::Switch, state.changeable)
        }
        Key::Parameter(group, name) => {
            let parameter = parameters::read(link, *group, name)?;
            let parameter = parameter.ok_or_else(|| LinkError::Invalid {
                what: format!("{} on {link}{}", key.name(), netns::place()),
                why: "the driver does not have it".to_owned(),
            })?;
            let allowed = parameters::allowed(*group, name, parameter.maximum);
            (parameters::text(*group, name, parameter.value), allowed, true)
        }
        Key::Flag(flag) => (flags::read(link, flag)?, Allowed::Switch, true),
        Key::Tunable(tunable) => (tunables::read(link, *tunable)?.to_string(), allowed_in_general(key), true),
        Key::Attribute(attribute) => {
            let (value, allowed) = attribute.read(link)?;
            (value, allowed, true)
        }
        Key::Steering(steering) => (steering.read(link)?, Allowed::CpuMask, true),
        Key::IrqAffinity => (irq::read(link)?, Allowed::CpuList, true),
        Key::Governor => {
            let known = governor::available()?;
            (governor::read()?, Allowed::Choice { known, others: false }, true)
        }
        Key::Qdisc => (qdisc::read(link)?, allowed_in_general(key), true),
        Key::Sysctl(path) => {
            let value = crate::sysctl::read(path)?;
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            (value, sysctls::allowed(&path.replace('/', ".")), true)
        }
    };
    let description = description(key);
    Ok(SettingInfo {
        key: key.name(),
        value: Some(value),
        unavailable: None,
        changeable,
        allowed,
        description,
    })
}

fn unknown(key: &Key) -> LinkError {
    LinkError::Invalid {
        what: format!("setting {}", key.name()),
        why: "the kernel has no feature of this name, and no other setting has it: see `linerate settings`"
            .to_owned(),
    }
}

/// What a setting takes where nothing more is known.
fn allowed_in_general(key: &Key) -> Allowed {
    match key {
        Key::ShortFeature(_) | Key::Feature(_) | Key::Flag(_) => Allowed::Switch,
        Key::Attribute(
            Attribute::NapiThreaded | Attribute::Up | Attribute::Promiscuous | Attribute::AllMulticast,
        ) => Allowed::Switch,
        Key::Attribute(Attribute::Mac) => Allowed::MacAddress,
        Key::Parameter(group, name) => parameters::allowed(*group, name, None),
        Key::Tunable(_) | Key::Attribute(_) => Allowed::Number { min: 0, max: u32::MAX.into() },
        Key::Steering(_) => Allowed::CpuMask,
        Key::IrqAffinity => Allowed::CpuList,
        Key::Governor | Key::Sysctl(_) => Allowed::Text,
        Key::Qdisc => Allowed::Choice { known: qdisc::known(), others: true },
    }
}

fn description(key: &Key) -> String {
    match key {
        Key::ShortFeature(short) => short.description,
        Key::Feature(_) => "feature",
        Key::Parameter(group, _) => parameters::description(*group),
        Key::Flag(_) => return format!("private flag of the driver ({FLAG_PREFIX}NAME)"),
        Key::Tunable(Tunable::RxCopybreak) => "received packets up to this size are copied, bytes",
        Key::Tunable(Tunable::TxCopybreak) => "sent packets up to this size are copied, bytes",
        Key::Attribute(attribute) => attribute.description(),
        Key::Steering(steering) => steering.description(),
        Key::IrqAffinity => "CPUs that take the link's interrupts",
        Key::Governor => "how the CPUs choose their clock rate",
        Key::Qdisc => "root queueing discipline",
        Key::Sysctl(path) => {
            let dotted = path.replace('/', ".");
            let short = sysctls::SHORT_NAMES.iter().find(|short| short.sysctl == dotted);
            short.map_or("parameter of the kernel", |short| short.description)
        }
    }
    .to_owned()
}
