"""What is traced: a model, its inputs, and where both come from."""

import os
import sysconfig
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable

# What is no file of the user's: Ulpian, Python itself and installed packages.
_LIBRARIES = tuple(
    os.path.realpath(folder) + os.sep
    for folder in (os.path.dirname(os.path.dirname(__file__)), *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
)


class SourceError(Exception):
    """A source that cannot be traced, with the remedy."""

    kind = "refused"

    def __init__(self, reason, remedy):
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class MissingPackage(SourceError):
    """A package that a source needs is not there."""

    kind = "missing"


@dataclass
class Options:
    """What the user chose: images or sentences at a time, the images' side, the seed, and the dtype to run in."""

    batch: int = 1
    image_size: int | None = None
    seed: int = 0
    dtype: str | None = None


@dataclass
class Subject:
    """A model ready to run."""

    # A torch.nn.Module, any callable, or an object with `record()`, which returns nodes and calls.
    model: Callable
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    # Where the weights come from.
    weights: str = ""
    # What is fed, in words.
    data: str = ""
    # The weights are random, so batch-norm's statistics are to be set by calibration.
    random: bool = False
    # What computes, where it is not PyTorch.
    framework: str | None = None
    notes: list[str] = field(default_factory=list)


def place(error):
    """` (FILE, line N)`: the innermost line of the user's own files that an exception went through. Empty where there is none."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if os.path.isfile(file) and not os.path.realpath(file).startswith(_LIBRARIES):
            return f" ({os.path.basename(file)}, line {line})"
    return ""
