//! Files of `/proc` and `/sys` that stay open and are read again into a buffer that stays.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use linerate_sys::SysError;

use crate::error::{MeterError, Result};

const FIRST_CAPACITY: usize = 16 << 10;
/// `/proc/interrupts` of a machine with thousands of CPUs and interrupts stays below.
const MAX_LENGTH: usize = 64 << 20;

/// A file that is read from its start each time. Allocates only when it has outgrown every earlier reading.
#[derive(Debug)]
pub(crate) struct KeptFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl KeptFile {
    /// Opens `path`. Files below `/proc/thread-self/net` stay those of the namespace that the caller is in now.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|cause| failed("open", path, cause))?;
        Ok(Self { path: path.to_owned(), file, buffer: vec![0; FIRST_CAPACITY] })
    }

    /// The whole file as it is now.
    pub(crate) fn read(&mut self) -> Result<&[u8]> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.grow()?;
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => return Ok(&self.buffer[..length]),
                Ok(count) => length += count,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(failed("read", &self.path, cause)),
            }
        }
    }

    /// The whole file as text.
    pub(crate) fn read_text(&mut self) -> Result<String> {
        let bytes = self.read()?.to_vec();
        String::from_utf8(bytes)
            .map_err(|_| MeterError::malformed(self.path.display().to_string(), "not UTF-8"))
    }

    fn grow(&mut self) -> Result<()> {
        let doubled = self.buffer.len() * 2;
        if doubled > MAX_LENGTH {
            let detail = format!("longer than {MAX_LENGTH} bytes");
            return Err(MeterError::malformed(self.path.display().to_string(), detail));
        }
        self.buffer.resize(doubled, 0);
        Ok(())
    }
}

/// Reads a small file once, without surrounding white space.
pub(crate) fn read_trimmed(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let text = fs::read_to_string(path).map_err(|cause| failed("read", path, cause))?;
    Ok(text.trim().to_owned())
}

pub(crate) fn failed(operation: &'static str, path: &Path, cause: io::Error) -> MeterError {
    SysError::new(operation, path.display().to_string(), cause).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_is_read_whole_each_time() {
        let path = std::env::temp_dir().join(format!("linerate-meter-file-{}", std::process::id()));
        fs::write(&path, "short").unwrap();
        let mut kept = KeptFile::open(&path).unwrap();
        assert_eq!(kept.read_text().unwrap(), "short");
        let long = "x".repeat(3 * FIRST_CAPACITY + 1);
        fs::write(&path, &long).unwrap();
        assert_eq!(kept.read_text().unwrap(), long);
        fs::write(&path, [0xff]).unwrap();
        assert!(kept.read_text().unwrap_err().to_string().contains("not UTF-8"));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = KeptFile::open("/proc/no-such-file").unwrap_err();
        assert_eq!(error.to_string(), "open on /proc/no-such-file: No such file or directory (os error 2)");
    }
}
