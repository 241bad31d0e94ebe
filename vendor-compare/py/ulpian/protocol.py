"""Frames and tensors between Ulpian and its workers.

The Rust side is `vendor-compare/src/protocol.rs`; both change together, with VERSION.

A frame is the four bytes of MAGIC, the length of the body (unsigned, 32 bits, little-endian) and the body, a JSON
object in UTF-8. Tensors stand in a file beside it: a frame names the file and, for each tensor, dtype, shape, offset
and bytes. They are dense, row-major and little-endian.
"""

import ctypes
import json
import mmap
import os
import struct

VERSION = 2
MAGIC = b"ULPN"
MAX_BODY = 1 << 30

# Offsets are multiples of this: what PyTorch aligns its own memory to, so that kernels see what they always see.
ALIGNMENT = 64


class ProtocolError(Exception):
    """The other side broke the protocol."""


class Unavailable(Exception):
    """This executor cannot run here, or cannot run this case."""

    def __init__(self, reason, remedy):
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class NodeFailed(Exception):
    """A node raised an exception, which is the cause of this one. `results` are those of the nodes before it."""

    def __init__(self, node, results):
        super().__init__(node)
        self.node = node
        self.results = results


def read_frame(stream):
    """The next frame's object; None at the end of the stream."""
    header = stream.read(8)
    if not header:
        return None
    if len(header) < 8 or header[:4] != MAGIC:
        raise ProtocolError(f"not a frame: {header!r}")
    (length,) = struct.unpack("<I", header[4:])
    if length > MAX_BODY:
        raise ProtocolError(f"a frame of {length} bytes")
    body = stream.read(length)
    if len(body) < length:
        return None
    return json.loads(body)


def write_frame(stream, message):
    """Writes one object as a frame."""
    body = json.dumps(message, allow_nan=False).encode()
    stream.write(MAGIC + struct.pack("<I", len(body)) + body)
    stream.flush()


class Blob:
    """The bytes of a request's tensors: private, writable pages over the file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self.pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else None

    def torch(self, entry):
        """One tensor as a torch.Tensor over these pages."""
        import torch

        dtype, shape = getattr(torch, entry["dtype"]), entry["shape"]
        if entry["bytes"] == 0:
            return torch.empty(shape, dtype=dtype)
        count = entry["bytes"] // dtype.itemsize
        return torch.frombuffer(self.pages, dtype=dtype, count=count, offset=entry["offset"]).reshape(shape)

    def numpy(self, entry):
        """One tensor as a numpy array over these pages."""
        import numpy

        if entry["dtype"] == "bfloat16":
            import ml_dtypes

            dtype = numpy.dtype(ml_dtypes.bfloat16)
        else:
            dtype = numpy.dtype(entry["dtype"])
        if entry["bytes"] == 0:
            return numpy.empty(entry["shape"], dtype=dtype)
        count = entry["bytes"] // dtype.itemsize
        flat = numpy.frombuffer(self.pages, dtype=dtype, count=count, offset=entry["offset"])
        return flat.reshape(entry["shape"])


def _described(value):
    """dtype, shape, address and bytes of a dense tensor or array."""
    if hasattr(value, "data_ptr"):
        dtype = str(value.dtype).removeprefix("torch.")
        return dtype, list(value.shape), value.data_ptr(), value.numel() * value.element_size()
    return str(value.dtype), list(value.shape), value.ctypes.data, value.nbytes


def write_tensors(tensors, folders, name):
    """Writes dense tensors or arrays into a new file in the first of `folders` that has room.

    Returns the file's path (None if there is nothing to write) and an entry for each tensor.
    """
    entries, offset = [], 0
    for value in tensors:
        dtype, shape, _, size = _described(value)
        entries.append({"dtype": dtype, "shape": shape, "offset": offset, "bytes": size})
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    if offset == 0:
        return None, entries
    for folder in folders:
        path = os.path.join(folder, name)
        try:
            with open(path, "xb") as file:
                for value, entry in zip(tensors, entries):
                    _, _, address, size = _described(value)
                    if size:
                        file.seek(entry["offset"])
                        file.write((ctypes.c_char * size).from_address(address))
            return path, entries
        except OSError as error:
            last = error
            try:
                os.unlink(path)
            except OSError:
                pass
    raise last
