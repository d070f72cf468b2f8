//! Who owns a private lab: a file in `/run/linerate`, locked with flock(2) as long as the owner lives.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::{LinkError, Result};

const DIRECTORY: &str = "/run/linerate";
const PREFIX: &str = "lab-";
const SUFFIX: &str = ".lock";
const KEPT: &str = "kept\n";

/// A held lock on a lab's file. Letting go of it without [`LabLock::remove`] leaves the file.
#[derive(Debug)]
pub(crate) struct LabLock {
    id: String,
    file: Flock<File>,
    kept: bool,
}

/// What came of trying to take a lab's lock.
pub(crate) enum Taken {
    /// It was free and is ours now.
    Free(LabLock),
    /// A living process has it.
    Owned,
    /// The file is gone.
    Gone,
}

impl LabLock {
    /// Makes the lock of a new lab under an id that no other has.
    pub(crate) fn create() -> Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755);
        builder.create(DIRECTORY).map_err(|cause| LinkError::file("create", DIRECTORY, cause))?;
        let pid = std::process::id();
        // The pid alone may be that of an earlier owner whose lab is still there.
        for count in 0.. {
            let id = if count == 0 { pid.to_string() } else { format!("{pid}x{count}") };
            let path = path_of(&id);
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    // A sweep that came between these two lines has the lock or has removed the file: try the next id.
                    if let Ok(file) = Flock::lock(file, FlockArg::LockExclusiveNonblock)
                        && is_file_at(&file, &path)
                    {
                        return Ok(Self { id, file, kept: false });
                    }
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(LinkError::file("create", path.display().to_string(), cause)),
            }
        }
        Err(LinkError::unexpected("create a lab", "no id left"))
    }

    /// Takes the lock of the lab `id` if no living process has it.
    pub(crate) fn take(id: &str) -> Result<Taken> {
        let path = path_of(id);
        let failed =
            |operation| move |cause| LinkError::file(operation, path_of(id).display().to_string(), cause);
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
            Err(cause) => return Err(failed("open")(cause)),
        };
        let mut file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(Taken::Owned),
            Err((_, error)) => return Err(failed("lock")(error.into())),
        };
        if !is_file_at(&file, &path) {
            return Ok(Taken::Gone);
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed("read"))?;
        Ok(Taken::Free(Self { id: id.to_owned(), file, kept: text == KEPT }))
    }

    /// The ids of all labs that have a file, sorted.
    pub(crate) fn ids() -> Result<Vec<String>> {
        let failed = |cause| LinkError::file("read", DIRECTORY, cause);
        let entries = match fs::read_dir(DIRECTORY) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(failed(cause)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
            ids.extend(id.filter(|id| is_id(id)).map(str::to_owned));
        }
        ids.sort();
        Ok(ids)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    pub(crate) fn mark_kept(&mut self) -> Result<()> {
        let failed = |cause| LinkError::file("write", path_of(&self.id).display().to_string(), cause);
        self.file.write_all(KEPT.as_bytes()).map_err(failed)?;
        self.kept = true;
        Ok(())
    }

    /// Removes the file while the lock is held, so that nobody can take it between.
    pub(crate) fn remove(self) -> Result<()> {
        let path = path_of(&self.id);
        fs::remove_file(&path).map_err(|cause| LinkError::file("remove", path.display().to_string(), cause))
    }
}

fn path_of(id: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{PREFIX}{id}{SUFFIX}"))
}

/// An id is part of the names of files and namespaces that are removed: nothing but what [`LabLock::create`] makes.
pub(crate) fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 32 && id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'x')
}

fn is_file_at(file: &File, path: &Path) -> bool {
    let identity = |file: fs::Metadata| (file.dev(), file.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => identity(held) == identity(there),
        _ => false,
    }
}
