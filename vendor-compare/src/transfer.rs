//! Tensors to and from workers, through files in shared memory where it can be used.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use ulpian_spec::HostTensor;

use crate::Error;
use crate::group;
use crate::protocol::{ALIGNMENT, Entry, Tensors};

const SHARED_MEMORY: &str = "/dev/shm";

/// Private folders (mode 0700) for the tensors in transit, removed on drop.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// In order of preference: shared memory, then the folder for temporary files.
    folders: Vec<TempDir>,
}

impl Exchange {
    /// Makes the folders, and removes those that a killed process left.
    pub(crate) fn new(temporary: &Path) -> Result<Exchange, Error> {
        let mut folders = Vec::new();
        for parent in [Path::new(SHARED_MEMORY), temporary] {
            remove_stale(parent);
            match private_folder(parent) {
                Ok(folder) => {
                    group::remember_folder(folder.path());
                    folders.push(folder);
                }
                Err(_) if parent == Path::new(SHARED_MEMORY) => {}
                Err(error) => return Err(Error::system(format!("a folder in {}", parent.display()), &error)),
            }
        }
        Ok(Exchange { folders })
    }

    /// The folders, in order of preference.
    pub(crate) fn folders(&self) -> Vec<String> {
        self.folders.iter().map(|f| f.path().to_string_lossy().into_owned()).collect()
    }

    /// The folder in which to put files that need no shared memory.
    pub(crate) fn on_disk(&self) -> &Path {
        self.folders.last().expect("the folder for temporary files is always made").path()
    }

    /// Writes tensors to a file of this name, in the first folder that has room.
    pub(crate) fn send<'a>(
        &self,
        name: &str,
        tensors: impl Iterator<Item = &'a HostTensor> + Clone,
    ) -> Result<Tensors, Error> {
        let mut entries = Vec::new();
        let mut offset = 0;
        for tensor in tensors.clone() {
            let bytes = tensor.len() * tensor.dtype().size();
            entries.push(Entry { dtype: tensor.dtype(), shape: tensor.shape().to_vec(), offset, bytes });
            offset += bytes.next_multiple_of(ALIGNMENT);
        }
        if offset == 0 {
            return Ok(Tensors { file: None, entries });
        }
        let mut problem = None;
        for folder in &self.folders {
            let path = folder.path().join(name);
            match write(&path, tensors.clone(), &entries) {
                Ok(()) => return Ok(Tensors { file: Some(path.to_string_lossy().into_owned()), entries }),
                Err(error) => {
                    let _ = std::fs::remove_file(&path);
                    problem =
                        Some(Error::system(format!("writing {offset} bytes to {}", path.display()), &error));
                }
            }
        }
        Err(problem.expect("there is at least one folder"))
    }

    /// Reads the tensors that a worker wrote to `file`, and removes it. Every entry is checked against the file's length.
    pub(crate) fn receive(&self, file: Option<&str>, entries: &[&Entry]) -> Result<Vec<HostTensor>, String> {
        let bytes = match file {
            None => Vec::new(),
            Some(file) => {
                let path = PathBuf::from(file);
                if !self.folders.iter().any(|f| path.parent() == Some(f.path())) {
                    return Err(format!("results in {file}, outside the folders for them"));
                }
                let bytes = std::fs::read(&path).map_err(|e| format!("{file}: {e}"))?;
                let _ = std::fs::remove_file(&path);
                bytes
            }
        };
        entries
            .iter()
            .map(|entry| {
                let lying = || format!("a result that its file does not hold: {entry:?}");
                entry.tensor(&bytes).ok_or_else(lying)
            })
            .collect()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.folders.iter().for_each(|folder| group::forget_folder(folder.path()));
    }
}

fn write<'a>(
    path: &Path,
    tensors: impl Iterator<Item = &'a HostTensor>,
    entries: &[Entry],
) -> std::io::Result<()> {
    let mut file = std::fs::File::create_new(path)?;
    for (tensor, entry) in tensors.zip(entries) {
        if entry.bytes > 0 {
            file.seek(SeekFrom::Start(entry.offset as u64))?;
            file.write_all(&tensor.storage().to_le_bytes())?;
        }
    }
    file.flush()
}

