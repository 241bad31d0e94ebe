//! Any bytes as a `.npy` file: an array within the file's own size, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ulpian::import::npy;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tensor) = npy::read(&mut &*bytes, bytes.len() as u64) {
        assert!(tensor.len() * tensor.dtype().size() <= bytes.len());
        // Whatever else the file may claim of its length.
        assert!(npy::read(&mut &*bytes, bytes.len() as u64 + 1).is_err());
        assert!(npy::read(&mut &bytes[..bytes.len() - 1], bytes.len() as u64).is_err());
    }
});
