"""The estimated share of wrong labels. Oracles: the sum by hand from a judgement, and data whose noise is known."""

import pytest
import torch
from tiny import TinyData, fit, start, tiny_nets

from dividemix.engine.state import State
from dividemix.methods.cross_entropy import METHOD
from dividemix.methods.evaluation import judge_by_loss
from dividemix.methods.method import MethodSettings
from dividemix.methods.noise_estimate import estimated_noise_rate


def trained(data: TinyData, seed: int) -> State:
    s = MethodSettings(epochs=8, batch_size=4, lr=0.05, seed=seed)
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    return state


def test_it_is_the_mean_of_one_minus_w_where_prediction_and_label_differ() -> None:
    data = TinyData()
    state = State.start(tiny_nets(), MethodSettings())
    judged = judge_by_loss(state, data)
    total = 0.0
    for i, label in enumerate(data.labels.tolist()):
        if int(judged.pred_probs[i].argmax()) != label:
            total += 1 - float(judged.clean_prob[:, i].mean())
    assert estimated_noise_rate(state, data) == pytest.approx(total / len(data.labels), rel=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.2, 0.3])
def test_it_is_near_the_noise_of_separable_data(noise: float) -> None:
    data = TinyData(400, noise=noise)
    wrong = float((data.labels != torch.arange(400) % 3).double().mean())
    rates = [estimated_noise_rate(trained(data, seed), data) for seed in (1, 2, 3)]
    assert sum(rates) / 3 == pytest.approx(wrong, abs=0.08)
