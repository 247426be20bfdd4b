"""Fuzzed calls from Python: settings and functions with arguments of any kind."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from refused import Drawn, refused_or_fine
from toys import SETTINGS, toy_arrays

import dividemix
from dividemix.estimator import DivideMixClassifier
from dividemix.methods import METHODS
from dividemix.model.model import Model
from dividemix.planning.job import JOB_FIELDS, Job
from dividemix.settings import fields_of


class Bomb:
    """Unpickled, it creates the file RAN."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch RAN",)


_VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 10**400, 1e308, float("nan"), "", "x", "auto", b"x", [], {}, (), object(), np.array(3)),
    *(
        np.float32(2),
        np.int64(3),
        torch.tensor(2),
        Path("run"),
        Path(),
        {"a": 1},
        [1, 2],
        "symmetric:0.5",
        "1e3",
        Bomb(),
    ),
)


@st.composite
def setting_calls(draw: st.DrawFn) -> Drawn:
    """A job with values of any kind for some settings."""
    method = draw(st.sampled_from(sorted(METHODS)))
    names = [*JOB_FIELDS, *fields_of(METHODS[method].settings)]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    values = {
        name: draw(st.sampled_from(_VALUES) | st.integers() | st.floats() | st.text(max_size=20)) for name in chosen
    }
    return refused_or_fine(values, lambda: Job.of({"data": "toy.npz", "method": method} | values).to_yaml())


@st.composite
def python_calls(draw: st.DrawFn) -> Drawn:
    """A function of the Python interface with some arguments of any kind."""
    arrays = toy_arrays()
    x, y = arrays["x_train"], arrays["y_train"]
    value = st.sampled_from(_VALUES)
    extra: dict[str, Any] = {"epochs": 1, "warmup_epochs": 1, "progress": False, "out": "new"}
    names = (
        *("out", "preset", "minutes", "overwrite", "progress", "keep_data", "true_labels", "test", "test_labels"),
        *("classes", "image_size", "memory_gb", "noise", "method", "holdout", "labels", "data", "seed", "lr"),
        *("target", "key", "numeric", "categorical", "drop_columns", "text_column", "annotators", "encoder"),
    )
    rows = [{"size": float(i % 5), "shape": "ab"[i % 2], "label": int(label)} for i, label in enumerate(y)]
    texts, vectors = [f"thing {label} {i % 3}" for i, label in enumerate(y)], x.reshape(len(x), -1).astype(np.float32)
    which = draw(st.sampled_from(["train", "issues", "model", "predict", "run", "classifier", "fit"]))
    changes = {
        name: draw(value) for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    }
    one, two = draw(value), draw(value)
    linear: dict[str, Any] = {"epochs": 1, "progress": False, "out": "new", "method": "cross_entropy", "device": "cpu"}
    kinds: tuple[dict[str, Any], ...] = (
        {"data": x, "labels": y} | SETTINGS | extra,
        {"data": texts, "labels": y} | linear,
        {"data": vectors, "labels": y} | linear,
        {"data": rows, "target": "label", "learner": "extra_trees", "num_trees": 2}
        | {"epochs": 2, "progress": False, "out": "new"},
    )
    given = draw(st.sampled_from(kinds)) | changes
    if which == "train":
        return refused_or_fine((which, changes), lambda: dividemix.train(**given))
    if which == "issues":
        return refused_or_fine(
            (which, changes), lambda: dividemix.find_label_issues(**{k: v for k, v in given.items() if k != "out"})
        )
    if which == "model":
        return refused_or_fine((which, one, two), lambda: Model.from_pretrained(one, two))
    if which == "predict":
        return refused_or_fine(
            (which, one, two), lambda: Model.from_pretrained("model", "cpu").predict_proba(one, batch_size=two)
        )
    if which == "run":
        return refused_or_fine((which, one), lambda: dividemix.Run.load(one))
    settings_of = SETTINGS | {"epochs": 1, "warmup_epochs": 1}
    own = dict.fromkeys(draw(st.lists(st.sampled_from(sorted(settings_of)), max_size=1)), one)
    data = (one if draw(st.booleans()) else x, two if draw(st.booleans()) else y)
    if which == "classifier":
        return refused_or_fine((which, own), lambda: DivideMixClassifier(**{**settings_of, **own}).fit(x, y))
    return refused_or_fine((which, one, two), lambda: DivideMixClassifier(**settings_of).fit(*data))
