"""The path of regularisation. Oracle: the likelihood of labels not seen, for every strength of the path."""

from typing import Any

import numpy as np
import pytest
import torch
from test_robust_vectors import SHORT, blobs, data_of, started

from dividemix.data.features import FeatureData
from dividemix.engine.state import State
from dividemix.methods import regularisation_path
from dividemix.methods.fold_heads import Folded, out_of_sample, train_heads
from dividemix.methods.robust_vectors import RobustVectorsSettings

NUM_STEPS = 8
LAMS = [10 * (3e-4 / 10) ** (k / (NUM_STEPS - 1)) for k in range(NUM_STEPS)]


def random_labels() -> FeatureData:
    """More features than samples, and labels drawn at random: weak regularisation learns them by heart."""
    rng = np.random.default_rng(0)
    return data_of(rng.normal(size=(60, 80)), rng.integers(3, size=60))


def walked(data: FeatureData, num_steps: int = NUM_STEPS) -> tuple[State, Folded, list[dict[str, float]]]:
    state = started(data, RobustVectorsSettings(**SHORT))
    folded = Folded(
        data.features, data.labels, state.buffers["folds"], 5, state.buffers["axes"], state.buffers["spread"]
    )
    figures = []
    with torch.no_grad():
        for state.epoch in range(num_steps):
            figures.append(dict(regularisation_path.path_step(state, folded, num_steps, 15).figures))
    return state, folded, figures


@pytest.mark.parametrize("data", [blobs(), random_labels()])
def test_the_heads_under_which_labels_not_seen_are_likeliest_are_kept(data: FeatureData) -> None:
    state, folded, figures = walked(data)
    heads, likelihoods, kept = torch.zeros_like(state.buffers["heads"]), [], []
    for lam in LAMS:
        heads = train_heads(heads, folded, lam, torch.eye(3), 15)
        likelihoods.append(out_of_sample(heads, folded).gather(1, data.labels[:, None]).double().mean().item())
        kept.append(heads)
        if len(likelihoods) - int(np.argmax(likelihoods)) > 2:  # two steps without a better one
            break
    best = int(np.argmax(likelihoods))
    assert torch.equal(state.buffers["heads"], kept[best])
    assert torch.equal(state.buffers["best_heads"], kept[best])
    assert figures[-1]["regularisation"] == state.buffers["best_lam"].item() == pytest.approx(LAMS[best])
    mean = kept[best].mean(dim=0)
    torch.testing.assert_close(state.nets[0].state_dict()["head.weight"], mean[:-1].T)


def test_after_two_steps_for_the_worse_no_heads_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def watched(heads: Any, data: Any, lam: float, *rest: Any) -> Any:
        asked.append(lam)
        return train_heads(heads, data, lam, *rest)

    monkeypatch.setattr(regularisation_path, "train_heads", watched)
    _, _, figures = walked(random_labels())
    best = LAMS.index(pytest.approx(figures[-1]["regularisation"]))
    assert asked == pytest.approx(LAMS[: best + 3])
    assert len(asked) < NUM_STEPS


def test_a_path_of_one_step_has_the_strength_in_the_middle() -> None:
    _, _, figures = walked(blobs(), 1)
    assert figures[0]["regularisation"] == pytest.approx((10 * 3e-4) ** 0.5)
