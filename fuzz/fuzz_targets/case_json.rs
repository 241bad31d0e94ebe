//! Any text as a case: read or refused, and what is read is written and reads back.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use ulpian_spec::case::{Limits, NamedTensors};
use ulpian_spec::{Case, HostTensor, Storage};

fuzz_target!(|text: &str| {
    let limits = Limits { max_elements: 1 << 12, max_json_bytes: 1 << 20 };
    let tensors: NamedTensors = [
        ("x", HostTensor::f32(&[2, 4, 6, 6], &[0.5; 288])),
        ("m", HostTensor::f64(&[3, 4], &[-0.0; 12])),
        ("v", HostTensor::f32(&[4], &[1.0; 4])),
        ("i", HostTensor::new([3, 4], Storage::I8(vec![7; 12])).expect("12 elements")),
        ("s", HostTensor::f32(&[], &[2.0])),
    ]
    .map(|(name, t)| (name.to_owned(), Arc::new(t)))
    .into();
    let Ok(case) = Case::from_json_with(text, "fuzz", tensors, limits) else { return };
    let written = case.to_json();
    let again = Case::from_json(&written, "again", limits).expect("what is written reads back");
    assert_eq!(written, again.to_json());
});
