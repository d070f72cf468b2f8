//! The restore journal: what a node's settings were before the first change, on disk, until they are so again.
//!
//! One file for each owner, which holds a lock on it (flock(2)) as long as it lives; the kernel lets go of the lock
//! however the owner ends. A file is lines of JSON: a header, then one line for each part of the node that is about to
//! change. A line is on disk before its part changes, so a line that is cut off stands for nothing. Whoever makes, reads
//! or removes files holds the lock of the folder meanwhile.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linerate_sys::netns::in_own_user_namespace;
use linerate_sys::netns_identity::NetnsIdentity;
use linerate_sys::process::ProcessId;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::error::{LinkError, Result};
use crate::netns;
use crate::settings::part::{Part, Values};

const VERSION: u32 = 1;
const SUFFIX: &str = ".journal";
const DAMAGED: &str = ".damaged";
const LOCK: &str = "lock";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Where an ordinary user's own namespace has its private files, and the way out where `/var` can't be written.
const RUN: &str = "/run/linerate/journal";
const SYSTEM: &str = "/var/lib/linerate/journal";
/// Putting back the settings of a real NIC can take seconds for each change of its queues.
const LOCK_LIMIT: Duration = Duration::from_secs(120);
const LOCK_POLL: Duration = Duration::from_millis(5);

/// Who wrote a journal, and where its settings are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    journal: u32,
    boot: String,
    pid: u32,
    start_ticks: u64,
    pub(crate) netns: Option<String>,
    #[serde(with = "Identity")]
    pub(crate) namespace: NetnsIdentity,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "NetnsIdentity")]
struct Identity {
    device: u64,
    inode: u64,
    cookie: Option<u64>,
}

/// One part as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) link: String,
    pub(crate) index: u32,
    pub(crate) part: Part,
    pub(crate) before: Values,
}

impl Header {
    fn here() -> Result<Self> {
        let owner = ProcessId::current()?;
        Ok(Self {
            journal: VERSION,
            boot: boot_id()?,
            pid: owner.pid,
            start_ticks: owner.start_ticks,
            netns: netns::current_name(),
            namespace: NetnsIdentity::current()?,
        })
    }

    /// The process that wrote it.
    pub(crate) fn owner(&self) -> u32 {
        self.pid
    }

    /// Whether the machine has not been started anew since.
    pub(crate) fn is_of_this_boot(&self) -> Result<bool> {
        Ok(self.boot == boot_id()?)
    }
}

fn boot_id() -> Result<String> {
    let text = fs::read_to_string(BOOT_ID).map_err(|cause| LinkError::file("read", BOOT_ID, cause))?;
    Ok(text.trim().to_owned())
}

/// A folder of journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalFolder {
    path: PathBuf,
}

impl JournalFolder {
    /// A folder of one's own choice, for tests and for embedding.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder where this process keeps its journal: `/var/lib/linerate/journal`; without permission to that
    /// `$XDG_STATE_HOME/linerate/journal`; in a user namespace of our own `/run/linerate/journal`.
    pub fn here() -> Self {
        let folders = Self::known();
        let usable = folders.iter().find(|folder| folder.make().is_ok());
        // Where none can be made, the first one's error is told when it is used.
        usable.or_else(|| folders.first()).cloned().unwrap_or_else(|| Self::at(RUN))
    }

    /// All folders where a process like this one may have left a journal.
    pub fn known() -> Vec<Self> {
        let run = Self::at(RUN);
        if in_own_user_namespace() {
            return vec![run];
        }
        if nix::unistd::geteuid().is_root() {
            return vec![Self::at(SYSTEM), run];
        }
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
        let own = state.or_else(home).map(|state| Self::at(state.join("linerate/journal")));
        own.into_iter().chain([run]).collect()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn make(&self) -> Result<()> {
        let failed = |cause| LinkError::file("create", self.path.display().to_string(), cause);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path).map_err(failed)
    }

    /// Locks the folder, which is made where it is not there yet.
    pub(crate) fn lock(&self) -> Result<LockedFolder> {
        self.make()?;
        self.lock_existing()
    }

