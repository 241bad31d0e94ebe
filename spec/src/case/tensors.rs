//! The tensors of a case: inline in its JSON, or in a safetensors file beside it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};
use std::sync::Arc;

use half::{bf16, f16};
use safetensors::tensor::Metadata;
use serde_json::value::RawValue;

use super::json;
use super::number::{parse_float, parse_integer, shorten};
use crate::ops::args::dtype as dtype_of_name;
use crate::tensor::elements_of;
use crate::{DType, HostTensor, Storage, tensors_file};

/// Most dimensions of a tensor.
pub(crate) const MAX_DIMENSIONS: usize = 64;

/// Where the tensors come from that a case names with `"@name"`.
pub trait TensorSource {
    /// The tensor of this name, of at most `max_elements` elements.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    fn tensor(&mut self, name: &str, max_elements: usize) -> Result<Arc<HostTensor>, String>;
}

/// Tensors in memory.
impl TensorSource for BTreeMap<String, Arc<HostTensor>> {
    fn tensor(&mut self, name: &str, max_elements: usize) -> Result<Arc<HostTensor>, String> {
        let found = self.get(name).ok_or_else(|| unknown_tensor(name, self.keys().map(String::as_str)))?;
        check_shape(found.shape(), max_elements)?;
        Ok(Arc::clone(found))
    }
}

/// No tensors at all.
pub(crate) struct NoTensors;

impl TensorSource for NoTensors {
    fn tensor(&mut self, name: &str, _: usize) -> Result<Arc<HostTensor>, String> {
        Err(format!(
            "`@{}` names a tensor of a tensors file, and this case names none (`tensors`)",
            shorten(name)
        ))
    }
}

/// A safetensors file, of which only the tensors asked for are read.
pub struct SafetensorsSource<R> {
    reader: R,
    header: Metadata,
    data_start: u64,
}

impl SafetensorsSource<File> {
    /// Opens the file at `relative` inside `folder`, following no link out of it.
    pub(crate) fn open(folder: &Path, relative: &str) -> Result<SafetensorsSource<File>, String> {
        let inside = "it must be a path inside the case's folder";
        if relative.is_empty() || relative.contains(['\\', '\0']) {
            return Err(format!("this is not a path that can be used; {inside}, with `/` between its parts"));
        }
        let path = Path::new(relative);
        for component in path.components() {
            match component {
                Component::Normal(_) | Component::CurDir => {}
                Component::ParentDir => return Err(format!("`..` is refused; {inside}")),
                Component::RootDir | Component::Prefix(_) => {
                    return Err(format!("an absolute path is refused; {inside}"));
                }
            }
        }
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let root = folder.canonicalize().map_err(|e| e.to_string())?;
        let full = root.join(path).canonicalize().map_err(|e| e.to_string())?;
        if !full.starts_with(&root) {
            return Err(format!("a link leads out of the case's folder; {inside}"));
        }
        // Opening a pipe would wait for its other end.
        if !full.metadata().map_err(|e| e.to_string())?.is_file() {
            return Err("this is not a regular file".to_owned());
        }
        SafetensorsSource::new(File::open(&full).map_err(|e| e.to_string())?)
    }
}

