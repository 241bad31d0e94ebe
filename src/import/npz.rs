//! NumPy's `.npz`: a zip archive with a `.npy` file for each array.

use std::io::{Read, Seek};

use ulpian_spec::HostTensor;
use zip::ZipArchive;

/// An archive whose arrays are read when asked for.
pub struct Archive<R> {
    zip: ZipArchive<R>,
}

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive.
    ///
    /// # Errors
    /// What is wrong, without the file's name: it is no zip archive, is cut short, or is ambiguous, in that two of its members
    /// have the same name or share bytes.
    pub fn open(reader: R) -> Result<Archive<R>, String> {
        let no_archive = |e| format!("not a .npz archive: {e}");
        let mut zip = ZipArchive::new(reader).map_err(no_archive)?;
        if zip.has_duplicate_names() {
            return Err(
                "two members of the archive have the same name; save each array under its own".to_owned()
            );
        }
        if zip.has_overlapping_entries().map_err(no_archive)? {
            return Err(
                "members of the archive overlap: it is damaged, or made to unpack without end".to_owned()
            );
        }
        Ok(Archive { zip })
    }

    /// The names of its arrays, sorted.
    pub fn names(&self) -> Vec<String> {
        let files = self.zip.file_names().flatten();
        let mut names: Vec<String> =
            files.filter_map(|n| n.strip_suffix(".npy").map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// The array of this name; `None` where there is none. The size that the archive states for it is a claim like any other:
    /// no more is unpacked than the array's own header announces, and no more is held than was really unpacked.
    ///
    /// # Errors
    /// What is wrong with the array, naming it.
    pub fn get(&mut self, name: &str) -> Option<Result<HostTensor, String>> {
        let member = self.zip.index_for_name(&format!("{name}.npy"))?;
        let mut member = match self.zip.by_index(member) {
            Ok(member) => member,
            Err(e) => return Some(Err(format!("array `{name}`: {e}"))),
        };
        let length = member.size();
        Some(super::npy::read(&mut member, length).map_err(|e| format!("array `{name}`: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::CompressionMethod;

    use super::*;

    fn npy(shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn archive(members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        for (name, bytes) in members {
            zip.start_file(*name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn open(bytes: &[u8]) -> Result<Archive<Cursor<&[u8]>>, String> {
        Archive::open(Cursor::new(bytes))
    }

    const METHODS: [CompressionMethod; 2] = [CompressionMethod::Stored, CompressionMethod::Deflated];

    #[test]
    fn arrays_are_found_by_name() {
        for method in METHODS {
            let members =
                [("x.npy", npy("(2,)", &[1, 2])), ("readme.txt", vec![]), ("a b.npy", npy("()", &[9]))];
            let file = archive(&members, method);
            let mut archive = open(&file).unwrap();
            assert_eq!(archive.names(), ["a b", "x"]);
            assert_eq!(archive.get("x").unwrap().unwrap().to_f64_vec(), [1.0, 2.0]);
            assert!(archive.get("y").is_none());
            assert!(archive.get("readme").is_none());
        }
    }

    #[test]
    fn a_bomb_is_refused_by_what_it_claims() {
        // A megabyte of zeros packs into a kilobyte; the header announces one byte.
        let bomb = [("x.npy", npy("(1,)", &vec![0; 1 << 20])), ("y.npy", npy("(1099511627776,)", &[0]))];
        let file = archive(&bomb, CompressionMethod::Deflated);
        let mut archive = open(&file).unwrap();
        assert!(archive.get("x").unwrap().unwrap_err().contains("bytes follow it"));
        assert!(archive.get("y").unwrap().unwrap_err().contains("more than"));
    }

    /// Overwrites a field of the first member, `offset` bytes into its header of this signature.
    fn forge(file: &mut [u8], signature: &[u8; 4], offset: usize, value: u32) {
        let at = file.windows(4).position(|w| w == signature).unwrap() + offset;
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        const LOCAL: &[u8; 4] = b"PK\x03\x04";
        const CENTRAL: &[u8; 4] = b"PK\x01\x02";
        let good = npy("(64,)", &[7; 64]);
        let size = good.len() as u32;
        for method in METHODS {
            let whole = archive(&[("x.npy", good.clone()), ("y.npy", good.clone())], method);
            // The length in the central directory (offset 24), the packed length (20) and the checksum (16).
            for (offset, values) in [
                (24, vec![0, 1, size - 64, size - 1, size + 1, size * 2, u32::MAX - 1]),
                (20, vec![0, 1, 8, u32::MAX - 1]),
                (16, vec![0, 1]),
            ] {
                for value in values {
                    let mut file = whole.clone();
                    forge(&mut file, CENTRAL, offset, value);
                    let read = open(&file).and_then(|mut a| a.get("x").unwrap());
                    assert!(read.is_err(), "{method} {offset} {value}: {read:?}");
                }
            }
            // An announced length that fits a header of its own, but not the data.
            for shape in ["(63,)", "(65,)"] {
                let lie = npy(shape, &[7; 64]);
                let mut file = archive(&[("x.npy", lie)], method);
                let claim = if shape == "(63,)" { size - 1 } else { size + 1 };
                forge(&mut file, CENTRAL, 24, claim);
                forge(&mut file, LOCAL, 22, claim);
                let read = open(&file).and_then(|mut a| a.get("x").unwrap());
                assert!(read.is_err(), "{method} {shape}: {read:?}");
            }
        }
    }

    #[test]
    fn an_archive_cut_anywhere_is_refused() {
        for method in METHODS {
            let whole = archive(&[("x.npy", npy("(3,)", &[1, 2, 3]))], method);
            for end in 0..whole.len() {
                let read = open(&whole[..end]).map(|mut a| a.get("x"));
                assert!(!matches!(read, Ok(Some(Ok(_)))), "{method}: the first {end} bytes");
            }
        }
    }

    #[test]
    fn members_of_the_same_name_or_the_same_bytes_are_refused() {
        let members = [("x.npy", npy("(1,)", &[1])), ("y.npy", npy("(1,)", &[2]))];
        let file = archive(&members, CompressionMethod::Stored);
        let mut twice = file.clone();
        for at in 0..twice.len() - 5 {
            if &twice[at..at + 5] == b"y.npy" {
                twice[at] = b'x';
            }
        }
        assert!(open(&twice).map(|_| ()).unwrap_err().contains("same name"));
        // The first member's place in the file (offset 42 of the directory) becomes the second's too.
        let mut shared = file.clone();
        let second = shared.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
        shared[second + 42..second + 46].copy_from_slice(&[0; 4]);
        assert!(open(&shared).map(|_| ()).unwrap_err().contains("overlap"));
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        for bytes in [&b"PK\x05\x06 and nothing else"[..], b"", b"\x93NUMPY\x01\x00"] {
            assert!(open(bytes).is_err());
        }
    }
}
