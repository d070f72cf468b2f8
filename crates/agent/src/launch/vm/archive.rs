//! The initramfs: a cpio archive in the kernel's "newc" layout (Documentation/driver-api/early-userspace/buffer-format.rst).

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const DEVICE: u32 = 0o020_600;

/// An archive under construction. Folders come before what is in them.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    folders: Vec<String>,
    inode: u32,
}

impl Archive {
    /// Adds a file that may be run; `path` as it shall be in the guest.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.folders_of(path);
        self.entry(path, FILE, content, (0, 0));
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &str, to: &str) {
        self.folders_of(path);
        self.entry(path, LINK, to.as_bytes(), (0, 0));
    }

    /// Adds a character device.
    pub(super) fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.folders_of(path);
        self.entry(path, DEVICE, &[], (major, minor));
    }

    /// Adds a folder and all above it.
    pub(super) fn folder(&mut self, path: &str) {
        self.folders_of(&format!("{path}/"));
    }

    /// The finished archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, &[], (0, 0));
        self.bytes
    }

    fn folders_of(&mut self, path: &str) {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
            let folder = path[..at].to_owned();
            if !self.folders.contains(&folder) {
                self.entry(&folder, FOLDER, &[], (0, 0));
                self.folders.push(folder);
            }
        }
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8], device: (u32, u32)) {
        let name = path.trim_start_matches('/');
        self.inode += 1;
        let fields = [
            self.inode,
            mode,
            0, // user
            0, // group
            if mode == FOLDER { 2 } else { 1 },
            0, // time of change
            u32::try_from(content.len()).unwrap_or(u32::MAX),
            0, // device of the file system
            0,
            device.0,
            device.1,
            u32::try_from(name.len() + 1).unwrap_or(u32::MAX),
            0, // check sum, unused in this layout
        ];
        let head: String = fields.iter().map(|field| format!("{field:08X}")).collect();
        self.bytes.extend_from_slice(b"070701");
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Every part begins at a multiple of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernels() {
        let mut archive = Archive::default();
        archive.file("/a/b", b"hello");
        archive.link("/a/c", "b");
        archive.device("/dev/console", 5, 1);
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.starts_with("070701000000010000"), "{text}");
        assert_eq!(bytes.len() % 4, 0);
        // Folder, file, link, folder, device, trailer.
        assert_eq!(text.matches("070701").count(), 6);
        let file = text.match_indices("070701").nth(1).unwrap().0;
        assert_eq!(&text[file + 6 + 6 * 8..file + 6 + 7 * 8], "00000005");
        assert_eq!(&text[file + 110..file + 113], "a/b");
        assert_eq!((file + 110 + 4).next_multiple_of(4), text.find("hello").unwrap());
    }
}
