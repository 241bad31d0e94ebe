//! Any bytes as a tensors file: each tensor is read or refused, within the file's own size.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use ulpian_spec::Case;
use ulpian_spec::case::{Limits, SafetensorsSource, TensorSource};

const CASE: &str = r#"{"format": "ulpian-case/1", "name": "fuzz", "nodes": [
    {"id": "a", "op": "add", "args": {"input": "@x", "other": "@y"}},
    {"id": "b", "op": "softmax", "args": {"input": "%a", "dim": -1, "dtype": "float32"}}],
    "observed": [{"executor": "e", "node": "b", "tensor": "@z"}]}"#;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_elements: 1 << 16, ..Limits::default() };
    let Ok(mut source) = SafetensorsSource::new(Cursor::new(bytes.to_vec())) else { return };
    for name in source.names() {
        if let Ok(tensor) = source.tensor(&name, limits.max_elements) {
            assert!(tensor.len() * tensor.dtype().size() <= bytes.len());
        }
    }
    let _ = Case::from_json_with(CASE, "fuzz", source, limits);
});
