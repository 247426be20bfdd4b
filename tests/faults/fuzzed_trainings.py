"""Fuzzed trainings: `dividemix train` with allowed values at the ends of their ranges, so that most of them train.

Oracle: whatever says that it trained has left a finished run, whose results and model can be read.
"""

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from other_samples import ROWS, TEXTS, VECTORS, VOTES
from refused import Drawn, shown
from toys import SETTINGS

from dividemix.cli import main
from dividemix.judging.issue_table import read_issue_table
from dividemix.methods import METHODS, find_method
from dividemix.model.model import Model
from dividemix.planning.job import JOB_FIELDS, known_to, own_fields
from dividemix.runs.run import Run
from dividemix.settings import Field, fields_of

# Of settings that multiply the time or the size of a net, small values: more of them is what the user asked for.
_SMALL: dict[str, tuple[Any, ...]] = {
    "epochs": (1, 2, 3, 5),
    "net_width": (1, 2, 3, 8),
    "image_size": (8, 9, 17),
    "num_views": (1, 2, 3),
    "num_trees": (1, 2, 7),
    "num_branches": (1, 2, 3),
    "num_rounds": (1, 2, 3),
    "balanced_batches": (0, 1, 2, 9),
    "net": ("small_cnn", "preact_resnet18", "mlp", "linear", "fourier", "trees"),
    "noise": (
        *("none", "symmetric:0", "symmetric:1", "symmetric_other:0.99", "asymmetric:1", "pair_flip:0.5"),
        *("instance:0", "instance:0.99", "symmetric:1e-9"),
    ),
}
# They need a network of texts, a GPU, a fresh process or minutes.
_LEFT_OUT = {"finetune", "max_tokens", "pretrained", "compile", "kernels", "reproducible"}
_EVERY_KIND = {"images": ["toy.npz"], "rows": ROWS, "texts": TEXTS, "vectors": VECTORS, "votes": VOTES}


def _edges(field: Field) -> tuple[Any, ...]:
    """Allowed values of a setting: the ends of its range, next to them, and far away."""
    if field.name in _SMALL:
        return _SMALL[field.name]
    if field.kind is bool:
        return True, False
    if field.words:
        return field.words
    if field.kind is int:
        some: tuple[Any, ...] = (0, 1, 2, 3, 7, 1000, 10**9, 2**62, field.low, field.high)
    else:
        far = (0.0, 1e-300, 1e-9, 0.1, 0.5, 1.0, 2.0, 1e3, 1e30, 1e300)
        some = (*far, field.low, field.high, np.nextafter(field.high, -math.inf), np.nextafter(field.low, math.inf))
    finite = [field.kind(value) for value in some if math.isfinite(value)]
    return tuple(value for value in finite if field.low <= value <= field.high and value > field.above)


def _base(kind: str, method: str) -> dict[str, Any]:
    """The settings of a quick training, those that the method has."""
    words = _EVERY_KIND[kind]
    if kind == "images":
        return known_to(method, SETTINGS | {"epochs": 2, "warmup_epochs": 1})
    given = {name.removeprefix("--"): value for name, value in zip(words[1::2], words[2::2], strict=True)}
    return known_to(method, {"epochs": 2, "batch_size": 8, "net_width": 4} | given) | {"method": method}


@st.composite
def trainings(draw: st.DrawFn) -> Drawn:
    """A quick training of some method, with one to four of its settings at an edge."""
    kind = draw(st.sampled_from(["images", "images", *_EVERY_KIND]))
    methods = [name for name in sorted(METHODS) if kind not in ("images", "votes") or not METHODS[name].needs_vectors]
    method = draw(st.sampled_from(methods))
    settings = _base(kind, method) | {"method": method, "compile": "never", "kernels": "torch", "device": "cpu"}
    if find_method(method).needs_trusted:
        settings["trusted"] = "toy.npz" if kind == "images" else _EVERY_KIND[kind][0]
    fields = {**JOB_FIELDS, **fields_of(METHODS[method].settings)}
    every = sorted(name for name, field in fields.items() if name not in _LEFT_OUT and not _is_free_text(field))
    own = [name for name in every if name in own_fields(method)]
    names = draw(st.lists(st.sampled_from(every) | st.sampled_from(own or every), min_size=1, max_size=4, unique=True))
    settings |= {name: draw(st.sampled_from(_edges(fields[name]))) for name in names}
    words = ["train", _EVERY_KIND[kind][0]]
    for name, value in (settings | {"out": "edges"}).items():
        words += [f"--{name}", str(value).lower() if isinstance(value, bool) else str(value)]
    return shown(words), lambda: _train_and_read([*words, "--overwrite"])


def _is_free_text(field: Field) -> bool:
    """Such as a path or a name, which are fuzzed as flags."""
    return field.kind is str and not field.words and field.name not in _SMALL


def _train_and_read(words: list[str]) -> int | None:
    """Train, and read what a training that ended well has left."""
    code = main(words)
    if code == 0:
        run = Run.load("edges", to_train=False)
        assert run.finished
        probs = np.load(run.directory.path / "pred_probs.npy")
        assert len(read_issue_table(run.directory.path)) == len(probs) > 0
        assert np.allclose(probs.sum(axis=1), 1, atol=1e-3)
        Model.from_pretrained("edges", "cpu")
    return code
