//! Files that `torch.save` wrote: tensors are read, code is not run.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

use common::config;
use ulpian_spec::{DType, HostTensor};
use ulpian_vendor_compare::{Error, Pool};

const WRITE: &str = r#"
import os, sys, torch
folder = sys.argv[1]
torch.save({
    "input": torch.tensor([[1.5, -2.0]]),
    "layer": {"weight": torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).t(), "empty": torch.empty(0, 4)},
    "list": [torch.tensor(True)],
    "epoch": 3,
}, folder + "/tensors.pt")
class Evil:
    def __reduce__(self):
        return os.system, ("touch " + folder + "/executed",)
torch.save({"x": Evil()}, folder + "/evil.pt")
torch.save({"epoch": 3}, folder + "/none.pt")
torch.save({"z": torch.zeros(2, dtype=torch.complex64)}, folder + "/complex.pt")
open(folder + "/text.pt", "w").write("no such file")
"#;

#[test]
fn tensors_come_out_and_code_stays_in() {
    let folder = tempfile::tempdir().unwrap();
    let mut pool = Pool::new(config());
    let python = pool.python().unwrap().executable.clone();
    let status = Command::new(python).args(["-c", WRITE]).arg(folder.path()).status().unwrap();
    assert!(status.success());

    let tensors = pool.load_pt(&folder.path().join("tensors.pt")).unwrap();
    let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["input", "layer.weight", "layer.empty", "list.0"]);
    assert!(tensors[0].1.same_bits(&HostTensor::f32(&[1, 2], &[1.5, -2.0])));
    assert_eq!((tensors[1].1.dtype(), tensors[1].1.shape()), (DType::BF16, &[3, 2][..]));
    assert_eq!(tensors[1].1.to_f64_vec(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(tensors[2].1.shape(), [0, 4]);
    assert_eq!((tensors[3].1.dtype(), tensors[3].1.get_i64(0)), (DType::Bool, Some(1)));

    for (file, says) in [
        ("evil.pt", "weights_only"),
        ("none.pt", "holds no tensor"),
        ("complex.pt", "complex64"),
        ("text.pt", "weights_only"),
        ("absent.pt", "No such file"),
    ] {
        let error = pool.load_pt(&folder.path().join(file)).unwrap_err();
        assert!(error.to_string().contains(says), "{file}: {error}");
        assert!(matches!(error, Error::Unavailable { .. } | Error::Exception { .. }), "{file}: {error}");
    }
    assert!(!folder.path().join("executed").exists());
}
