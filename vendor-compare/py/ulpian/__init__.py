"""The Python side of Ulpian: PyTorch and ONNX Runtime heard through a pipe, models traced, and runs of the user's own captured.

`ulpian.capture` is what a user calls:

    with ulpian.capture("case.json"):
        model(x)
"""


def capture(path, *, name=None, source=None, max_nodes=1000, max_bytes=512 << 20):
    """Records the ops of Ulpian's that run within it as the case `path`, with every result as it was seen. See
    `ulpian.capturing.Capture`."""
    from .capturing import Capture

    return Capture(path, name=name, source=source, max_nodes=max_nodes, max_bytes=max_bytes)


def __getattr__(name):
    # torch is imported only where it is needed.
    if name == "CaptureError":
        from .capturing import CaptureError

        return CaptureError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
