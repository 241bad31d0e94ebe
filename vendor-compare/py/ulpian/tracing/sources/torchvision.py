"""torchvision's models with random weights, on photographs."""

import importlib.metadata

import torch

from .. import data
from ..subject import Subject
from . import require, suggest


def names():
    """Every model's name."""
    return sorted(require("torchvision").models.list_models())


def load(name, options):
    """The model of this name."""
    models = require("torchvision").models
    if name not in models.list_models():
        raise suggest(name, models.list_models(), "torchvision")
    extra = {"weights_backbone": None} if name.startswith(("fcn", "deeplab", "lraspp", "fasterrcnn", "maskrcnn")) else {}
    extra |= {"weights_backbone": None} if name.startswith(("keypointrcnn", "retinanet", "ssd", "fcos")) else {}
    # These two draw their weights for minutes where they are not told otherwise.
    extra |= {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
    model = models.get_model(name, weights=None, **extra)
    size = options.image_size or _crop(models, name)
    args, fed = _inputs(name, options.batch, size)
    return Subject(
        model,
        args=args,
        weights=f"random, seed {options.seed} (torchvision {importlib.metadata.version('torchvision')})",
        data=fed,
        random=True,
    )


def _crop(models, name):
    """The side that the published weights are used with."""
    try:
        return int(models.get_model_weights(name).DEFAULT.transforms().crop_size[0])
    except (AttributeError, TypeError, ValueError, IndexError):
        return 224


def _inputs(name, batch, size):
    if name in torch_detection():
        # Their own transform normalises.
        image, fed = data.images(batch, size, size, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        return (list(image),), fed
    if name.startswith("raft"):
        # Two frames, sides divisible by 8 and at least 128.
        side = max(128, size // 8 * 8)
        frames, fed = data.images(2, side, side, (0.5,) * 3, (0.5,) * 3)
        return (frames[:1].repeat(batch, 1, 1, 1), frames[1:].repeat(batch, 1, 1, 1)), fed
    if name.startswith(("r3d", "mc3", "r2plus1d", "s3d", "mvit", "swin3d")):
        # 16 frames: a window that moves over one photograph.
        side = min(size, 112) if name.startswith(("r3d", "mc3", "r2plus1d")) else 224
        wide, fed = data.images(batch, side, side + 32)
        frames = torch.stack([wide[..., 2 * t : 2 * t + side] for t in range(16)], dim=2)
        return (frames,), f"{fed}, as 16 frames of {side}x{side}"
    image, fed = data.images(batch, size, size)
    return (image,), fed


def torch_detection():
    """Names of the detection models, which take a list of images."""
    from torchvision.models import detection, list_models

    return set(list_models(module=detection))
