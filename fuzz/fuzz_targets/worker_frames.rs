//! Any bytes as what a worker process writes, and as the file that its answers speak of: each frame is taken or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ulpian::vendor_compare::protocol::{Answer, Entry, Hello, Reply, read_frame};

fuzz_target!(|bytes: &[u8]| {
    let mut stream = bytes;
    while let Ok(Some(body)) = read_frame(&mut stream) {
        let _ = serde_json::from_slice::<Hello>(&body);
        let Ok(reply) = serde_json::from_slice::<Reply>(&body) else { continue };
        let entries: Vec<Entry> = match reply.answer {
            Answer::Ran { entries, .. } | Answer::Failed { entries, .. } => {
                entries.into_iter().map(|e| e.entry).collect()
            }
            Answer::Loaded { entries, .. } => entries.into_iter().map(|e| e.entry).collect(),
            Answer::Unavailable { .. } => continue,
        };
        for entry in entries {
            if let Some(tensor) = entry.tensor(bytes) {
                assert_eq!(tensor.len() * tensor.dtype().size(), entry.bytes);
                assert!(entry.bytes <= bytes.len());
            }
        }
    }
});