impl<R: Read + Seek> SafetensorsSource<R> {
    /// Reads and checks the header.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(mut reader: R) -> Result<SafetensorsSource<R>, String> {
        const PREFIX: u64 = 8;
        const MOST_HEADER: u64 = 100_000_000;
        let length = reader.seek(SeekFrom::End(0)).map_err(|e| e.to_string())?;
        reader.seek(SeekFrom::Start(0)).map_err(|e| e.to_string())?;
        if length < PREFIX {
            return Err(format!("it has {length} bytes; a safetensors file has at least 8"));
        }
        let mut prefix = [0; PREFIX as usize];
        reader.read_exact(&mut prefix).map_err(|e| e.to_string())?;
        let header_length = u64::from_le_bytes(prefix);
        if header_length > (length - PREFIX).min(MOST_HEADER) {
            return Err(format!(
                "its header claims {header_length} bytes and the file has {length}; it is truncated or no safetensors file"
            ));
        }
        let mut header = vec![0; header_length as usize];
        reader.read_exact(&mut header).map_err(|e| e.to_string())?;
        let text = std::str::from_utf8(&header).map_err(|e| format!("its header is not UTF-8: {e}"))?;
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|e| format!("its header is not JSON: {e}"))?;
        json::entries(raw).map_err(|e| format!("its header: {e}"))?;
        let header: Metadata = serde_json::from_str(text).map_err(|e| format!("its header: {e}"))?;
        let data_start = PREFIX + header_length;
        if header.data_len() as u64 != length - data_start {
            return Err(format!(
                "its header describes {} bytes of data and the file holds {}",
                header.data_len(),
                length - data_start
            ));
        }
        Ok(SafetensorsSource { reader, header, data_start })
    }

    /// The names of the tensors, in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.header.offset_keys();
        names.sort_unstable();
        names
    }

    /// One tensor, of at most `max_elements` elements.
    ///
    /// # Errors
    /// Where there is none, or it is not of a dtype, shape and content that ops here take.
    pub fn read(&mut self, name: &str, max_elements: usize) -> Result<HostTensor, String> {
        let Some(info) = self.header.info(name) else {
            return Err(unknown_tensor(name, self.names().iter().map(String::as_str)));
        };
        let dtype = tensors_file::dtype_of(info.dtype).ok_or_else(|| {
            format!("tensor `{}` has dtype {}, which no op here takes", shorten(name), info.dtype)
        })?;
        check_shape(&info.shape, max_elements).map_err(|e| format!("tensor `{}`: {e}", shorten(name)))?;
        let (start, end) = info.data_offsets;
        self.reader.seek(SeekFrom::Start(self.data_start + start as u64)).map_err(|e| e.to_string())?;
        // The header's offsets were checked against the file's length.
        let mut bytes = vec![0; end - start];
        self.reader.read_exact(&mut bytes).map_err(|e| e.to_string())?;
        if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
            return Err(format!(
                "tensor `{}` is bool and holds a byte that is neither 0 nor 1",
                shorten(name)
            ));
        }
        HostTensor::new(info.shape.clone(), Storage::from_le_bytes(dtype, &bytes))
            .ok_or_else(|| format!("tensor `{}`: its length is not its shape's", shorten(name)))
    }
}

impl<R: Read + Seek> TensorSource for SafetensorsSource<R> {
    fn tensor(&mut self, name: &str, max_elements: usize) -> Result<Arc<HostTensor>, String> {
        self.read(name, max_elements).map(Arc::new)
    }
}

fn unknown_tensor<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    const SHOWN: usize = 8;
    let count = names.clone().count();
    let list: Vec<String> = names.clone().take(SHOWN).map(shorten).collect();
    let more = if count > SHOWN { format!(", … ({count} in all)") } else { String::new() };
    let held = if count == 0 { "none".to_owned() } else { list.join(", ") + &more };
    format!("there is no tensor `{}`; there are: {held}{}", shorten(name), json::suggestion(name, names))
}

/// # Errors
/// Where there are too many dimensions or elements.
pub(crate) fn check_shape(shape: &[usize], max_elements: usize) -> Result<(), String> {
    if shape.len() > MAX_DIMENSIONS {
        return Err(format!("{} dimensions; at most {MAX_DIMENSIONS} are taken", shape.len()));
    }
    // PyTorch counts sizes and strides in 64 bits with a sign, those of a tensor without elements too.
    let counted = shape.iter().try_fold(1i64, |n, &s| n.checked_mul(i64::try_from(s).ok()?.max(1)));
    match counted.and_then(|_| elements_of(shape)) {
        None if shape.contains(&0) => {
            Err(format!("the sizes of shape {shape:?} multiply to more than 64 bits hold"))
        }
        Some(n) if n <= max_elements => Ok(()),
        _ => Err(format!("a tensor of shape {shape:?} has more elements than the limit of {max_elements}")),
    }
}

/// A tensor that stands in the JSON: `{"dtype": …, "shape": […], "data": […]}`, the data flat or nested.
pub(crate) fn read_inline(raw: &RawValue, max_elements: usize) -> Result<HostTensor, String> {
    let (mut dtype, mut shape, mut data) = (None, None, None);
    for (key, value) in json::entries(raw)? {
        match key.as_str() {
            "dtype" => dtype = Some(value),
            "shape" => shape = Some(value),
            "data" => data = Some(value),
            _ => {
                return Err(format!(
                    "unknown field `{}`; an inline tensor has dtype, shape and data{}",
                    shorten(&key),
                    json::suggestion(&key, ["dtype", "shape", "data"])
                ));
            }
        }
    }
    let missing = |field| format!("an inline tensor needs `{field}`");
    let dtype = json::string(dtype.ok_or_else(|| missing("dtype"))?).map_err(|e| format!("dtype: {e}"))?;
    let dtype = dtype_of_name(&dtype)?;
    let mut sizes = Vec::new();
    json::for_each(shape.ok_or_else(|| missing("shape"))?, |i, size| {
        if i >= MAX_DIMENSIONS {
            return Err(format!("more than {MAX_DIMENSIONS} dimensions"));
        }
        let parsed = json::number(size).and_then(|digits| digits.parse().ok());
        sizes.push(parsed.ok_or_else(|| format!("expected a size, got {}", json::show(size)))?);
        Ok(())
    })
    .map_err(|e| format!("shape: {e}"))?;
    check_shape(&sizes, max_elements)?;
    let data = data.ok_or_else(|| missing("data"))?;
    let storage = read_data(data, dtype, &sizes).map_err(|e| format!("data: {e}"))?;
    HostTensor::new(sizes, storage).ok_or_else(|| "data: its length is not the shape's".to_owned())
}

