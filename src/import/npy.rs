//! NumPy's `.npy` (format versions 1 to 3, as numpy.lib.format specifies them).

use std::io::Read;

use ulpian_spec::{DType, HostTensor, Storage};

use super::MAX_TENSOR_BYTES;

/// NumPy itself writes headers of a few hundred bytes and refuses to read more than 10,000 without being told to.
const MAX_HEADER_BYTES: usize = 1 << 16;
const MAX_DIMENSIONS: usize = 64;

/// Reads one array from `reader`, which is said to hold `length` bytes. Nothing is allocated before the header's claims are
/// checked against that length, and no more is held than `reader` really gives.
///
/// # Errors
/// What is wrong, without the file's name: it is no `.npy` file, is cut short, holds more than its header announces, or holds
/// an element type that PyTorch's ops here do not take.
pub fn read(reader: &mut dyn Read, length: u64) -> Result<HostTensor, String> {
    let (header, consumed) = read_header(reader)?;
    let array = Array::parse(&header)?;
    let bytes = array.bytes()?;
    let rest = length.saturating_sub(consumed as u64);
    if rest != bytes as u64 {
        return Err(format!(
            "the header says shape {:?} of {} ({bytes} bytes), but {rest} bytes follow it; the file is cut short or damaged",
            array.shape, array.dtype
        ));
    }
    let mut data = Vec::new();
    // One byte more than announced: an archive compares its checksum at the end of what it holds, and not before.
    reader.take(bytes as u64 + 1).read_to_end(&mut data).map_err(|e| e.to_string())?;
    if data.len() != bytes {
        let found = if data.len() > bytes { "more".to_owned() } else { data.len().to_string() };
        return Err(format!("{found} bytes of data where {bytes} were announced"));
    }
    if array.big_endian {
        data.chunks_exact_mut(array.dtype.size()).for_each(<[u8]>::reverse);
    }
    if array.fortran_order {
        data = to_row_major(&data, &array.shape, array.dtype.size());
    }
    let storage = Storage::from_le_bytes(array.dtype, &data);
    HostTensor::new(array.shape, storage).ok_or_else(|| "the data does not fill the shape".to_owned())
}

/// The header's text and how many bytes were read in all.
fn read_header(reader: &mut dyn Read) -> Result<(String, usize), String> {
    let cut = |_| "too short for a .npy file".to_owned();
    let mut start = [0u8; 8];
    reader.read_exact(&mut start).map_err(cut)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err("not a .npy file: it does not begin with \\x93NUMPY".to_owned());
    }
    let (size, width) = match (start[6], start[7]) {
        (1, 0) => {
            let mut n = [0u8; 2];
            reader.read_exact(&mut n).map_err(cut)?;
            (usize::from(u16::from_le_bytes(n)), 2)
        }
        (2 | 3, 0) => {
            let mut n = [0u8; 4];
            reader.read_exact(&mut n).map_err(cut)?;
            (u32::from_le_bytes(n) as usize, 4)
        }
        (major, minor) => {
            return Err(format!("format version {major}.{minor}; versions 1.0, 2.0 and 3.0 are known"));
        }
    };
    if size > MAX_HEADER_BYTES {
        return Err(format!("a header of {size} bytes; at most {MAX_HEADER_BYTES} are read"));
    }
    let mut text = vec![0u8; size];
    reader.read_exact(&mut text).map_err(cut)?;
    let text = String::from_utf8(text).map_err(|_| "the header is not text".to_owned())?;
    Ok((text, 8 + width + size))
}