fn private_folder(parent: &Path) -> std::io::Result<TempDir> {
    let start = prefix(std::process::id());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&start);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(parent)
}

/// The start of the name of a process's folders: process numbers mean something within one PID namespace only.
fn prefix(pid: u32) -> String {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
    let namespace = namespace.as_deref().and_then(Path::to_str).unwrap_or("pid:[0]");
    let number: String = namespace.chars().filter(char::is_ascii_digit).collect();
    format!("ulpian-{number}-{pid}-")
}

/// Removes the folders of processes of this namespace that are no more. A process is known to be dead only where `/proc`
/// tells so; elsewhere nothing is removed.
fn remove_stale(parent: &Path) {
    if !Path::new("/proc/self/ns/pid").exists() {
        return;
    }
    let own = prefix(0);
    let Some(start) = own.strip_suffix("0-") else { return };
    let Ok(list) = std::fs::read_dir(parent) else { return };
    for entry in list.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(start)).and_then(|rest| rest.split('-').next());
        if let Some(pid) = pid.and_then(|p| p.parse::<u32>().ok())
            && !Path::new(&format!("/proc/{pid}")).exists()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ulpian_spec::tensor::elements_of;
    use ulpian_spec::{DType, Storage};

    #[test]
    fn every_dtype_and_empty_tensors_come_back() {
        let temporary = tempfile::tempdir().unwrap();
        let exchange = Exchange::new(temporary.path()).unwrap();
        let tensors: Vec<HostTensor> = DType::ALL
            .into_iter()
            .flat_map(|d| [(d, vec![3, 5]), (d, vec![0, 7]), (d, vec![])])
            .map(|(d, shape)| {
                let n = elements_of(&shape).unwrap();
                let bytes: Vec<u8> = (0..n * d.size()).map(|i| (i % 2) as u8).collect();
                HostTensor::new(shape, Storage::from_le_bytes(d, &bytes)).unwrap()
            })
            .collect();
        let sent = exchange.send("a.in", tensors.iter()).unwrap();
        assert!(sent.entries.iter().all(|e| e.offset % ALIGNMENT == 0));
        let received =
            exchange.receive(sent.file.as_deref(), &sent.entries.iter().collect::<Vec<_>>()).unwrap();
        for (a, b) in tensors.iter().zip(&received) {
            assert!(a.same_bits(b), "{a:?} {b:?}");
        }
        assert!(!Path::new(sent.file.as_deref().unwrap()).exists());
    }

    #[test]
    fn lying_entries_are_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let exchange = Exchange::new(temporary.path()).unwrap();
        let path = exchange.on_disk().join("a.out");
        for (shape, offset, bytes) in [
            (vec![4], 0, 16),
            (vec![2], 4, 8),
            (vec![2], 0, 4),
            (vec![usize::MAX, 2], 0, 8),
            (vec![1], usize::MAX, 4),
        ] {
            std::fs::write(&path, [0; 8]).unwrap();
            let entry = Entry { dtype: DType::F32, shape, offset, bytes };
            exchange.receive(path.to_str(), &[&entry]).unwrap_err();
        }
        let entry = Entry { dtype: DType::F32, shape: vec![1], offset: 0, bytes: 4 };
        exchange.receive(Some("/etc/hostname"), &[&entry]).unwrap_err();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn folders_are_private_removed_on_drop_and_cleaned_after_a_kill() {
        use std::os::unix::fs::PermissionsExt;
        let temporary = tempfile::tempdir().unwrap();
        // A process that has ended and been waited for.
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let stale = temporary.path().join(format!("{}x", prefix(child.id())));
        std::fs::create_dir(&stale).unwrap();
        let exchange = Exchange::new(temporary.path()).unwrap();
        assert!(!stale.exists());
        let folders = exchange.folders();
        for folder in &folders {
            assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
        drop(exchange);
        assert!(folders.iter().all(|f| !Path::new(f).exists()));
    }
}
