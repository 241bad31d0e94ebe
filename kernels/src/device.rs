//! One GPU: its primary context, and memory on it.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUdeviceptr};

use crate::library::Library;
use crate::{Error, status};

/// What is read where nothing was written: no result is right by chance.
const UNWRITTEN: u8 = 0x5a;

/// What the driver says of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Its number among those that this process sees.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// Number of multiprocessors.
    pub multiprocessors: i32,
    /// Bytes of memory.
    pub memory: usize,
}

/// A GPU whose primary context is current on this thread, which it does not leave.
#[derive(Debug)]
pub struct Device {
    handle: CUdevice,
    properties: Properties,
    thread: PhantomData<*const ()>,
}

impl Device {
    /// The GPUs that this process sees, in the driver's order, which `CUDA_VISIBLE_DEVICES` sets.
    ///
    /// # Errors
    /// Where the driver cannot be loaded, or answers with an error.
    pub fn list() -> Result<Vec<Properties>, Error> {
        let count = count()?;
        (0..count).map(|ordinal| handle(ordinal).and_then(|h| properties(ordinal, h))).collect()
    }

    /// Retains the primary context of a GPU, by its number.
    ///
    /// # Errors
    /// Where the driver cannot be loaded or answers with an error, or there is no GPU of this number.
    pub fn open(ordinal: usize) -> Result<Device, Error> {
        let count = count()?;
        if ordinal >= count {
            let seen = match count {
                0 => "this process sees no GPU".to_owned(),
                1 => "this process sees one GPU, number 0".to_owned(),
                n => format!("this process sees {n} GPUs, numbers 0 to {}", n - 1),
            };
            return Err(Error::Missing {
                reason: format!("there is no GPU number {ordinal}: {seen}"),
                remedy:
                    "name one with --device; CUDA_VISIBLE_DEVICES says which of the machine's GPUs are seen"
                        .to_owned(),
            });
        }
        let handle = handle(ordinal)?;
        let properties = properties(ordinal, handle)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the handle is the driver's; the context is written to a local. It is released when the device is dropped.
        status::driver("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&mut context, handle)
        })?;
        let device = Device { handle, properties, thread: PhantomData };
        // SAFETY: the context was retained just now.
        status::driver("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })?;
        Ok(device)
    }

    /// What the driver says of it.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Bytes that are free, and bytes in all.
    ///
    /// # Errors
    /// The driver's.
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both numbers are written to locals.
        status::driver("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free, total))
    }

    /// Memory that holds these bytes; for none, memory that is there all the same.
    ///
    /// # Errors
    /// The driver's, among them that it has no memory left.
    pub fn upload(&self, bytes: &[u8]) -> Result<Buffer<'_>, Error> {
        let buffer = self.reserve(bytes.len())?;
        if !bytes.is_empty() {
            // SAFETY: the allocation holds at least as many bytes as the slice, and the copy ends before the call returns.
            status::driver("cuMemcpyHtoD", unsafe {
                sys::cuMemcpyHtoD_v2(buffer.pointer, bytes.as_ptr().cast::<c_void>(), bytes.len())
            })?;
        }
        Ok(buffer)
    }

    /// Memory of so many bytes, each 0x5a.
    ///
    /// # Errors
    /// The driver's, among them that it has no memory left.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer<'_>, Error> {
        let buffer = self.reserve(bytes)?;
        // SAFETY: the allocation holds at least so many bytes.
        status::driver("cuMemsetD8", unsafe { sys::cuMemsetD8_v2(buffer.pointer, UNWRITTEN, bytes.max(1)) })?;
        Ok(buffer)
    }

    fn reserve(&self, bytes: usize) -> Result<Buffer<'_>, Error> {
        let mut pointer = 0;
        // SAFETY: the address is written to a local.
        let status = unsafe { sys::cuMemAlloc_v2(&mut pointer, bytes.max(1)) };
        status::driver_with("cuMemAlloc", status, || {
            let left =
                self.memory().map_or(String::new(), |(free, total)| format!(", {free} of {total} are free"));
            Some(format!("{bytes} bytes were asked for{left}"))
        })?;
        Ok(Buffer { pointer, bytes, device: PhantomData })
    }

    /// Waits until all that was started has ended.
    ///
    /// # Errors
    /// The driver's; what went wrong in a kernel shows here.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the call takes nothing.
        status::driver("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the context was retained once by this device. After a sticky error the driver refuses, and the process is
        // about to end.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.handle) };
    }
}

/// Memory of a GPU, freed on drop; its address is a multiple of 256.
#[derive(Debug)]
pub struct Buffer<'d> {
    pointer: CUdeviceptr,
    bytes: usize,
    device: PhantomData<&'d Device>,
}

impl Buffer<'_> {
    /// Its address on the GPU.
    pub fn pointer(&self) -> CUdeviceptr {
        self.pointer
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Is it of no length?
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Its bytes, when all that was started has ended.
    ///
    /// # Errors
    /// The driver's; what went wrong in a kernel shows here.
    pub fn download(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.bytes];
        if !bytes.is_empty() {
            // SAFETY: both sides hold `self.bytes` bytes, and the copy ends before the call returns.
            status::driver("cuMemcpyDtoH", unsafe {
                sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast::<c_void>(), self.pointer, self.bytes)
            })?;
        }
        Ok(bytes)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: the address came from cuMemAlloc and is freed once; the device, and with it the context, is still there.
        let _ = unsafe { sys::cuMemFree_v2(self.pointer) };
    }
}

/// How many GPUs this process sees.
fn count() -> Result<usize, Error> {
    Library::Driver.check()?;
    // SAFETY: the call takes no pointer.
    status::driver("cuInit", unsafe { sys::cuInit(0) })?;
    let mut count = 0;
    // SAFETY: the number is written to a local.
    status::driver("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn handle(ordinal: usize) -> Result<CUdevice, Error> {
    let mut handle = 0;
    let ordinal = i32::try_from(ordinal).unwrap_or(i32::MAX);
    // SAFETY: the handle is written to a local.
    status::driver("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut handle, ordinal) })?;
    Ok(handle)
}

fn properties(ordinal: usize, handle: CUdevice) -> Result<Properties, Error> {
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: the value is written to a local.
        let status = unsafe { sys::cuDeviceGetAttribute(&mut value, which, handle) };
        status::driver("cuDeviceGetAttribute", status).map(|()| value)
    };
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: the driver writes at most as many bytes as it is told, the last of them 0.
    status::driver("cuDeviceGetName", unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), 255, handle) })?;
    let mut memory = 0;
    // SAFETY: the number is written to a local.
    status::driver("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&mut memory, handle) })?;
    // SAFETY: the last byte of the array was never written, so that it is 0.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(Properties {
        ordinal,
        name,
        capability: (
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory,
    })
}
