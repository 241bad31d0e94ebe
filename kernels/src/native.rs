//! `gpu:native`: launches of the native kernels on a GPU.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::rc::Rc;

use cudarc::driver::sys::{self, CUfunction, CUjit_option, CUmodule};
use ulpian_spec::{DType, HostTensor, Op, OpKind, Storage};

use crate::device::{Buffer, Device};
use crate::library::Library;
use crate::{Answer, Compiler, Error, Launch, OPERANDS, source, status};

/// Threads of a block.
const BLOCK: u32 = 256;
/// Bytes of the log of a load.
const LOG: usize = 8 << 10;

/// The native kernels on one GPU, each compiled and loaded when it is first called.
#[derive(Debug)]
pub struct Native<'d> {
    device: &'d Device,
    compiler: Compiler,
    modules: RefCell<BTreeMap<OpKind, Rc<Module<'d>>>>,
}

/// `struct Launch` of `cu/ieee.cuh`, as addresses on the GPU.
#[repr(C)]
struct Parameter {
    result: u64,
    operands: [u64; OPERANDS],
    sizes: u64,
    scalars: u64,
}

impl<'d> Native<'d> {
    /// `cache` is the folder in which PTX is kept between processes.
    ///
    /// # Errors
    /// Where NVRTC cannot be loaded, or is newer than the driver.
    pub fn open(device: &'d Device, cache: Option<PathBuf>) -> Result<Native<'d>, Error> {
        Library::Nvrtc.check_driver()?;
        Ok(Native { device, compiler: Compiler::open(cache)?, modules: RefCell::default() })
    }

    /// Computes a call, which must be one that inference accepts.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where no native kernel takes the call; the driver's, and those of compilation.
    pub fn run(&self, op: &Op<&HostTensor>) -> Result<Answer, Error> {
        let kind = op.kind();
        let unsupported = || {
            Error::Unsupported {
            op: kind,
            reason: "the native kernels take float64, float32, float16 and bfloat16, all operands of one dtype, and \
                     dropout in training with a mask"
                .to_owned(),
        }
        };
        let launches = Launch::of(op).ok_or_else(unsupported)?;
        let mut kernels = Vec::new();
        let mut results = Vec::new();
        for launch in &launches {
            results.push(self.launch(kind, launch)?);
            kernels.push(launch.kernel.as_str());
        }
        Ok(Answer { results, configuration: format!("native {}", kernels.join(", ")) })
    }

    fn launch(&self, op: OpKind, launch: &Launch) -> Result<HostTensor, Error> {
        let result = self.device.allocate(launch.result_bytes())?;
        let threads = launch.sizes.first().copied().unwrap_or(0);
        if threads > 0 {
            let blocks =
                u32::try_from((threads as u64).div_ceil(u64::from(BLOCK))).ok().filter(|&b| b < 1 << 31);
            let blocks = blocks.ok_or_else(|| Error::Unsupported {
                op,
                reason: format!("{threads} elements are more than one launch takes"),
            })?;
            let operand = |data: &Option<Vec<u8>>| data.as_ref().map(|d| self.device.upload(d)).transpose();
            let operands = launch.operands.iter().map(operand).collect::<Result<Vec<_>, _>>()?;
            let sizes = self.device.upload(&bytes(&launch.sizes, |n| n.to_le_bytes()))?;
            let scalars = self.device.upload(&bytes(&launch.scalars, |x| x.to_le_bytes()))?;
            let mut addresses = [0; OPERANDS];
            for (address, buffer) in addresses.iter_mut().zip(&operands) {
                *address = buffer.as_ref().map_or(0, Buffer::pointer);
            }
            let mut parameter = Parameter {
                result: result.pointer(),
                operands: addresses,
                sizes: sizes.pointer(),
                scalars: scalars.pointer(),
            };
            let module = self.module(op)?;
            let function = module.function(&launch.kernel)?;
            let mut parameters = [(&raw mut parameter).cast::<c_void>()];
            // SAFETY: the kernel takes one `struct Launch` by value, which has this layout; the driver copies it before the call
            // returns. All buffers live until the GPU is done, which is waited for below.
            status::driver("cuLaunchKernel", unsafe {
                sys::cuLaunchKernel(
                    function,
                    blocks,
                    1,
                    1,
                    BLOCK,
                    1,
                    1,
                    0,
                    std::ptr::null_mut(),
                    parameters.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            })?;
            self.device.synchronize()?;
        }
        tensor(launch, &result.download()?)
    }

    fn module(&self, op: OpKind) -> Result<Rc<Module<'d>>, Error> {
        if let Some(module) = self.modules.borrow().get(&op) {
            return Ok(Rc::clone(module));
        }
        let source = source(op).ok_or_else(|| Error::Unsupported {
            op,
            reason: "there is no native kernel for it".to_owned(),
        })?;
        let ptx = self.compiler.ptx(source, self.device.properties().capability)?;
        let module = Rc::new(Module::load(self.device, &ptx)?);
        self.modules.borrow_mut().insert(op, Rc::clone(&module));
        Ok(module)
    }
}

fn bytes<T: Copy>(numbers: &[T], to: impl Fn(T) -> [u8; 8]) -> Vec<u8> {
    numbers.iter().flat_map(|&n| to(n)).collect()
}

fn tensor(launch: &Launch, bytes: &[u8]) -> Result<HostTensor, Error> {
    let dtype: DType = launch.result.dtype;
    HostTensor::new(launch.result.shape.clone(), Storage::from_le_bytes(dtype, bytes)).ok_or_else(|| {
        Error::Missing {
            reason: format!("{}: a result of {} bytes, not of its shape", launch.kernel, bytes.len()),
            remedy: "this is a defect of Ulpian: report it with the case".to_owned(),
        }
    })
}

/// A loaded module, unloaded on drop.
#[derive(Debug)]
struct Module<'d> {
    handle: CUmodule,
    _device: &'d Device,
}

impl<'d> Module<'d> {
    fn load(device: &'d Device, ptx: &str) -> Result<Module<'d>, Error> {
        let text = CString::new(ptx.replace('\0', "")).unwrap_or_default();
        let mut log = vec![0u8; LOG];
        let mut options =
            [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG as *mut c_void];
        let mut handle = std::ptr::null_mut();
        // SAFETY: the PTX ends with 0; the log's buffer is as long as is said, and both lists hold two entries.
        let status = unsafe {
            sys::cuModuleLoadDataEx(
                &mut handle,
                text.as_ptr().cast::<c_void>(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        status::driver_with("cuModuleLoadDataEx", status, || {
            let end = log.iter().position(|&b| b == 0).unwrap_or(LOG);
            let text = String::from_utf8_lossy(&log[..end]).trim().to_owned();
            (!text.is_empty()).then_some(text)
        })?;
        Ok(Module { handle, _device: device })
    }

    fn function(&self, name: &str) -> Result<CUfunction, Error> {
        let text = CString::new(name).unwrap_or_default();
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded, and the name ends with 0.
        let status = unsafe { sys::cuModuleGetFunction(&mut function, self.handle, text.as_ptr()) };
        status::driver_with("cuModuleGetFunction", status, || Some(name.to_owned()))?;
        Ok(function)
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: the module was loaded once, and the device with its context is still there.
        let _ = unsafe { sys::cuModuleUnload(self.handle) };
    }
}
