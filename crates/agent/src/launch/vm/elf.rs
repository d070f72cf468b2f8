//! The little of ELF that a guest needs: what a kernel module says of itself, and a program without what only debuggers
//! read. Source: elf(5), 64-bit little-endian files. Every offset is checked: a file may be cut off.

const IDENT: &[u8] = b"\x7fELF\x02\x01";
const PROGRAM_HEADERS: usize = 0x20;
const SECTION_HEADERS: usize = 0x28;
const PROGRAM_HEADER_SIZE: usize = 0x36;
const PROGRAM_HEADER_COUNT: usize = 0x38;
const SECTION_HEADER_SIZE: usize = 0x3a;
const SECTION_HEADER_COUNT: usize = 0x3c;
const SECTION_NAMES: usize = 0x3e;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;

fn bytes<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn half(file: &[u8], at: usize) -> Option<usize> {
    bytes(file, at).map(|b| usize::from(u16::from_le_bytes(b)))
}

fn word(file: &[u8], at: usize) -> Option<u32> {
    bytes(file, at).map(u32::from_le_bytes)
}

fn double(file: &[u8], at: usize) -> Option<usize> {
    bytes(file, at).and_then(|b| usize::try_from(u64::from_le_bytes(b)).ok())
}

/// The content of the section `name`.
pub(super) fn section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    file.starts_with(IDENT).then_some(())?;
    let header = |index: usize| {
        let size = half(file, SECTION_HEADER_SIZE)?;
        double(file, SECTION_HEADERS)?.checked_add(size.checked_mul(index)?)
    };
    let content = |at: usize| {
        let (start, length) = (double(file, at.checked_add(24)?)?, double(file, at.checked_add(32)?)?);
        file.get(start..start.checked_add(length)?)
    };
    let names = content(header(half(file, SECTION_NAMES)?)?)?;
    (0..half(file, SECTION_HEADER_COUNT)?).find_map(|index| {
        let at = header(index)?;
        let own = names.get(word(file, at)? as usize..)?;
        let own = own.split(|byte| *byte == 0).next()?;
        (own == name.as_bytes()).then(|| content(at))?
    })
}

struct Segment {
    kind: u32,
    start: usize,
    end: usize,
}

fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    file.starts_with(IDENT).then_some(())?;
    let (first, size) = (double(file, PROGRAM_HEADERS)?, half(file, PROGRAM_HEADER_SIZE)?);
    (0..half(file, PROGRAM_HEADER_COUNT)?)
        .map(|index| {
            let at = first.checked_add(size.checked_mul(index)?)?;
            let start = double(file, at.checked_add(8)?)?;
            let end = start.checked_add(double(file, at.checked_add(32)?)?)?;
            (end <= file.len()).then_some(Segment { kind: word(file, at)?, start, end })
        })
        .collect()
}

/// The program that loads this one's libraries; `None` for a static program, or no program.
pub(super) fn loader(file: &[u8]) -> Option<&str> {
    let interpreter = segments(file)?.into_iter().find(|segment| segment.kind == PT_INTERP)?;
    let path = file.get(interpreter.start..interpreter.end)?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(path).ok()
}

/// The program without the tail that is never loaded: names of symbols and lines, most of its size. `None` where it is no
/// program.
pub(super) fn loaded_part(file: &[u8]) -> Option<Vec<u8>> {
    let end = segments(file)?.iter().filter(|s| s.kind == PT_LOAD).map(|s| s.end).max()?;
    let mut part = file.get(..end)?.to_vec();
    // No sections are left: say so.
    part.get_mut(SECTION_HEADERS..SECTION_HEADERS + 8)?.fill(0);
    part.get_mut(SECTION_HEADER_COUNT..SECTION_NAMES + 2)?.fill(0);
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_is_read() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(section(&file, ".text").is_some_and(|text| !text.is_empty()));
        assert!(section(&file, ".no-such").is_none());
        let part = loaded_part(&file).unwrap();
        assert!(part.len() <= file.len());
        assert_eq!(loader(&part), loader(&file));
        assert!(section(&part, ".text").is_none());
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_is_no_panic() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in (0..2048).chain([file.len() / 2, file.len() - 1]) {
            let cut = &file[..length];
            let _ = (section(cut, ".modinfo"), loader(cut), loaded_part(cut));
        }
        let mut hostile = file[..4096.min(file.len())].to_vec();
        for at in PROGRAM_HEADERS..64 {
            let before = std::mem::replace(&mut hostile[at], 0xff);
            let _ = (section(&hostile, ".modinfo"), loader(&hostile), loaded_part(&hostile));
            hostile[at] = before;
        }
    }
}
