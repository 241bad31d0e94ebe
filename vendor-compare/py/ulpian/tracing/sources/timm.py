"""timm's models with random weights, on photographs."""

from .. import data
from ..subject import Subject
from . import require, suggest


def names():
    """Every model's name."""
    return require("timm").list_models()


def load(name, options):
    """The model of this name. Attention is computed by its own formula, so that its products and its softmax are seen."""
    timm = require("timm")
    if not timm.is_model(name):
        raise suggest(name, timm.list_models(), "timm")
    timm.layers.set_fused_attn(False)
    model = timm.create_model(name, pretrained=False)
    config = timm.data.resolve_model_data_config(model)
    _, height, width = config["input_size"]
    if options.image_size:
        height = width = options.image_size
    image, fed = data.images(options.batch, height, width, config["mean"], config["std"])
    return Subject(
        model,
        args=(image,),
        weights=f"random, seed {options.seed} (timm {timm.__version__})",
        data=fed,
        random=True,
    )
