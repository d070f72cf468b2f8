//! Which trials share a plot in which each trial (or combination) is a line of its own.

use super::factors::{MOST_SERIES, RUN, Roles, Sample, Varied, panels, phrase};

/// Trials that share a plot.
pub(super) struct Group<'a> {
    /// What they have in common; empty where there is one group.
    pub(super) name: String,
    /// A name and its trials (repeats) for each line; the name is empty where there is one.
    pub(super) lines: Vec<(String, Vec<Sample<'a>>)>,
}

impl Group<'_> {
    /// The plot's title.
    pub(super) fn title(&self, what: &str) -> String {
        if self.name.is_empty() { what.to_owned() } else { format!("{what}: {}", self.name) }
    }
}

/// Most plots of one kind.
const MOST_GROUPS: usize = 8;

/// The trials in plots: the lines are the runs where there are several, else the levels of the axis; and what has no
/// room.
pub(super) fn groups<'a>(samples: &[Sample<'a>], roles: Option<&Roles>) -> (Vec<Group<'a>>, Option<String>) {
    let Some(roles) = roles else {
        return (vec![Group { name: String::new(), lines: vec![(String::new(), samples.to_vec())] }], None);
    };
    let all: Vec<&Varied> = std::iter::once(&roles.axis).chain(&roles.series).chain(&roles.panels).collect();
    let by_colour = all.iter().find(|f| f.name == RUN).copied().unwrap_or(&roles.axis);
    let rest: Vec<Varied> = all.into_iter().filter(|f| f.name != by_colour.name).cloned().collect();
    let mut notes = Vec::new();
    let mut shown = panels(samples, &rest);
    if shown.len() > MOST_GROUPS {
        notes.push(format!("Plots are for the first {MOST_GROUPS} of {} combinations.", shown.len()));
        shown.truncate(MOST_GROUPS);
    }
    let levels = picked(by_colour.levels.len());
    if levels.len() < by_colour.levels.len() {
        let (some, all) = (levels.len(), by_colour.levels.len());
        notes.push(format!("Lines are for {some} of the {all} levels of {}.", by_colour.name));
    }
    let groups = shown.into_iter().map(|(name, group)| {
        let line = |&place: &usize| {
            let level = &by_colour.levels[place].text;
            let here: Vec<Sample<'a>> =
                group.iter().filter(|s| by_colour.level(s) == *level).copied().collect();
            (!here.is_empty()).then(|| (phrase(&by_colour.name, level), here))
        };
        Group { lines: levels.iter().filter_map(line).collect(), name }
    });
    let groups = groups.filter(|g| !g.lines.is_empty()).collect();
    (groups, (!notes.is_empty()).then(|| notes.join(" ")))
}

/// At most [`MOST_SERIES`] places of so many, first and last among them, evenly apart.
fn picked(count: usize) -> Vec<usize> {
    if count <= MOST_SERIES {
        return (0..count).collect();
    }
    (0..MOST_SERIES).map(|n| n * (count - 1) / (MOST_SERIES - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::picked;

    #[test]
    fn picks_both_ends() {
        assert_eq!(picked(3), [0, 1, 2]);
        assert_eq!(picked(10), [0, 1, 2, 3, 5, 6, 7, 9]);
    }
}
