//! Reads profiles: real XML, of which valid uperf input is a subset.

mod flowop;
mod number;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::uperf::workorder::{Flowop, Group, Kind, Profile, Transaction};

use self::flowop::Environment;
pub(crate) use self::number::{integer, nanoseconds};

/// Caps, so that a profile can't ask for more than can be meant. uperf has 1024 groups and 100 transactions.
const MOST_GROUPS: usize = 1024;
const MOST_TRANSACTIONS: usize = 1000;
const MOST_FLOWOPS: usize = 1000;
const LONGEST_NAME: usize = 127;

/// What is wrong with a profile, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ProfileError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads a profile; `environment` looks up the variables that it names.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn read(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Profile, ProfileError> {
    let parsed =
        Parser { text, environment, profile: Profile::default(), open: Vec::new(), found: false }.run();
    parsed.map_err(|(offset, message)| {
        let (line, column) = place(text, offset);
        ProfileError { line, column, message }
    })
}

fn place(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Byte offset in the text, and what is wrong there.
type Fault = (usize, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Profile,
    Group,
    Transaction,
    Flowop,
}

impl Element {
    fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "profile" => Some(Self::Profile),
            "group" => Some(Self::Group),
            "transaction" => Some(Self::Transaction),
            "flowop" => Some(Self::Flowop),
            _ => None,
        }
    }

    /// What it must stand in.
    fn parent(self) -> Option<Self> {
        match self {
            Self::Profile => None,
            Self::Group => Some(Self::Profile),
            Self::Transaction => Some(Self::Group),
            Self::Flowop => Some(Self::Transaction),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    environment: Environment<'a>,
    profile: Profile,
    open: Vec<Element>,
    found: bool,
}

impl<'a> Parser<'a> {
    fn run(mut self) -> Result<Profile, Fault> {
        if self.text.trim().is_empty() {
            return Err((0, "the file is empty".into()));
        }
        let mut reader = Reader::from_str(self.text);
        loop {
            let start = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
            let event = reader
                .read_event()
                .map_err(|e| (usize::try_from(reader.error_position()).unwrap_or(start), e.to_string()))?;
            match event {
                Event::Start(tag) => self.enter(&tag, start)?,
                Event::Empty(tag) => {
                    self.enter(&tag, start)?;
                    self.open.pop();
                }
                Event::End(_) => {
                    self.open.pop();
                }
                Event::Text(text) => self.blank(&text.into_inner(), start)?,
                Event::CData(text) => self.blank(&text.into_inner(), start)?,
                Event::GeneralRef(_) => return Err((start, "text has no place in a profile".into())),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
                Event::Eof => return self.finish(start),
            }
        }
    }

    fn finish(self, end: usize) -> Result<Profile, Fault> {
        if let Some(element) = self.open.last() {
            return Err((end, format!("the file ends within {element:?}").to_lowercase()));
        }
        if !self.found {
            return Err((end, "no <profile>".into()));
        }
        Ok(self.profile)
    }

    fn blank(&self, text: &str, start: usize) -> Result<(), Fault> {
        let Some(at) = text.find(|c: char| !c.is_whitespace() && c != '\0') else { return Ok(()) };
        let word = text[at..].split_whitespace().next().unwrap_or_default();
        Err((start + at, format!("Unknown symbol: {word}")))
    }

    fn enter(&mut self, tag: &BytesStart<'_>, start: usize) -> Result<(), Fault> {
        let name = tag.name();
        let name: &str = name.as_ref();
        let element = Element::from_name(name).ok_or_else(|| (start, format!("Unknown symbol: <{name}")))?;
        if self.open.last().copied() != element.parent() || (element == Element::Profile && self.found) {
            return Err((start, format!("<{name}> has no place here")));
        }
        self.begin(element).map_err(|message| (start, message))?;
        self.open.push(element);
        for attribute in tag.html_attributes() {
            let attribute = attribute.map_err(|e| (start, e.to_string()))?;
            let key: &str = attribute.key.as_ref();
            let at = self.offset_of(key).unwrap_or(start);
            let value =
                attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|e| (at, e.to_string()))?;
            self.attribute(element, &key.to_ascii_lowercase(), &value).map_err(|message| (at, message))?;
        }
        if element == Element::Flowop
            && let Some(flowop) = self.flowop()
        {
            let has_type = tag.html_attributes().flatten().any(|a| {
                let key: &str = a.key.as_ref();
                key.eq_ignore_ascii_case("type")
            });
            let checked = if has_type { flowop::check(flowop) } else { Err("flowop needs type=".into()) };
            checked.map_err(|message| (start, message))?;
        }
        Ok(())
    }

    /// Where a part of the text lies in it.
    fn offset_of(&self, part: &str) -> Option<usize> {
        let offset = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        (offset <= self.text.len()).then_some(offset)
    }

    fn begin(&mut self, element: Element) -> Result<(), String> {
        match element {
            Element::Profile => self.found = true,
            Element::Group => push(&mut self.profile.groups, Group::default(), MOST_GROUPS, "groups")?,
            Element::Transaction => {
                let transaction = Transaction { iterations: 1, ..Transaction::default() };
                if let Some(group) = self.profile.groups.last_mut() {
                    push(&mut group.transactions, transaction, MOST_TRANSACTIONS, "transactions")?;
                }
            }
            Element::Flowop => {
                if let Some(transaction) = self.transaction() {
                    push(&mut transaction.flowops, Flowop::default(), MOST_FLOWOPS, "flowops")?;
                }
            }
        }
        Ok(())
    }

    fn transaction(&mut self) -> Option<&mut Transaction> {
        self.profile.groups.last_mut()?.transactions.last_mut()
    }

    fn flowop(&mut self) -> Option<&mut Flowop> {
        self.transaction()?.flowops.last_mut()
    }

    /// The value with its environment variable looked up. Else it has no case, but for the flowop's options, which see to
    /// that word by word.
    fn resolved(&self, key: &str, value: &str) -> Result<String, String> {
        if let Some(name) = value.strip_prefix('$') {
            let found = flowop::variable(name, self.environment).filter(|v| !v.is_empty());
            return found.ok_or_else(|| format!("${name} is not set"));
        }
        Ok(if key == "options" { value.to_owned() } else { value.to_ascii_lowercase() })
    }

    fn attribute(&mut self, element: Element, key: &str, value: &str) -> Result<(), String> {
        let value = self.resolved(key, value)?;
        let environment = self.environment;
        match (element, key) {
            (Element::Profile, "name") => self.profile.name = value.chars().take(LONGEST_NAME).collect(),
            // uperf puts the name of a transaction or flowop there too.
            (_, "name") => {
                if let Some(group) = self.profile.groups.last_mut() {
                    group.name = Some(value);
                }
            }
            (Element::Group, "nthreads" | "nprocs") => {
                let strands = integer(&value)?;
                if let Some(group) = self.profile.groups.last_mut() {
                    group.strands = strands;
                    group.processes |= key == "nprocs";
                }
            }
            (Element::Transaction, "iterations" | "duration" | "rate") => {
                if let Some(transaction) = self.transaction() {
                    match key {
                        "iterations" => transaction.iterations = u64::from(integer(&value)?),
                        "duration" => {
                            transaction.duration_ns = nanoseconds(&value)?;
                            transaction.iterations = 1;
                        }
                        _ => {
                            transaction.rate = integer(&value)?;
                            transaction.rate_text = value;
                        }
                    }
                }
            }
            (Element::Flowop, "type") => {
                let kind = Kind::from_name(&value).ok_or_else(|| format!("Unknown flowop {value}"))?;
                if let Some(flowop) = self.flowop() {
                    flowop.kind = kind;
                }
            }
            (Element::Flowop, "options") => {
                if let Some(flowop) = self.flowop() {
                    flowop::apply(flowop, &value, environment)?;
                }
            }
            (_, "nthreads" | "nprocs") => return Err(format!("{key}= belongs to a group")),
            (_, "iterations" | "duration" | "rate") => {
                return Err(format!("{key}= belongs to a transaction"));
            }
            (_, "type" | "options") => return Err(format!("{key}= belongs to a flowop")),
            _ => return Err(format!("Unknown symbol: {key}=")),
        }
        Ok(())
    }
}

fn push<T>(list: &mut Vec<T>, item: T, most: usize, what: &str) -> Result<(), String> {
    if list.len() >= most {
        return Err(format!("more than {most} {what}"));
    }
    list.push(item);
    Ok(())
}

#[cfg(test)]
mod tests;
