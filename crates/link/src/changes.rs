//! Changes to a link's settings that come back: at the end of the value that made them, or by its journal.

use std::time::{Duration, Instant};

use crate::error::{LinkError, Result};
use crate::journal::{Entry, Found, Journal, JournalFolder, LockedFolder};
use crate::restore::{Report, put_back, require_free, restore_locked};
use crate::rtnl::Rtnl;
use crate::settings::key::{Key, Touched};
use crate::settings::made::Made;
use crate::settings::part::{Part, Scope};
use crate::{links, netns, settings};
use linerate_sys::netns_identity::NetnsIdentity;

/// An owner whose controller was lost takes a moment to put its settings back.
const PATIENCE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);
/// Stands for the index of a link that is not there yet; no link ever has it.
const NO_INDEX: u32 = i32::MAX as u32;

/// The changes that one owner has made to a link, and what the link was like before. Dropping it puts everything back.
#[derive(Debug)]
pub struct Changes {
    link: String,
    namespace: NetnsIdentity,
    folder: JournalFolder,
    journal: Option<Journal>,
}

impl Changes {
    /// Gets ready to change `link`, in the calling thread's namespace. Nothing is written before the first change.
    ///
    /// # Errors
    /// [`LinkError::NoSuchLink`].
    pub fn begin(link: &str) -> Result<Self> {
        Self::begin_in(JournalFolder::here(), link)
    }

    /// [`Self::begin`] with the journal in a folder of one's own choice.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn begin_in(folder: JournalFolder, link: &str) -> Result<Self> {
        links::named(link)?;
        Ok(Self { link: link.to_owned(), namespace: NetnsIdentity::current()?, folder, journal: None })
    }

    /// The link.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// Changes a setting: checks the value, writes to the journal what will change, then changes it and reads it back.
    /// To be called in the namespace in which it began.
    ///
    /// # Errors
    /// A value that is not allowed; the kernel's refusal; a part that a running linerate has changed
    /// ([`LinkError::InUse`]) or that a dead one has left changed for good ([`LinkError::NotPutBack`]). What was changed
    /// until then stays so until [`Self::restore`].
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.set_on(&self.link.clone(), key, value)
    }

    /// [`Self::set`] on another link of the same namespace.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn set_on(&mut self, link: &str, key: &str, value: &str) -> Result<()> {
        let wanted = settings::check(link, key, value)?;
        let key = Key::parse(key)?;
        self.keep(key.touched(link, &wanted)?)?;
        settings::write_checked(link, &key, &wanted)
    }

    /// Puts everything back, last change first, and reads it back. The journal goes once all is as it was.
    ///
    /// # Errors
    /// The links can't be listed, or the journal can't be removed. A setting that does not go back is in the report.
    pub fn restore(&mut self) -> Result<Report> {
        let Some(journal) = &self.journal else { return Ok(Report::default()) };
        let report = netns::in_identity(self.namespace, || put_back(&journal.entries))?;
        // Without its namespace there is nothing left of it.
        let report = report.unwrap_or_default();
        if report.is_complete()
            && let Some(journal) = self.journal.take()
        {
            journal.remove()?;
        }
        Ok(report)
    }

    /// Writes to the journal what the parts are now, unless it has them already.
    pub(crate) fn keep(&mut self, touched: Vec<Touched>) -> Result<()> {
        let mut rtnl = Rtnl::open()?;
        let placed = touched.into_iter().map(|touched| {
            let index = links::index_of(&mut rtnl, &touched.link)?;
            Ok((index, touched))
        });
        self.keep_placed(placed.collect::<Result<_>>()?)
    }

    /// Writes to the journal that there is no link of this name yet.
    pub(crate) fn keep_new_link(&mut self, name: &str) -> Result<()> {
        let part = Part::Made(Made::Link { name: name.to_owned() });
        let touched = Touched { link: name.to_owned(), part, optional: false };
        self.keep_placed(vec![(NO_INDEX, touched)])
    }

    /// Whether a link of this name was made by this owner.
    pub(crate) fn has_made(&self, name: &str) -> bool {
        let part = Part::Made(Made::Link { name: name.to_owned() });
        self.journal.as_ref().is_some_and(|journal| journal.has(NO_INDEX, &part))
    }

    fn keep_placed(&mut self, placed: Vec<(u32, Touched)>) -> Result<()> {
        let mut wanted = Vec::new();
        for (index, touched) in placed {
            let has = |part: &Part| self.journal.as_ref().is_some_and(|journal| journal.has(index, part));
            // What IPv6 was as a whole stands for each of its parameters, which a small MTU may have taken away meanwhile.
            let kept = has(&touched.part) || (touched.is_ipv6_parameter() && has(&Part::Ipv6));
            if !kept {
                wanted.push((index, touched));
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let folder = self.lock_without_rivals(&wanted)?;
        let mut entries = Vec::new();
        for (index, touched) in wanted {
            match touched.part.values(&touched.link) {
                Ok(before) => {
                    entries.push(Entry { link: touched.link, index, part: touched.part, before });
                }
                Err(error) if touched.optional && is_lack(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let journal = match &mut self.journal {
            Some(journal) => journal,
            None => self.journal.insert(folder.create()?),
        };
        entries.into_iter().try_for_each(|entry| journal.append(entry))
    }

    /// Locks the folder once no living owner has changed what we want to change; puts back what dead ones left.
    fn lock_without_rivals(&self, wanted: &[(u32, Touched)]) -> Result<LockedFolder> {
        let end = Instant::now() + PATIENCE;
        loop {
            let folder = self.folder.lock()?;
            require_free(&restore_locked(&folder)?)?;
            let Some((owner, entry)) = self.rival(&folder, wanted)? else { return Ok(folder) };
            if Instant::now() >= end {
                let what = format!("{} of {}{}", describe(&entry.part), entry.link, netns::place());
                return Err(LinkError::InUse { what, owner });
            }
            drop(folder);
            std::thread::sleep(POLL);
        }
    }

    fn rival(&self, folder: &LockedFolder, wanted: &[(u32, Touched)]) -> Result<Option<(u32, Entry)>> {
        for found in folder.journals()? {
            let Found::Living(header, entries) = found else { continue };
            // Our own is locked by us too.
            let own = self.journal.as_ref().is_some_and(|own| own.header == header && own.entries == entries);
            if own {
                continue;
            }
            let same_namespace = header.namespace == self.namespace;
            let clashes = |entry: &Entry| {
                wanted.iter().any(|(index, touched)| {
                    entry.part == touched.part
                        && match entry.part.scope() {
                            Scope::Link => same_namespace && entry.index == *index,
                            Scope::Namespace => same_namespace,
                            Scope::Machine => entry.part == Part::Governor || entry.index == *index,
                        }
                })
            };
            if let Some(entry) = entries.into_iter().find(clashes) {
                return Ok(Some((header.owner(), entry)));
            }
        }
        Ok(None)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        // Nobody is left to tell; what is not back stays in the journal, and the next linerate reports it.
        let _ = self.restore();
    }
}

fn describe(part: &Part) -> String {
    match part {
        Part::Attribute(attribute) => attribute.key().to_owned(),
        Part::Sysctl(path) => format!("sysctl {path}"),
        Part::Made(made) => made.item(),
        part => part.label(),
    }
}

/// The link or the kernel does not have it.
fn is_lack(error: &LinkError) -> bool {
    error.is_unsupported()
        || error.raw_os_error() == Some(nix::libc::ENOENT)
        || matches!(error, LinkError::File { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound)
}
