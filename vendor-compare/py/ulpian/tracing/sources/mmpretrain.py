"""mmpretrain's models with random weights, on photographs.

mmpretrain 1.2.0 runs under torch 2.11 with mmengine 0.10.7 and mmcv-lite 2.2.0.
"""

import contextlib
import importlib
import warnings

from .. import data
from ..subject import SourceError, Subject
from . import require, suggest

_REMEDY = (
    "pip install torchvision addict einops mat4py modelindex rich yapf termcolor matplotlib importlib-metadata "
    "opencv-python-headless, then pip install --no-deps mmengine==0.10.7 mmcv-lite==2.2.0 mmpretrain==1.2.0"
)


def _package():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require("mmpretrain", _REMEDY)


def names():
    """Every model's name."""
    return _package().list_models()


def load(name, options):
    """The model of this name."""
    package = _package()
    if name not in package.list_models():
        raise suggest(name, package.list_models(), "mmpretrain")
    _open_attention()
    model = package.get_model(name, pretrained=False)
    size = options.image_size or _crop(model)
    mean, std = _normalisation(model)
    image, fed = data.images(options.batch, size, size, mean, std)
    call = _forward(model, image)
    return Subject(
        model,
        args=call[0],
        kwargs=call[1],
        weights=f"random, seed {options.seed} (mmpretrain {package.__version__})",
        data=fed,
        random=True,
    )


def _open_attention():
    """Its own formula for attention in place of PyTorch's fused one, so that the products and the softmax are seen. Modules take
    it when they are made."""
    with contextlib.suppress(ImportError, AttributeError):
        module = importlib.import_module("mmpretrain.models.utils.attention")
        module.scaled_dot_product_attention = module.scaled_dot_product_attention_pyimpl


def _forward(model, image):
    """How a model of this kind is called on images: the classifiers' logits, else the backbone's features."""
    head = getattr(model, "head", None)
    if type(model).__name__ in ("ImageClassifier", "HuggingFaceClassifier", "TimmClassifier") and head is not None:
        return (image,), {"mode": "tensor"}
    if hasattr(model, "backbone"):
        return (image,), {"mode": "tensor"}
    raise SourceError(
        f"a {type(model).__name__} takes more than images", "choose a classifier, or write a factory for it"
    )


def _crop(model):
    """The side that the model's own test pipeline cuts images to."""
    config = getattr(model, "_config", None)
    pipelines = []
    if config is not None:
        loader = config.get("test_dataloader") or {}
        dataset = loader.get("dataset") or {}
        pipelines = [config.get("test_pipeline"), dataset.get("pipeline"), config.get("train_pipeline")]
    for pipeline in pipelines:
        for step in reversed(pipeline or []):
            for key in ("crop_size", "scale"):
                size = step.get(key)
                if isinstance(size, (list, tuple)):
                    size = size[0]
                if isinstance(size, int):
                    return size
    return 224


def _normalisation(model):
    """Mean and standard deviation for images in [0, 1], as the model's own preprocessor has them for [0, 255]."""
    preprocessor = getattr(model, "data_preprocessor", None)
    mean, std = getattr(preprocessor, "mean", None), getattr(preprocessor, "std", None)
    if mean is None or std is None or mean.numel() != 3:
        return data.IMAGENET_MEAN, data.IMAGENET_STD
    return tuple((mean.flatten() / 255).tolist()), tuple((std.flatten() / 255).tolist())
