//! Statuses of the driver and of NVRTC, as errors with their remedies.

use cudarc::driver::sys::CUresult;
use cudarc::nvrtc::sys::nvrtcResult;

use crate::Error;

/// Nothing where the driver's function succeeded.
pub(crate) fn driver(call: &'static str, status: CUresult) -> Result<(), Error> {
    driver_with(call, status, || None)
}

/// As [`driver`]; `detail` is asked where the function failed.
pub(crate) fn driver_with(
    call: &'static str,
    status: CUresult,
    detail: impl FnOnce() -> Option<String>,
) -> Result<(), Error> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(Error::Status {
            call,
            status: format!("{status:?}"),
            detail: detail(),
            remedy: remedy(status).to_owned(),
            sticky: is_sticky(status),
        }),
    }
}

/// Nothing where NVRTC's function succeeded; `log` is asked where it failed.
pub(crate) fn nvrtc(
    call: &'static str,
    status: nvrtcResult,
    log: impl FnOnce() -> Option<String>,
) -> Result<(), Error> {
    let remedy = match status {
        nvrtcResult::NVRTC_SUCCESS => return Ok(()),
        nvrtcResult::NVRTC_ERROR_INVALID_OPTION => {
            "this NVRTC does not know the GPU's architecture, or one of the options: use the NVRTC of a newer CUDA"
        }
        nvrtcResult::NVRTC_ERROR_BUILTIN_OPERATION_FAILURE => {
            "libnvrtc-builtins of the same version must lie beside libnvrtc: install that package again"
        }
        nvrtcResult::NVRTC_ERROR_OUT_OF_MEMORY => "free memory of the host",
        _ => "install NVRTC again, or another version of it, and name its folder in ULPIAN_CUDA_PATH",
    };
    Err(Error::Status {
        call,
        status: format!("{status:?}"),
        detail: log(),
        remedy: remedy.to_owned(),
        sticky: false,
    })
}

/// The statuses after which, as the driver's documentation has it, the process must be ended and started again.
fn is_sticky(status: CUresult) -> bool {
    use CUresult::*;
    matches!(
        status,
        CUDA_ERROR_DEINITIALIZED
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_EXTERNAL_DEVICE
            | CUDA_ERROR_UNKNOWN
    )
}

fn remedy(status: CUresult) -> &'static str {
    use CUresult::*;
    match status {
        CUDA_ERROR_OUT_OF_MEMORY => {
            "free memory of the GPU (nvidia-smi shows who holds it), choose another with --device, or make the case smaller"
        }
        CUDA_ERROR_NO_DEVICE => {
            "nvidia-smi shows the GPUs of this machine, and CUDA_VISIBLE_DEVICES those that programs may see"
        }
        CUDA_ERROR_INVALID_DEVICE => "name a GPU that is there: --device",
        CUDA_ERROR_DEVICE_UNAVAILABLE => {
            "another process holds the GPU exclusively (nvidia-smi -q shows the compute mode): wait for it, or choose another with --device"
        }
        CUDA_ERROR_STUB_LIBRARY => {
            "the toolkit's stub of libcuda was loaded in the driver's place: take its folder from LD_LIBRARY_PATH"
        }
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH | CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            "libcuda and the loaded kernel module are of different versions: reboot after an update of the driver, or take the compat folder from LD_LIBRARY_PATH"
        }
        CUDA_ERROR_SYSTEM_NOT_READY => {
            "start nvidia-fabricmanager, or wait for it (systemctl status nvidia-fabricmanager)"
        }
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION | CUDA_ERROR_NO_BINARY_FOR_GPU | CUDA_ERROR_INVALID_PTX => {
            "NVRTC is newer than the driver: update the driver, or name the folder of an older NVRTC in ULPIAN_CUDA_PATH"
        }
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            "libnvidia-ptxjitcompiler is missing beside libcuda: in a container, ask for the driver capability `compute`"
        }
        CUDA_ERROR_LAUNCH_TIMEOUT => {
            "the kernel ran longer than a GPU with a display allows: use one without, or make the case smaller"
        }
        CUDA_ERROR_ECC_UNCORRECTABLE | CUDA_ERROR_NVLINK_UNCORRECTABLE => {
            "the hardware reports an error that it cannot correct: reset the GPU, and have it checked (nvidia-smi -q -d ECC)"
        }
        status if is_sticky(status) => {
            "a new process is started for the next case; where it comes again, compute-sanitizer names the place"
        }
        _ => "nvidia-smi shows the state of the driver, and dmesg what it last said",
    }
}
