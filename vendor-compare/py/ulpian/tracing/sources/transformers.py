"""Architectures of transformers with random weights at their default size, on texts, photographs and sound.

A name is a model type (`bert`) or a configuration class (`BertConfig`); `?key=value&…` changes its fields, as in
`transformers:llama?num_hidden_layers=2`.
"""

import json

import torch

from .. import data
from ..subject import SourceError, Subject
from . import require, suggest

# More parameters than this would take gigabytes and minutes for layers that are all alike.
MAX_PARAMETERS = 500_000_000
# Tokens of a text.
LENGTH = 64


def names():
    """Every model type that AutoModel knows."""
    require("transformers")
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return sorted(MODEL_MAPPING_NAMES)


def load(name, options):
    """The architecture of this name."""
    transformers = require("transformers")
    transformers.logging.set_verbosity_error()
    name, _, changes = name.partition("?")
    config = _config(transformers, name, changes)
    config._attn_implementation = "eager"
    # Where a type has several models, the list that names the wanted one may not be absent.
    config.architectures = config.architectures or []
    with torch.device("meta"):
        parameters = sum(p.numel() for p in _model(transformers, config).parameters())
    if parameters > MAX_PARAMETERS:
        raise SourceError(
            f"{name} has {parameters / 1e6:.0f} million parameters at its default size, more than {MAX_PARAMETERS // 10**6}",
            f"make it smaller, as in transformers:{name}?num_hidden_layers=2",
        )
    model = _model(transformers, config)
    kwargs, fed = _inputs(model, config, options)
    return Subject(
        model,
        kwargs=kwargs,
        weights=f"random, seed {options.seed} (transformers {transformers.__version__}"
        + (f", {changes})" if changes else ")"),
        data=fed,
        random=True,
    )


def _model(transformers, config):
    return transformers.AutoModel.from_config(config, attn_implementation="eager")


def _config(transformers, name, changes):
    fields = {}
    for change in filter(None, changes.split("&")):
        key, _, value = change.partition("=")
        try:
            fields[key] = json.loads(value)
        except ValueError:
            fields[key] = value
    try:
        if name.endswith("Config"):
            return getattr(transformers, name)(**fields)
        return transformers.AutoConfig.for_model(name, **fields)
    except (AttributeError, KeyError, ValueError) as error:
        if name in names() or name.endswith("Config") and hasattr(transformers, name):
            raise SourceError(f"the configuration of {name} cannot be made: {error}", "check the fields after `?`") from error
        raise suggest(name, names(), "transformers") from error


def _inputs(model, config, options):
    """Keyword arguments for the input that the model names as its main one."""
    batch = options.batch
    main = model.main_input_name
    vision = getattr(config, "vision_config", None)
    words = getattr(config, "text_config", None) or config
    if main == "pixel_values" and vision is None:
        size = options.image_size or getattr(config, "image_size", 224) or 224
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        pixels, fed = data.images(batch, height, width, (0.5,) * 3, (0.5,) * 3)
        channels = getattr(config, "num_channels", 3)
        return {"pixel_values": pixels[:, :channels]}, fed
    if main == "input_values":
        wave, fed = data.sound(batch, 16_000)
        return {"input_values": (wave - wave.mean()) / wave.std()}, fed
    if main == "input_ids" or vision is not None:
        length = min(LENGTH, getattr(words, "max_position_embeddings", LENGTH) or LENGTH)
        ids, fed = data.token_ids(batch, length, words.vocab_size)
        kwargs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if config.is_encoder_decoder:
            kwargs["decoder_input_ids"] = ids[:, : length // 2]
        if vision is not None:
            size = options.image_size or vision.image_size
            kwargs["pixel_values"], seen = data.images(batch, size, size, (0.5,) * 3, (0.5,) * 3)
            fed = f"{fed}; {seen}"
        return kwargs, fed
    raise SourceError(
        f"a {type(model).__name__} takes `{main}`, for which there is no data here",
        "write a factory that returns (model, inputs)",
    )