fn read_data(data: &RawValue, dtype: DType, shape: &[usize]) -> Result<Storage, String> {
    macro_rules! floats {
        ($variant:ident, $convert:expr) => {
            Storage::$variant(collect(data, shape, &|text| parse_float(text, dtype).map($convert))?)
        };
    }
    macro_rules! integers {
        ($variant:ident, $t:ty) => {
            Storage::$variant(collect(data, shape, &|text| {
                let n = parse_integer(text, dtype)?;
                <$t>::try_from(n).map_err(|_| format!("{n} is not representable in {dtype}"))
            })?)
        };
    }
    // parse_float has rounded to the dtype already, so these conversions are exact.
    Ok(match dtype {
        DType::F64 => floats!(F64, |x| x),
        DType::F32 => floats!(F32, |x| x as f32),
        DType::F16 => floats!(F16, f16::from_f64),
        DType::BF16 => floats!(BF16, bf16::from_f64),
        DType::I64 => integers!(I64, i64),
        DType::I32 => integers!(I32, i32),
        DType::I16 => integers!(I16, i16),
        DType::I8 => integers!(I8, i8),
        DType::U8 => integers!(U8, u8),
        DType::Bool => Storage::Bool(collect(data, shape, &|text| match text {
            "true" => Ok(1),
            "false" => Ok(0),
            _ => parse_integer(text, dtype).map(|n| n as u8),
        })?),
    })
}

/// The elements of a flat list, of lists nested as the shape says, or a lone number for a 0-dimensional tensor.
fn collect<T>(
    data: &RawValue,
    shape: &[usize],
    parse: &dyn Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    // check_shape has bounded the product.
    let expected = elements_of(shape).unwrap_or(usize::MAX);
    let mut out = Vec::new();
    if !json::is_list(data) {
        if !shape.is_empty() {
            return Err(format!("expected a list, got {}", json::kind(data)));
        }
        out.push(element(data, parse)?);
        return Ok(out);
    }
    let mut nested = false;
    json::for_each(data, |i, first| {
        nested |= i == 0 && json::is_list(first);
        Ok(())
    })?;
    if nested && shape.len() > 1 {
        collect_nested(data, shape, parse, &mut out)?;
    } else {
        let count = json::for_each(data, |i, raw| {
            if i >= expected {
                return Err(format!("more than the {expected} elements of shape {shape:?}"));
            }
            out.push(element(raw, parse).map_err(|e| format!("element {i}: {e}"))?);
            Ok(())
        })?;
        if count != expected {
            return Err(format!("{count} elements, and shape {shape:?} has {expected}"));
        }
    }
    Ok(out)
}

/// Recursion is as deep as the shape, which is at most [`MAX_DIMENSIONS`].
fn collect_nested<T>(
    data: &RawValue,
    shape: &[usize],
    parse: &dyn Fn(&str) -> Result<T, String>,
    out: &mut Vec<T>,
) -> Result<(), String> {
    let [size, inner @ ..] = shape else {
        out.push(element(data, parse)?);
        return Ok(());
    };
    let count = json::for_each(data, |i, raw| {
        if i >= *size {
            return Err(format!("a list of more than {size}, which is not nested as the shape says"));
        }
        collect_nested(raw, inner, parse, out)
    })?;
    if count != *size {
        return Err(format!("a list of {count} where the shape says {size}"));
    }
    Ok(())
}

fn element<T>(raw: &RawValue, parse: &dyn Fn(&str) -> Result<T, String>) -> Result<T, String> {
    if json::is_string(raw) {
        return parse(&json::string(raw)?);
    }
    if json::number(raw).is_some() || json::boolean(raw).is_some() {
        return parse(raw.get());
    }
    Err(format!("expected a number, got {}", json::kind(raw)))
}
