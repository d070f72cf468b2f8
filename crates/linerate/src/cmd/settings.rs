//! `linerate settings`: what can be set on a node, what it is now, and what it takes.

use std::collections::BTreeMap;

use clap::Args;
use linerate_link::settings::{Allowed, SettingInfo};
use linerate_model::NodeUrl;
use linerate_model::exit::ExitCode;

use crate::failure::Failure;
use crate::layout::{columns, wrapped};
use crate::reach::{ReachArgs, only_link, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Whose settings.
    #[arg(default_value = "local")]
    node: NodeUrl,
    /// Of which link; where there is but one, that one.
    #[arg(long, value_name = "IF")]
    link: Option<String>,
    /// Print them as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

pub(crate) fn run(args: SettingsArgs) -> Result<ExitCode, Failure> {
    let mut node = args.reach.connect(&args.node)?;
    let link = args.link.map_or_else(|| only_link(&mut node), Ok)?;
    let settings = node.settings(&link)?;
    if args.json {
        print_json(&settings)?;
    } else {
        print(&text(&args.node, &link, &settings))?;
    }
    Ok(ExitCode::Good)
}

fn text(node: &NodeUrl, link: &str, settings: &[SettingInfo]) -> String {
    let mut text = format!("Settings of {link} on {node}\n\n");
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let mut rows = vec![row(["KEY", "NOW", "TAKES"])];
    let mut fixed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for info in settings {
        match (&info.value, &info.unavailable) {
            (Some(value), _) if info.changeable => {
                let what = format!("{}; {}", takes(&info.allowed), info.description);
                rows.push(row([&info.key, value, &what]));
            }
            (Some(value), _) => fixed.entry(value.clone()).or_default().push(&info.key),
            (None, why) => missing.entry(why.as_deref().unwrap_or("not told")).or_default().push(&info.key),
        }
    }
    text.push_str(&columns(&rows));
    for (value, keys) in fixed {
        text.push('\n');
        text.push_str(&wrapped("", &format!("Fixed, {value}: {}", keys.join(", "))));
    }
    for (why, keys) in missing {
        text.push('\n');
        text.push_str(&wrapped("", &format!("Not here ({why}): {}", keys.join(", "))));
    }
    text.push('\n');
    text.push_str(&wrapped(
        "",
        "sysctl:NAME is any other parameter of the kernel, as in sysctl:net.ipv4.tcp_fin_timeout.",
    ));
    text
}

/// Short enough for a column; `--json` has it all.
fn takes(allowed: &Allowed) -> String {
    match allowed {
        Allowed::Number { min, max } if *max < u64::from(u32::MAX) => format!("{min}-{max}"),
        Allowed::Number { min, .. } => format!("{min}-"),
        Allowed::Choice { known, .. } => match known.as_slice() {
            [first, .., last] if known.len() > 2 => format!("{first}...{last}"),
            known => known.join(", "),
        },
        Allowed::Switch => "on, off".to_owned(),
        Allowed::CpuMask => "CPU mask".to_owned(),
        Allowed::CpuList => "CPU list".to_owned(),
        Allowed::MacAddress => "MAC address".to_owned(),
        Allowed::Text => "text".to_owned(),
    }
}