    /// Locks the folder; `None` where there is none, or none that this user may write to.
    pub(crate) fn lock_if_there(&self) -> Result<Option<LockedFolder>> {
        if !self.path.is_dir() {
            return Ok(None);
        }
        match self.lock_existing() {
            Ok(locked) => Ok(Some(locked)),
            Err(error) if error.is_forbidden() && !nix::unistd::geteuid().is_root() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn lock_existing(&self) -> Result<LockedFolder> {
        let path = self.path.join(LOCK);
        let failed =
            |operation| move |cause| LinkError::file(operation, self.path.display().to_string(), cause);
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed("open the lock of"))?;
        let end = Instant::now() + LOCK_LIMIT;
        loop {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(LockedFolder { path: self.path.clone(), _lock: lock }),
                Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) if Instant::now() < end => file,
                Err((_, error)) => return Err(failed("lock")(error.into())),
            };
            std::thread::sleep(LOCK_POLL);
        }
    }
}

/// A folder that nobody else uses now.
#[derive(Debug)]
pub(crate) struct LockedFolder {
    path: PathBuf,
    _lock: Flock<File>,
}

/// A journal found in a folder.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its owner is dead, and we have its lock.
    Stale(Journal),
    /// Its owner lives.
    Living(Header, Vec<Entry>),
    /// It can't be read.
    Damaged(PathBuf, LinkError),
}

impl LockedFolder {
    /// A new journal of this process, locked, without entries yet.
    pub(crate) fn create(&self) -> Result<Journal> {
        let header = Header::here()?;
        for count in 0u32.. {
            let path = self.path.join(format!("{}-{}-{count}{SUFFIX}", header.pid, header.start_ticks));
            let failed = |operation| {
                let object = path.display().to_string();
                move |cause| LinkError::file(operation, object, cause)
            };
            let file = match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(cause) => return Err(failed("create")(cause)),
            };
            let file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
                .map_err(|(_, error)| failed("lock")(error.into()))?;
            let mut journal = Journal { path, file, header, entries: Vec::new() };
            let written = journal.append_line(&journal.header.clone()).and_then(|()| self.sync());
            return match written {
                Ok(()) => Ok(journal),
                Err(error) => {
                    // Nothing was changed under it.
                    let _ = fs::remove_file(&journal.path);
                    Err(error)
                }
            };
        }
        Err(LinkError::unexpected("create a journal", "no name left"))
    }

    /// All journals, oldest first.
    pub(crate) fn journals(&self) -> Result<Vec<Found>> {
        let failed = |cause| LinkError::file("read", self.path.display().to_string(), cause);
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().ends_with(SUFFIX) {
                let modified = entry.metadata().and_then(|file| file.modified()).map_err(failed)?;
                paths.push((modified, entry.path()));
            }
        }
        paths.sort();
        Ok(paths.into_iter().filter_map(|(_, path)| find(path).transpose()).map(flatten).collect())
    }

    fn sync(&self) -> Result<()> {
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        synced.map_err(|cause| LinkError::file("sync", self.path.display().to_string(), cause))
    }
}

fn flatten(found: std::result::Result<Found, (PathBuf, LinkError)>) -> Found {
    found.unwrap_or_else(|(path, error)| Found::Damaged(path, error))
}

/// Opens the journal at `path`; `None` where its owner has removed it, or died before it had written its first line.
fn find(path: PathBuf) -> std::result::Result<Option<Found>, (PathBuf, LinkError)> {
    let failed = |operation, cause| LinkError::file(operation, path.display().to_string(), cause);
    let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err((path.clone(), failed("open", cause))),
    };
    let mut text = Vec::new();
    if let Err(cause) = file.read_to_end(&mut text) {
        return Err((path.clone(), failed("read", cause)));
    }
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        // Its owner has put everything back and removed it while we were reading.
        Ok(file) if !is_file_at(&file, &path) => Ok(None),
        Ok(file) => {
            let parsed = parse(&text).map_err(|detail| {
                let what = format!("read journal {}", path.display());
                (path.clone(), LinkError::unexpected(&what, detail))
            })?;
            let Some((header, entries)) = parsed else {
                let _ = fs::remove_file(&path);
                return Ok(None);
            };
            Ok(Some(Found::Stale(Journal { path, file, header, entries })))
        }
        Err((_, Errno::EWOULDBLOCK)) => {
            // It may be in the middle of a line, of which it has changed nothing yet.
            let parsed = parse(&text).ok().flatten();
            Ok(parsed.map(|(header, entries)| Found::Living(header, entries)))
        }
        Err((_, error)) => Err((path.clone(), failed("lock", error.into()))),
    }
}

fn is_file_at(file: &File, path: &Path) -> bool {
    let identity = |file: fs::Metadata| (file.dev(), file.ino());
    let there = fs::metadata(path).map(identity).ok();
    there.is_some() && file.metadata().map(identity).ok() == there
}

