"""The loop of a worker process: requests on standard input, answers on standard output."""

import faulthandler
import os
import platform
import queue
import shutil
import signal
import sys
import threading
import time
import traceback

from . import protocol
from .protocol import NodeFailed, Unavailable


def _claim_pipes():
    """The pipes to Ulpian. What libraries print goes to standard error; what they read is empty."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return requests, answers


def _is_gone(process):
    """Is there no process of this number any more?"""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _in_own_group(ulpian):
    """Is this process in the group that Ulpian made for it?"""
    try:
        return os.getpgrp() != os.getpgid(ulpian)
    except (AttributeError, OSError):
        return False


def _read_requests(stream, requests, ulpian, folders, own_group):
    """Hands requests on. When Ulpian is gone the process ends, in the middle of a computation too, and its group with it."""
    try:
        while (request := protocol.read_frame(stream)) is not None:
            requests.put(request)
    except Exception as error:
        print(f"ulpian worker: {error}", file=sys.stderr, flush=True)
    if own_group:
        deadline = time.monotonic() + 1
        while not (gone := _is_gone(ulpian)) and time.monotonic() < deadline:
            time.sleep(0.02)
        for folder in folders if gone else ():
            shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _import_family(family):
    """Imports what computes, and returns its facts."""
    if family == "torch":
        from . import torch_executor

        return torch_executor.facts()
    from . import ort_executor

    return ort_executor.facts()


def _hello(family):
    hello = {
        "answer": "hello",
        "protocol": protocol.VERSION,
        "byteorder": sys.byteorder,
        "facts": {"python": platform.python_version(), "executable": sys.executable},
        "problem": None,
    }
    try:
        hello["facts"].update(_import_family(family))
    except Exception as error:
        traceback.print_exc()
        hello["problem"] = f"{type(error).__name__}: {error}"
    return hello


def _written(request, results):
    """The file of a case's results, and the entries that tell which is where."""
    flat = [tensor for outputs in results for tensor in outputs]
    path, entries = protocol.write_tensors(flat, request["results"], f"{request['id']}.out")
    names = [[node, output] for node, outputs in enumerate(results) for output in range(len(outputs))]
    for name, entry in zip(names, entries):
        entry["at"] = name
    return path, entries


def _run(family, request):
    blob = protocol.Blob(request["tensors"]["file"]) if request["tensors"]["file"] else None
    entries = request["tensors"]["entries"]
    if family == "torch":
        from . import torch_executor

        inputs = [(blob or _EMPTY).torch(entry) for entry in entries]
        device, keys = request["variant"], request["keys"]
        results, seconds, notes = torch_executor.run(device, keys, request["nodes"], inputs, request["seed"])
    else:
        from . import ort_executor

        inputs = [(blob or _EMPTY).numpy(entry) for entry in entries]
        results, seconds, notes = ort_executor.run(request["nodes"], inputs)
    path, entries = _written(request, results)
    return {"answer": "ran", "file": path, "entries": entries, "seconds": seconds, "notes": notes}


def _load_pt(request):
    from . import torch_executor

    tensors = torch_executor.load_pt(request["path"])
    path, entries = protocol.write_tensors(list(tensors.values()), request["results"], f"{request['id']}.out")
    for name, entry in zip(tensors, entries):
        entry["name"] = name
    return {"answer": "loaded", "file": path, "entries": entries}


class _Empty(protocol.Blob):
    """A request whose tensors hold no element."""

    def __init__(self):
        self.pages = None


_EMPTY = _Empty()


def _misbehave(request, answers):
    """Ways to fail, for the tests of the side that must survive them."""
    how = request["how"]
    if how == "exit":
        print("ulpian worker: told to exit", file=sys.stderr, flush=True)
        os._exit(7)
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "garbage":
        answers.write(b"Intel MKL WARNING: this is no frame\n")
        answers.flush()
    if how == "print":
        os.write(1, b"printed by a library\n")
        print("printed by Python", flush=True)
        return {"answer": "ran", "file": None, "entries": [], "seconds": None, "notes": []}
    while True:
        time.sleep(1)


def _answer(family, request, answers):
    try:
        kind = request["request"]
        if kind == "run":
            return _run(family, request)
        if kind == "load_pt":
            return _load_pt(request)
        if kind == "misbehave" and os.environ.get("ULPIAN_WORKER_TEST") == "1":
            return _misbehave(request, answers)
        raise protocol.ProtocolError(f"unknown request {kind!r}")
    except Unavailable as error:
        return {"answer": "unavailable", "reason": error.reason, "remedy": error.remedy}
    except NodeFailed as error:
        cause = error.__cause__
        try:
            path, before = _written(request, error.results)
        except OSError:
            path, before = None, []
        what = {"node": error.node, "type": type(cause).__name__, "message": str(cause)}
        return {"answer": "failed", **what, "file": path, "entries": before}
    except Exception as error:
        traceback.print_exc()
        return {"answer": "failed", "node": None, "type": type(error).__name__, "message": str(error)}


def main(family, ulpian, *folders):
    """Serves requests until Ulpian closes the pipe.

    `ulpian` is the number of its process; `folders` are its own, removed if it dies.
    """
    # Interrupts are Ulpian's to handle; this process ends when the pipe closes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stream, answers = _claim_pipes()
    faulthandler.enable()
    # Threads that have nothing to do should not keep others from the processors. OpenMP reads it when PyTorch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    requests = queue.SimpleQueue()
    arguments = (stream, requests, int(ulpian), folders, _in_own_group(int(ulpian)))
    threading.Thread(target=_read_requests, args=arguments, daemon=True).start()
    protocol.write_frame(answers, _hello(family))
    while True:
        request = requests.get()
        answer = _answer(family, request, answers)
        answer["id"] = request["id"]
        protocol.write_frame(answers, answer)
