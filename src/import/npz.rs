//! NumPy's `.npz`: a zip archive with a `.npy` file for each array.

use std::fs::File;
use std::io::BufReader;

use ulpian_spec::HostTensor;
use zip::ZipArchive;

/// An archive whose arrays are read when asked for.
pub(super) struct Archive {
    zip: ZipArchive<BufReader<File>>,
}

impl Archive {
    pub(super) fn open(file: File) -> Result<Archive, String> {
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|e| format!("not a .npz archive: {e}"))?;
        Ok(Archive { zip })
    }

    pub(super) fn names(&self) -> Vec<String> {
        let files = self.zip.file_names().flatten();
        let mut names: Vec<String> =
            files.filter_map(|n| n.strip_suffix(".npy").map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// The array of this name; `None` where there is none. The size that the archive states for it is a claim like any other:
    /// no more is unpacked than the array's own header announces, and no more is held than was really unpacked.
    pub(super) fn get(&mut self, name: &str) -> Option<Result<HostTensor, String>> {
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
    use std::io::{Seek, Write};

    use super::*;

    fn npy(shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn archive(members: &[(&str, Vec<u8>)]) -> File {
        let mut zip = zip::ZipWriter::new(tempfile::tempfile().unwrap());
        let options = zip::write::SimpleFileOptions::default();
        for (name, bytes) in members {
            zip.start_file(*name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        let mut file = zip.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn arrays_are_found_by_name() {
        let file =
            archive(&[("x.npy", npy("(2,)", &[1, 2])), ("readme.txt", vec![]), ("a b.npy", npy("()", &[9]))]);
        let mut archive = Archive::open(file).unwrap();
        assert_eq!(archive.names(), ["a b", "x"]);
        assert_eq!(archive.get("x").unwrap().unwrap().shape(), [2]);
        assert!(archive.get("y").is_none());
        assert!(archive.get("readme").is_none());
    }

    #[test]
    fn a_bomb_is_refused_by_what_it_claims() {
        // A megabyte of zeros packs into a kilobyte; the header announces one byte.
        let file =
            archive(&[("x.npy", npy("(1,)", &vec![0; 1 << 20])), ("y.npy", npy("(1099511627776,)", &[0]))]);
        let mut archive = Archive::open(file).unwrap();
        assert!(
            archive.get("x").unwrap().unwrap_err().contains("announced")
                || archive.get("x").unwrap().is_err()
        );
        assert!(archive.get("y").unwrap().unwrap_err().contains("more than"));
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"PK\x05\x06 and nothing else").unwrap();
        file.rewind().unwrap();
        assert!(Archive::open(file).is_err());
    }
}
