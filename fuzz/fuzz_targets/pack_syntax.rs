//! Any text as a call or an observation of `pack`: refused, or written in full and read back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use ulpian::pack::{Call, Observation, Word};

fn written(call: &Call) -> String {
    let mut text = format!("{}={}", call.id, call.op);
    for (name, word) in &call.args {
        let value = match word {
            Word::Tensor(tensor) => Value::String(format!("@{tensor}")),
            Word::Literal(value) => value.clone(),
        };
        text.push_str(&format!(" {name}={value}"));
    }
    text
}

fuzz_target!(|text: &str| {
    if let Ok(call) = Call::parse(text) {
        assert_eq!(Call::parse(&written(&call)).as_ref(), Ok(&call));
    }
    let ids = ["fc".to_owned(), "pool".to_owned()];
    if let Ok(seen) = Observation::parse(text, &ids) {
        let Observation { executor, node, tensor } = &seen;
        assert_eq!(Observation::parse(&format!("{executor}:{node}=@{tensor}"), &ids).as_ref(), Ok(&seen));
    }
});
