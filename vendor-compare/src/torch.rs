//! `torch:cpu` and `torch:cuda`: which keys there are, and what process each needs.

use ulpian_spec::ExecutorId;
use ulpian_spec::executor::ExecutorIdError;

use crate::Error;
use crate::keys::{self, Key};

/// The keys of `torch:cpu`.
///
/// Without oneDNN NNPACK computes float32 convolutions of 16 images or more, unless `nnpack=off`. `isa` chooses the kernels of ATen, PyTorch's own; oneDNN and MKL dispatch by themselves. `batch=1` computes every row of
/// the first dimension alone. `compile=on` compiles the whole case with `torch.compile`.
pub const CPU_KEYS: &[Key] = &[
    Key::new("batch", &["1"]),
    Key::new("compile", &["on"]),
    Key::new("isa", &["default", "avx2", "avx512"]),
    Key::new("layout", &["channels_last"]),
    Key::new("mkldnn", &["off"]),
    Key::new("nnpack", &["off"]),
    Key::count("threads"),
];

/// The keys of `torch:cuda`.
pub const CUDA_KEYS: &[Key] = &[
    Key::new("compile", &["on"]),
    Key::new("cudnn", &["off"]),
    Key::new("deterministic", &["on"]),
    Key::new("layout", &["channels_last"]),
    Key::new("tf32", &["on", "off"]),
];

/// Checks that the keys exist, have values they can have, and go together.
pub(crate) fn check(id: &ExecutorId) -> Result<(), ExecutorIdError> {
    match id.variant.as_str() {
        "cpu" => keys::check(id, CPU_KEYS)?,
        "cuda" => keys::check(id, CUDA_KEYS)?,
        _ => return Err(keys::error(id, "the variants of torch are cpu and cuda")),
    }
    if id.key("compile").is_some() && id.key("batch").is_some() {
        return Err(keys::error(id, "batch=1 and compile=on exclude each other"));
    }
    Ok(())
}

/// The variables that must stand in a worker's environment before PyTorch is imported. Executors with the same ones share a
/// process.
pub(crate) fn environment(id: &ExecutorId) -> Result<Vec<(String, String)>, Error> {
    let mut env = Vec::new();
    if let Some(isa) = id.key("isa") {
        // PyTorch believes this variable without asking the processor.
        let missing = match isa {
            "default" => None,
            "avx2" => (!has_avx2()).then_some("AVX2"),
            _ => (!has_avx512()).then_some("AVX-512 (F, BW, DQ, VL)"),
        };
        if let Some(instructions) = missing {
            return Err(Error::unavailable(
                format!("isa={isa} needs {instructions}, which this processor does not have"),
                "run on a processor that has it, or leave isa out",
            ));
        }
        env.push(("ATEN_CPU_CAPABILITY".to_owned(), isa.to_owned()));
    }
    if id.key("deterministic").is_some() {
        // cuBLAS reads it when its handle is made; PyTorch refuses deterministic products without it.
        env.push(("CUBLAS_WORKSPACE_CONFIG".to_owned(), ":4096:8".to_owned()));
    }
    Ok(env)
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}