/// What a header says.
struct Array {
    dtype: DType,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Array {
    fn parse(header: &str) -> Result<Array, String> {
        let mut text = Cursor { rest: header };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        text.expect('{')?;
        while !text.eat('}') {
            let key = text.string()?;
            text.expect(':')?;
            let again = match key {
                "descr" => descr.replace(text.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(text.boolean()?).is_some(),
                "shape" => shape.replace(text.shape()?).is_some(),
                other => return Err(format!("unknown key `{other}` in the header")),
            };
            if again {
                return Err(format!("the header gives `{key}` twice"));
            }
            if !text.eat(',') {
                text.expect('}')?;
                break;
            }
        }
        text.skip();
        if !text.rest.is_empty() {
            return Err(format!("the header goes on after its end, with `{}`", text.excerpt()));
        }
        let missing = |key: &str| format!("the header has no `{key}`");
        let (dtype, big_endian) = descr.ok_or_else(|| missing("descr"))?;
        Ok(Array {
            dtype,
            big_endian,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    fn bytes(&self) -> Result<usize, String> {
        // Zero-sized arrays too: the product of the other sizes must not overflow in later arithmetic.
        let cells = self.shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size.max(1)));
        let bytes = cells.and_then(|n| n.checked_mul(self.dtype.size()));
        match bytes {
            Some(_) if self.shape.contains(&0) => Ok(0),
            Some(bytes) if bytes <= MAX_TENSOR_BYTES => Ok(bytes),
            _ => Err(format!(
                "shape {:?} of {} is more than the {} GiB that a tensor may take",
                self.shape,
                self.dtype,
                MAX_TENSOR_BYTES >> 30
            )),
        }
    }
}

/// The few Python literals that a header is made of.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.eat(c) { Ok(()) } else { Err(format!("the header lacks `{c}` before `{}`", self.excerpt())) }
    }

    fn excerpt(&self) -> String {
        self.rest.trim().chars().take(20).collect()
    }

    fn string(&mut self) -> Result<&'a str, String> {
        self.skip();
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let body = quote.and_then(|q| self.rest[1..].split_once(q));
        let (body, rest) =
            body.ok_or_else(|| format!("the header lacks a string at `{}`", self.excerpt()))?;
        self.rest = rest;
        Ok(body)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.skip();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(format!("the header lacks True or False at `{}`", self.excerpt()))
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        self.expect('(')?;
        let mut shape = Vec::new();
        while !self.eat(')') {
            self.skip();
            let digits = self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let size = self.rest[..digits].parse().map_err(|_| {
                format!("the header's shape holds `{}`, which is no size that fits", self.excerpt())
            })?;
            self.rest = &self.rest[digits..];
            // Python 2 wrote its long integers so.
            self.rest = self.rest.strip_prefix('L').unwrap_or(self.rest);
            shape.push(size);
            if shape.len() > MAX_DIMENSIONS {
                return Err(format!("more than {MAX_DIMENSIONS} dimensions"));
            }
            if !self.eat(',') {
                self.expect(')')?;
                if shape.len() == 1 {
                    return Err(format!(
                        "the header's shape `({size})` is no tuple; one size is `({size},)`"
                    ));
                }
                break;
            }
        }
        Ok(shape)
    }

    /// An element type and whether it is big-endian.
    fn descr(&mut self) -> Result<(DType, bool), String> {
        self.skip();
        if self.rest.starts_with('[') {
            return Err("a structured array; save each field as an array of its own".to_owned());
        }
        let descr = self.string()?;
        let (order, kind) = match descr.chars().next() {
            Some(c @ ('<' | '>' | '|' | '=')) => (c, &descr[1..]),
            _ => ('|', descr),
        };
        let dtype = match kind {
            "f8" => DType::F64,
            "f4" => DType::F32,
            "f2" => DType::F16,
            "i8" => DType::I64,
            "i4" => DType::I32,
            "i2" => DType::I16,
            "i1" => DType::I8,
            "u1" => DType::U8,
            "b1" | "?" => DType::Bool,
            "O" => {
                return Err(
                    "an array of Python objects, which are pickles and are never loaded; save numbers \
                            (array.astype(\"float32\"))"
                        .to_owned(),
                );
            }
            "V2" => {
                return Err(
                    "elements of two opaque bytes, as bfloat16 is saved by numpy; save bfloat16 tensors as \
                            .safetensors or .pt"
                        .to_owned(),
                );
            }
            _ => {
                return Err(format!(
                    "element type `{descr}`; known are f8 f4 f2 i8 i4 i2 i1 u1 b1, in either byte order"
                ));
            }
        };
        if dtype.size() > 1 && order == '|' {
            return Err(format!("element type `{descr}` does not say its byte order"));
        }
        Ok((dtype, order == '>'))
    }
}

