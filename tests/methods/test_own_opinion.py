"""Every method judges samples that it was not trained on. Those that know only the training samples warn.

Oracles: the opinion by the losses; the source of each method, which asks for that opinion or does not.
"""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import TinyData, tiny_nets

from dividemix.engine.state import State
from dividemix.errors import DegenerateDivisionWarning, OtherOpinionWarning
from dividemix.methods import METHODS, loop
from dividemix.methods.evaluation import judge_by_loss
from dividemix.methods.method import TrainingSets
from dividemix.planning.job import own_fields

IMAGES = [name for name, method in METHODS.items() if not method.needs_vectors]


def has_own_opinion(name: str) -> bool:
    """Whether the method has an opinion of the training samples alone."""
    source = Path(str(import_module(f"dividemix.methods.{name}").__file__)).read_text(encoding="utf-8")
    return "judge_without_own_opinion(" in source or "judge_by_soft_labels(" in source


@pytest.mark.parametrize("name", IMAGES)
def test_held_out_samples_are_judged_and_where_by_the_losses_with_a_warning(name: str) -> None:
    method, data, more = METHODS[name], TinyData(40), TinyData(50)
    fields: dict[str, Any] = {"warmup_epochs": 1} if "warmup_epochs" in own_fields(name) else {}
    s = method.settings(epochs=8, batch_size=4, lr=0.05, **fields)
    state = State.start(tiny_nets(num_nets=method.num_nets(s)), s)
    sets = TrainingSets(data, TinyData(6, noise=0.0) if method.needs_trusted else None)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("ignore", DegenerateDivisionWarning)
        loop.start(method, state, sets, s)
        list(loop.fit(method, state, sets, s))
        expected = judge_by_loss(state, more).clean_prob
        warnings.simplefilter("always", OtherOpinionWarning)
        judged = method.judge(state, more, s)
    assert judged.clean_prob.shape == judged.losses.shape == (method.num_nets(s), 50)
    words = [str(one.message) for one in warned if issubclass(one.category, OtherOpinionWarning)]
    assert len(words) == has_own_opinion(name)
    if words:
        assert "samples are held out" in words[0]
        assert torch.equal(judged.clean_prob, expected)


def test_some_methods_have_an_own_opinion() -> None:
    assert {"pencil", "joint_optim", "forward_correction"} <= {name for name in IMAGES if has_own_opinion(name)}
