//! Colours by name: plots are painted in stand-in colours, which become CSS variables, so that one drawing suits light
//! and dark.

use plotters::style::RGBColor;

/// What a stroke or text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Text and axes.
    Text,
    /// Lines to guide the eye.
    Grid,
    /// A series by its place, from 0; after the last colour the first comes again.
    Series(usize),
}

/// How many series have a colour of their own.
pub(crate) const SERIES_COLOURS: usize = 8;

/// Variable and colour on white, for drawings outside a page. The series' colours can be told apart by people with
/// any common colour blindness (Okabe and Ito's palette, darkened for contrast on white).
const COLOURS: [(&str, &str, &str); 10] = [
    ("--ink", "#1c2126", "#e6e9ec"),
    ("--grid", "#d5dade", "#3a4148"),
    ("--s0", "#0067a3", "#56b4e9"),
    ("--s1", "#b84a00", "#f0883e"),
    ("--s2", "#00795a", "#2fc79b"),
    ("--s3", "#a8447f", "#e08bbd"),
    ("--s4", "#7a6200", "#e3c94a"),
    ("--s5", "#5b4bb3", "#a99bf2"),
    ("--s6", "#5e6870", "#aab4bc"),
    ("--s7", "#a01c1c", "#ff8a80"),
];

impl Ink {
    fn index(self) -> usize {
        match self {
            Self::Text => 0,
            Self::Grid => 1,
            Self::Series(place) => 2 + place % SERIES_COLOURS,
        }
    }

    /// The colour that stands for it in a drawing.
    pub(crate) fn stand_in(self) -> RGBColor {
        #[expect(clippy::cast_possible_truncation, reason = "an index into ten colours")]
        RGBColor(0xF0, 0x0D, self.index() as u8)
    }
}

/// A drawing with variables in place of the stand-ins.
pub(crate) fn with_variables(svg: &str) -> String {
    COLOURS.iter().enumerate().fold(svg.to_owned(), |svg, (index, (name, light, _))| {
        // With the quotes of an attribute: no text can hold those unescaped.
        svg.replace(&format!("\"#F00D{index:02X}\""), &format!("\"var({name}, {light})\""))
    })
}

/// The variables for light and dark, as a style sheet.
pub(crate) fn variables() -> String {
    let all = |pick: fn(&(&str, &'static str, &'static str)) -> &'static str| {
        COLOURS.iter().map(|c| format!("{}: {};", c.0, pick(c))).collect::<Vec<_>>().join(" ")
    };
    format!(
        ":root {{ color-scheme: light dark; {} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n",
        all(|c| c.1),
        all(|c| c.2),
    )
}