/// Column-major elements of `size` bytes, rearranged row-major.
fn to_row_major(data: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for &n in shape {
        strides.push(stride);
        stride *= n;
    }
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0usize; shape.len()];
    let mut at = 0;
    while out.len() < data.len() {
        out.extend_from_slice(&data[at..at + size]);
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < shape[d] {
                break;
            }
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn load(bytes: &[u8]) -> Result<HostTensor, String> {
        read(&mut &bytes[..], bytes.len() as u64)
    }

    #[test]
    fn both_orders_and_both_byte_orders_give_the_same_tensor() {
        let rows = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let columns = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0];
        let little: Vec<u8> = rows.iter().flat_map(|x| x.to_le_bytes()).collect();
        let big: Vec<u8> = columns.iter().flat_map(|x| x.to_be_bytes()).collect();
        let a = load(&file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     \n", &little))
            .unwrap();
        let b = load(&file("{\"shape\": (2L, 3L), 'fortran_order': True, 'descr': '>f4'}", &big)).unwrap();
        assert_eq!(a.shape(), [2, 3]);
        assert_eq!(a.storage(), &Storage::F32(rows.to_vec()));
        assert!(a.same_bits(&b));
    }

    #[test]
    fn scalars_vectors_and_empty_arrays_are_read() {
        let scalar =
            load(&file("{'descr': '<f8', 'fortran_order': True, 'shape': ()}", &1.5f64.to_le_bytes()));
        assert_eq!(scalar.unwrap().storage(), &Storage::F64(vec![1.5]));
        let empty = load(&file("{'descr': '<i8', 'fortran_order': False, 'shape': (3, 0)}", &[])).unwrap();
        assert_eq!(empty.shape(), [3, 0]);
        let bools = load(&file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", &[0, 7])).unwrap();
        assert_eq!(bools.storage(), &Storage::Bool(vec![0, 1]));
    }

    #[test]
    fn claims_that_lie_are_refused() {
        let shape =
            |s: &str| file(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {s}}}"), &[0; 8]);
        for (bytes, words) in [
            (shape("(1152921504606846976,)"), "more than"),
            (shape("(4294967296, 4294967296, 4294967296)"), "more than"),
            (shape("(0, 4294967296, 4294967296, 4294967296)"), "more than"),
            (shape("(99999999999999999999999,)"), "no size that fits"),
            (shape("(-1,)"), "no size that fits"),
            (shape("(3,)"), "cut short"),
            (shape("(1,)"), "cut short"),
            (shape("(((((((((2"), "no size that fits"),
            (file("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", &[]), "never loaded"),
            (file("{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", &[0; 2]), "bfloat16"),
            (file("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", &[0; 8]), "element type `<c8`"),
            (file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", &[]), "structured"),
            (file("{'descr': 'é4', 'fortran_order': False, 'shape': (1,)}", &[]), "element type"),
            (file("{'descr': '<f4', 'shape': (1,)}", &[0; 4]), "fortran_order"),
            (file("{", &[]), "lacks a string"),
            (b"\x93NUMPY\x03\x00\xff\xff\xff\xff".to_vec(), "a header of"),
            (b"\x93NUMPY\x09\x00".to_vec(), "version 9.0"),
            (b"\x93NUMPY\x01\x01".to_vec(), "version 1.1"),
            (shape("(2)"), "no tuple"),
            (shape("(,)"), "no size that fits"),
            (shape("(2,,)"), "no size that fits"),
            (shape("(2LL,)"), "lacks `)`"),
            (shape("(2,)} + {"), "goes on after its end"),
            (shape("(2,), 'shape': (1, 2)"), "gives `shape` twice"),
            (shape("(2,), 'descr': '<i4'"), "gives `descr` twice"),
            (shape("(2,), 'fortran_order': True"), "gives `fortran_order` twice"),
            (shape("(2,), 'order': 'C'"), "unknown key `order`"),
            (b"\x93NUM".to_vec(), "too short"),
            (b"PK\x03\x04 something else".to_vec(), "not a .npy"),
        ] {
            let message = load(&bytes).unwrap_err();
            assert!(message.contains(words), "`{message}` does not speak of `{words}`");
        }
    }
}
