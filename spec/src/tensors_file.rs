//! Tensors in safetensors files: the one way tensors reach disk and cross a pipe.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};

use crate::case::SafetensorsSource;
use crate::{DType, HostTensor};

/// Every tensor of the file, by name. Offsets, lengths and shapes are checked against the file's real size.
///
/// # Errors
/// What is wrong, without the file's name: it cannot be read, is not of the format, or holds an element type that PyTorch's
/// ops here do not take.
pub fn read(path: &Path) -> Result<BTreeMap<String, HostTensor>, String> {
    let mut bytes = Vec::new();
    open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(|e| e.to_string())?;
    from_bytes(&bytes)
}

/// Opens a file that has an end. A folder, a device and a named pipe are refused: reading `/dev/zero` would never end, and opening
/// a pipe waits for its writer. A pipe that the process was started with (`/dev/stdin`, `/dev/fd/63`) is taken.
///
/// # Errors
/// What the system said, or which of these it is.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_file() || is_inherited_pipe(path, kind) {
        return File::open(path);
    }
    let what = if kind.is_dir() { "this is a folder, not a file" } else { "this is not a regular file" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

#[cfg(unix)]
fn is_inherited_pipe(path: &Path, kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() && (path == Path::new("/dev/stdin") || path.starts_with("/dev/fd"))
}

#[cfg(not(unix))]
fn is_inherited_pipe(_: &Path, _: std::fs::FileType) -> bool {
    false
}

/// [`read`], from the file's content.
///
/// # Errors
/// As [`read`].
pub fn from_bytes(bytes: &[u8]) -> Result<BTreeMap<String, HostTensor>, String> {
    let mut source = SafetensorsSource::new(io::Cursor::new(bytes))?;
    let names = source.names();
    names.into_iter().map(|name| source.read(&name, usize::MAX).map(|tensor| (name, tensor))).collect()
}

/// Writes the tensors to `path`.
///
/// # Errors
/// What the system said.
pub fn write<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = (String, &'a HostTensor)>,
) -> Result<(), std::io::Error> {
    let bytes: Vec<(String, DType, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, t)| (name, t.dtype(), t.shape().to_vec(), t.storage().to_le_bytes()))
        .collect();
    let views: Result<Vec<_>, _> = bytes
        .iter()
        .map(|(name, dtype, shape, data)| Ok((name, TensorView::new(to_file(*dtype), shape.clone(), data)?)))
        .collect();
    views.and_then(|views| safetensors::serialize_to_file(views, None, path)).map_err(|e| match e {
        safetensors::SafeTensorError::IoError(e) => e,
        other => std::io::Error::other(other.to_string()),
    })
}

/// The dtype of this name in a safetensors file; `None` where no op here takes it.
pub(crate) fn dtype_of(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::F64 => DType::F64,
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::I64 => DType::I64,
        Dtype::I32 => DType::I32,
        Dtype::I16 => DType::I16,
        Dtype::I8 => DType::I8,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool,
        _ => return None,
    })
}

/// The dtype's name in a safetensors file.
pub(crate) fn to_file(dtype: DType) -> Dtype {
    match dtype {
        DType::F64 => Dtype::F64,
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I64 => Dtype::I64,
        DType::I32 => Dtype::I32,
        DType::I16 => Dtype::I16,
        DType::I8 => Dtype::I8,
        DType::U8 => Dtype::U8,
        DType::Bool => Dtype::BOOL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Storage;

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.safetensors");
        let x = HostTensor::f32(&[2, 1], &[1.5, f32::NEG_INFINITY]);
        let empty = HostTensor::new([0, 3], Storage::Bool(vec![])).unwrap();
        write(&path, [("x".to_owned(), &x), ("empty".to_owned(), &empty)]).unwrap();
        let back = read(&path).unwrap();
        assert!(back["x"].same_bits(&x));
        assert!(back["empty"].same_bits(&empty));
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let file = |header: &str, claimed: u64, data: &[u8]| {
            let mut bytes = claimed.to_le_bytes().to_vec();
            bytes.extend(header.as_bytes());
            bytes.extend(data);
            bytes
        };
        let entry = |dtype: &str, shape: &str, end: u64| {
            format!(r#"{{"x":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{end}]}}}}"#)
        };
        let fits = entry("F32", "[1]", 4);
        assert!(from_bytes(&file(&fits, fits.len() as u64, &[0; 4])).is_ok());
        for (header, claimed) in [
            (fits.clone(), u64::MAX),
            (fits.clone(), 1 << 40),
            (fits.clone(), 3),
            (entry("F32", "[1099511627776]", 1 << 42), 0),
            (entry("F32", "[4611686018427387904, 4611686018427387904]", 4), 0),
            (entry("F32", "[2]", 4), 0),
            (entry("F32", "[-1]", 4), 0),
            (entry("F8_E5M2", "[4]", 4), 0),
            (entry("F32", "[1]", 8), 0),
            ("{".repeat(100_000), 0),
            ("null".to_owned(), 0),
        ] {
            let claimed = if claimed == 0 { header.len() as u64 } else { claimed };
            assert!(
                from_bytes(&file(&header, claimed, &[0; 4])).is_err(),
                "{}",
                &header[..header.len().min(80)]
            );
        }
        assert!(from_bytes(&[]).is_err());
        assert!(from_bytes(&[0; 8]).is_err());
    }
}
