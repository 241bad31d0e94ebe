//! Any bytes as a `.npz` archive: each array is read or refused, and asking again gives the same.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use ulpian::import::npz::Archive;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut archive) = Archive::open(Cursor::new(bytes)) else { return };
    for name in archive.names() {
        let first = archive.get(&name).expect("a name that it gave");
        let again = archive.get(&name).expect("a name that it gave");
        match (first, again) {
            (Ok(a), Ok(b)) => assert!(a.same_bits(&b)),
            (a, b) => assert_eq!(a.is_ok(), b.is_ok()),
        }
    }
});
