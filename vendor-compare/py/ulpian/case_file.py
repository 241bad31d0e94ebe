"""Writes a case: `ulpian-case/1` as JSON, its tensors as safetensors beside it. Needs torch alone."""

import ctypes
import json
import os
import struct
import tempfile

_SAFETENSORS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}


def write(path, case, tensors):
    """Writes the case at `path`, its tensors into a file of the same stem. Each file appears whole or not at all.

    `case` is the case's object without `tensors`, `tensors` maps names to dense tensors on the CPU.
    """
    stem, _ = os.path.splitext(os.fspath(path))
    tensors_path = f"{stem}.safetensors"
    case = {"format": "ulpian-case/1", "tensors": os.path.basename(tensors_path), **case}
    text = json.dumps(case, indent=1, allow_nan=False) + "\n"
    _replace(tensors_path, lambda file: _write_tensors(file, tensors))
    _replace(os.fspath(path), lambda file: file.write(text.encode()))


def _write_tensors(file, tensors):
    header, offset = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        dtype = _SAFETENSORS[str(tensor.dtype).removeprefix("torch.")]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    # The format asks for a header whose length is a multiple of 8, padded with spaces.
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for tensor in tensors.values():
        size = tensor.numel() * tensor.element_size()
        if size:
            file.write((ctypes.c_char * size).from_address(tensor.data_ptr()))


def _replace(path, write_to):
    folder = os.path.dirname(os.path.abspath(path))
    handle, staged = tempfile.mkstemp(dir=folder, prefix=".ulpian-")
    try:
        with os.fdopen(handle, "wb") as file:
            write_to(file)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(staged, 0o666 & ~umask)
        os.replace(staged, path)
    except BaseException:
        os.unlink(staged)
        raise
