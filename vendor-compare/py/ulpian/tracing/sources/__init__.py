"""Where models come from: one file a kind of source."""

import importlib
import os

from ..subject import MissingPackage, SourceError

# What stands before the colon, and the module that loads it.
KINDS = {
    "torchvision": "torchvision",
    "timm": "timm",
    "transformers": "transformers",
    "mmpretrain": "mmpretrain",
    "package": "package",
}


def load(source, options):
    """The Subject that `source` names. Raises SourceError."""
    kind, _, name = source.partition(":")
    if kind in KINDS and name:
        return _module(KINDS[kind]).load(name, options)
    path, _, factory = source.rpartition(":")
    if path.endswith(".py"):
        return _module("factory").load(path, factory, options)
    if source.endswith(".onnx"):
        return _module("onnx_file").load(source, options)
    if os.path.isfile(os.path.join(source, "model.py")):
        return _module("graphnet").load(source, options)
    if source.endswith(".py"):
        raise SourceError(f"{source} names no factory", f"write {source}:FACTORY, a function that returns the model")
    if os.path.isdir(source):
        raise SourceError(
            f"{source} is a folder without a model.py",
            "give a GraphNet sample folder, which holds model.py and weight_meta.py",
        )
    raise SourceError(
        f"`{source}` names no source",
        "give torchvision:NAME, timm:NAME, transformers:TYPE, mmpretrain:NAME, package:NAME, FILE.py:FACTORY, FILE.onnx or a "
        "GraphNet sample folder",
    )


def names(kind):
    """Every name of a kind of source. Raises SourceError."""
    if kind not in KINDS:
        raise SourceError(f"`{kind}` is no kind of source", f"give one of {', '.join(KINDS)}")
    return _module(KINDS[kind]).names()


def _module(name):
    return importlib.import_module(f".{name}", __package__)


def require(package, remedy=None):
    """Imports a package that a source needs. Raises SourceError where it is not there or does not import."""
    try:
        return importlib.import_module(package)
    except Exception as error:
        reason = f"{package} cannot be imported: {type(error).__name__}: {error}"
        raise MissingPackage(reason, remedy or f"pip install {package}, into the Python that Ulpian uses") from error


def suggest(name, known, kind):
    """The error for a name that is not among the known ones."""
    import difflib

    close = difflib.get_close_matches(name, known, 3)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return SourceError(f"{kind} has no model `{name}`", f"{hint}`ulpian trace --list {kind}` prints all names")
