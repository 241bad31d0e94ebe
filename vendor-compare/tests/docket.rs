//! Every case of the docket runs here, and PyTorch's results have the dtypes and shapes that were inferred.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{config, id, ok};
use ulpian_spec::case::Limits;
use ulpian_spec::{Case, Outcome};
use ulpian_vendor_compare::Pool;

#[test]
fn every_docket_case_runs_in_pytorch() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/docket");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 30);
    let mut pool = Pool::new(config());
    for path in paths {
        let case = Case::read(&path, Limits::default()).unwrap();
        for name in ["torch:cpu", "torch:cpu?mkldnn=off"] {
            let run = ok(pool.run(&id(name), &case));
            for at in case.results() {
                assert_eq!(run.results[&at].tensor_type(), case.type_of(at), "{} {at:?}", path.display());
            }
        }
        match pool.run(&id("ort:cpu"), &case) {
            Outcome::Ok(run) => {
                for at in case.results() {
                    assert_eq!(run.results[&at].tensor_type(), case.type_of(at), "{} {at:?}", path.display());
                }
            }
            Outcome::Unavailable { reason, .. } => println!("{}: {reason}", case.name),
            Outcome::Failed { reason, .. } => panic!("{}: {reason}", case.name),
        }
    }
}