/// Header and entries; `None` without a whole header. What stands behind the last newline was cut off.
fn parse(text: &[u8]) -> std::result::Result<Option<(Header, Vec<Entry>)>, String> {
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return Ok(None) };
    let header: Header = serde_json::from_slice(first).map_err(|error| error.to_string())?;
    if header.journal != VERSION {
        return Err(format!("it has layout {}, and this linerate knows {VERSION}", header.journal));
    }
    let entries = lines.map(serde_json::from_slice).collect::<std::result::Result<_, _>>();
    Ok(Some((header, entries.map_err(|error| error.to_string())?)))
}

/// A journal whose lock this process has.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Flock<File>,
    pub(crate) header: Header,
    pub(crate) entries: Vec<Entry>,
}

impl Journal {
    /// Puts an entry on disk. Its part may be changed once this is done.
    pub(crate) fn append(&mut self, entry: Entry) -> Result<()> {
        self.append_line(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    fn append_line(&mut self, line: &impl Serialize) -> Result<()> {
        let failed = |cause| LinkError::file("write", self.path.display().to_string(), cause);
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        let length = self.file.metadata().map_err(failed)?.len();
        let written = (&*self.file).write_all(&text).and_then(|()| self.file.sync_all());
        written.map_err(|cause| {
            // On a full disk half a line may be there, to which the next would be joined.
            let _ = self.file.set_len(length);
            failed(cause)
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it keeps this part already.
    pub(crate) fn has(&self, index: u32, part: &Part) -> bool {
        self.entries.iter().any(|entry| entry.index == index && entry.part == *part)
    }

    /// Removes it: everything is as it was.
    pub(crate) fn remove(self) -> Result<()> {
        fs::remove_file(&self.path)
            .map_err(|cause| LinkError::file("remove", self.path.display().to_string(), cause))
    }
}

/// Sets a journal that can't be read aside, so that it is told of once.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(DAMAGED);
    let aside = PathBuf::from(aside);
    fs::rename(path, &aside)
        .map_err(|cause| LinkError::file("set aside", path.display().to_string(), cause))?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(value: &str) -> Entry {
        let before = Values::from([("net.x".to_owned(), value.to_owned())]);
        Entry { link: "lo".to_owned(), index: 1, part: Part::Sysctl("net/x".to_owned()), before }
    }

    fn folder(label: &str) -> JournalFolder {
        let path = std::env::temp_dir().join(format!("linerate-journal-{}-{label}", std::process::id()));
        JournalFolder::at(path)
    }

    #[test]
    fn a_journal_is_living_until_its_owner_lets_go_and_then_read_as_written() {
        let folder = folder("living");
        let locked = folder.lock().unwrap();
        let mut journal = locked.create().unwrap();
        journal.append(entry("1")).unwrap();
        journal.append(entry("2")).unwrap();
        assert!(matches!(&locked.journals().unwrap()[..], [Found::Living(_, entries)] if entries.len() == 2));
        drop(journal);
        let found = locked.journals().unwrap();
        let [Found::Stale(journal)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(journal.entries, [entry("1"), entry("2")]);
        assert_eq!(journal.header, Header::here().unwrap());
        assert!(journal.header.is_of_this_boot().unwrap());
        fs::remove_dir_all(folder.path()).unwrap();
    }

    #[test]
    fn a_cut_line_stands_for_nothing_and_damage_is_told() {
        let folder = folder("cut");
        let locked = folder.lock().unwrap();
        let mut journal = locked.create().unwrap();
        journal.append(entry("1")).unwrap();
        let whole = fs::read(journal.path()).unwrap();
        journal.append(entry("2")).unwrap();
        let all = fs::read(journal.path()).unwrap();
        for end in 0..all.len() {
            let parsed = parse(&all[..end]).unwrap();
            let expected = usize::from(end >= whole.len());
            assert_eq!(parsed.map_or(0, |(_, entries)| entries.len()), expected, "cut at {end}");
        }
        let path = journal.path().to_owned();
        drop(journal);
        fs::write(&path, "{}\n").unwrap();
        assert!(matches!(&locked.journals().unwrap()[..], [Found::Damaged(..)]));
        set_aside(&path).unwrap();
        assert!(locked.journals().unwrap().is_empty());
        fs::remove_dir_all(folder.path()).unwrap();
    }

    proptest! {
        #[test]
        fn hostile_files_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
