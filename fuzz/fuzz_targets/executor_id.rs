//! Any text as an executor's name: what is taken is written and reads back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ulpian_spec::ExecutorId;

fuzz_target!(|text: &str| {
    if let Ok(id) = text.parse::<ExecutorId>() {
        assert_eq!(id.to_string().parse::<ExecutorId>().as_ref(), Ok(&id));
    }
});
