//! What is told of cases without running any.

use std::fmt::Write as _;

use linerate_qualify::case::{Case, Run};
use linerate_qualify::catalogue::{self, CATALOGUE};
use linerate_qualify::selection::{Planned, Selection};

use crate::failure::Failure;
use crate::reach::print;

/// Every case in a line.
pub(super) fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for case in CATALOGUE {
        let offered = if matches!(case.run, Run::Offered { .. }) { "" } else { "  (not offered)" };
        let level = level(case);
        let _ = writeln!(text, "{:<10} {level:<9} {}{offered}", case.id, case.title);
    }
    print(&text)
}

/// What would run, in order.
pub(super) fn plan(planned: &[Planned], selection: &Selection) -> Result<(), Failure> {
    let mut text = String::new();
    for one in planned {
        let name = if one.variant.is_empty() {
            one.case.id.to_owned()
        } else {
            format!("{}.{}", one.case.id, one.variant)
        };
        let what = match one.skip {
            Some((_, why)) => format!("skip: {why}"),
            None => one.case.title.to_owned(),
        };
        let _ = writeln!(text, "{name:<24} {what}");
    }
    let run = planned.iter().filter(|one| one.skip.is_none()).count();
    let times = if selection.repeat > 1 { format!(", {} times", selection.repeat) } else { String::new() };
    let _ = writeln!(text, "{run} to run{times}, {} to skip", planned.len() - run);
    print(&text)
}

/// One case in full.
pub(super) fn explain(id: &str) -> Result<(), Failure> {
    let Some(case) = catalogue::find(id) else {
        return Err(Failure::usage(format!("there is no case '{id}'; `linerate qualify --list` shows them")));
    };
    let mut text = format!("{}: {}\n\n", case.id, case.title);
    let opt_in = case.opt_in.map_or_else(|| "nothing".to_owned(), |one| format!("--allow {}", one.word()));
    let (offered, variants) = match case.run {
        Run::Offered { variants, limit_s, .. } => {
            (format!("yes, at most {limit_s} s a variant on a fast machine"), variants.join(", "))
        }
        Run::NotOffered(why) => (format!("no: {why}"), String::new()),
    };
    let lines = [
        ("Does", case.does.to_owned()),
        ("Must hold", case.holds.to_owned()),
        ("Skipped", if case.skipped.is_empty() { "never".to_owned() } else { case.skipped.to_owned() }),
        ("Shown on", case.shown_on.to_owned()),
        ("Needs", case.privilege.words().to_owned()),
        ("Must be allowed", opt_in),
        ("Takes the link down", if case.disruptive { "yes" } else { "no" }.to_owned()),
        ("Level", level(case).to_owned()),
        ("Source", case.source.to_owned()),
        ("Offered", offered),
        ("Variants", variants),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "{name:<20} {}", folded(value));
    }
    print(&text)
}

fn level(case: &Case) -> &'static str {
    use linerate_model::qualification::Level;
    match case.level {
        Level::Quick => "quick",
        Level::Core => "core",
        Level::Extended => "extended",
        Level::Full => "full",
    }
}

/// Folds a text to fit behind the names.
fn folded(text: &str) -> String {
    const WIDTH: usize = 90;
    const INDENT: &str = "\n                     ";
    let mut out = String::new();
    let mut line = 0;
    for word in text.split(' ') {
        if line > 0 && line + word.len() + 1 > WIDTH {
            out.push_str(INDENT);
            line = 0;
        } else if line > 0 {
            out.push(' ');
            line += 1;
        }
        out.push_str(word);
        line += word.len();
    }
    out
}
