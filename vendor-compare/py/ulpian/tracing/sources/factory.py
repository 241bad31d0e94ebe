"""A user's own model: a function in a Python file, which is run."""

import importlib.util
import os
import sys

import torch

from .. import data
from ..subject import SourceError, Subject, place

_RETURNS = (
    "return a model, (model, inputs) or (model, loader), where inputs are a tensor, a tuple of arguments or a dict of them, and a "
    "loader is a list of such or whatever else yields them"
)


def load(path, factory, options):
    """What `factory` of the file at `path` returns."""
    if not os.path.isfile(path):
        raise SourceError(f"there is no file {path}", "check the path; it is relative to the working folder")
    module = _import(path)
    function = getattr(module, factory, None)
    if not callable(function):
        known = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", None) == module.__name__]
        raise SourceError(
            f"{path} has no function `{factory}`",
            f"it has {', '.join(known)}" if known else "define it: a function that returns the model",
        )
    try:
        made = function()
    except Exception as error:
        reason = f"{factory} of {path} failed: {type(error).__name__}: {error}{place(error)}"
        raise SourceError(reason, "call it by itself") from error
    model, given = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not callable(model):
        raise SourceError(f"{factory} of {path} returned a {type(made).__name__}", _RETURNS)
    name = f"{os.path.basename(path)}:{factory}"
    if given is None:
        side = options.image_size or 224
        given, fed = data.images(options.batch, side, side)
    else:
        given, fed = _first(given, name)
    args, kwargs = _arguments(given)
    return Subject(model, args=args, kwargs=kwargs, weights=f"as {name} made them", data=fed)


def _import(path):
    name = os.path.splitext(os.path.basename(path))[0]
    # Files beside it can be imported, as if it were run.
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"{path} cannot be imported: {type(error).__name__}: {error}{place(error)}"
        raise SourceError(reason, f"make `python {path}` run first") from error
    return module


def _first(given, name):
    """The inputs themselves, or the first that a loader yields."""
    if isinstance(given, (torch.Tensor, tuple, dict)):
        return given, f"inputs of {name}"
    if not hasattr(given, "__iter__"):
        raise SourceError(f"{name} returned inputs of type {type(given).__name__}", _RETURNS)
    for batch in given:
        return batch, f"the first batch of {name}'s loader"
    raise SourceError(f"the loader of {name} is empty", _RETURNS)


def _arguments(given):
    """Positional and keyword arguments. Of a loader's (images, labels) the labels are left out where they are whole numbers in
    one dimension."""
    if isinstance(given, dict):
        return (), dict(given)
    if isinstance(given, (tuple, list)):
        is_labelled = (
            len(given) == 2
            and all(isinstance(part, torch.Tensor) for part in given)
            and given[1].dim() == 1
            and given[1].dtype == torch.int64
            and given[0].dim() > 1
            and given[0].dtype.is_floating_point
        )
        return ((given[0],) if is_labelled else tuple(given)), {}
    return (given,), {}
