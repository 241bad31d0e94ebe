"""Compiles every kernel to PTX by the NVRTC beside torch, for every architecture asked for that it knows, and prints, as JSON,
the version, those it knows, and the PTX by architecture and file.

usage: nvrtc.py FOLDER ARCHITECTURE...
"""

import ctypes
import glob
import importlib.util
import json
import os
import sys

folder, wanted = sys.argv[1], [int(a) for a in sys.argv[2:]]
torch = importlib.util.find_spec("torch")
packages = os.path.dirname(os.path.dirname(torch.origin))
found = sorted(glob.glob(os.path.join(packages, "nvidia", "**", "libnvrtc.so.*"), recursive=True))
if not found:
    sys.exit(f"no libnvrtc beside torch in {packages}: install a torch built for CUDA, or its nvidia-cuda-nvrtc package")
# NVRTC loads its builtins by name: they must be in the process already.
for builtins in glob.glob(os.path.join(os.path.dirname(found[-1]), "libnvrtc-builtins.so*")):
    ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
nvrtc = ctypes.CDLL(found[-1])
nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p


def check(code, what):
    if code:
        raise SystemExit(f"{what}: {nvrtc.nvrtcGetErrorString(code).decode()}")


def log(program):
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, text)
    return text.value.decode()


def ptx(path, architecture):
    with open(path, "rb") as file:
        source = file.read()
    program = ctypes.c_void_p()
    name = os.path.basename(path)
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None), name)
    options = [
        f"--gpu-architecture=compute_{architecture}",
        f"--include-path={folder}",
        "--std=c++17",
        "-fmad=false",
        "--ftz=false",
        "--prec-div=true",
        "--prec-sqrt=true",
    ]
    array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    code = nvrtc.nvrtcCompileProgram(program, len(options), array)
    if code:
        raise SystemExit(f"{name} for compute_{architecture}: {log(program)}")
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)), name)
    text = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, text), name)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode()


major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
check(nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
check(nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)), "nvrtcGetNumSupportedArchs")
known = (ctypes.c_int * count.value)()
check(nvrtc.nvrtcGetSupportedArchs(known), "nvrtcGetSupportedArchs")
files = sorted(glob.glob(os.path.join(folder, "*.cu")))
compiled = {a: {os.path.basename(f): ptx(f, a) for f in files} for a in wanted if a in known}
print(json.dumps({"version": f"{major.value}.{minor.value}", "known": list(known), "ptx": compiled}))
