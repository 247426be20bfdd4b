"""One pass over samples, and judgements by a mixture. Oracles: each net alone, sample by sample, and loops of EM."""

import math

import oracles
import pytest
import torch
from tiny import NUM_CLASSES, TinyData, fit, start, tiny_nets

from dividemix.algorithm.ensemble import predict_probs
from dividemix.algorithm.settings import MixtureName
from dividemix.engine.state import State
from dividemix.methods import METHODS
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.evaluation import evaluate, judge_by_loss, strongest_rivals
from dividemix.methods.method import MethodSettings


def untrained(num_nets: int = 2) -> State:
    return State.start(tiny_nets(num_nets=num_nets), MethodSettings())


def low_posterior(values: list[float], mixture: MixtureName) -> list[float]:
    """w_i by loops."""
    if mixture == "gaussian":
        return oracles.low_posterior(values)
    return oracles.beta_low_posterior(oracles.beta_expectation_maximisation(values), values)


def test_an_evaluation_keeps_each_sample_in_its_place_when_it_takes_several_batches() -> None:
    state, data = untrained(), TinyData(1025)
    seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
    assert seen.losses.shape == seen.rivals.shape == seen.rival_losses.shape == (2, 1025)
    assert seen.pred_probs is not None
    assert seen.pred_probs.shape == (1025, NUM_CLASSES)
    assert data.num_passes == 1
    for i in (0, 1, 341, 342, 511, 512, 1023, 1024):
        label, probs = int(data.labels[i]), []
        for k, net in enumerate(state.nets):
            row, rival = net.eval()(data.images[i : i + 1])[0].tolist(), int(seen.rivals[k, i])
            logs = oracles.log_softmax(row)
            assert float(seen.losses[k, i]) == pytest.approx(-logs[label], rel=1e-9)
            assert row[rival] == max(value for c, value in enumerate(row) if c != label)
            assert rival != label
            assert float(seen.rival_losses[k, i]) == pytest.approx(-logs[rival], rel=1e-9)
            probs.append([math.exp(value) for value in logs])
        together = [(a + b) / 2 for a, b in zip(*probs, strict=True)]
        assert seen.pred_probs[i].tolist() == pytest.approx(together, rel=1e-6)


def test_some_samples_are_evaluated_as_they_are_among_all() -> None:
    state, data, some = untrained(), TinyData(), torch.tensor([3, 4, 17, 39])
    everyone = evaluate(state, data, torch.arange(len(data.labels)))
    seen = evaluate(state, data, some)
    torch.testing.assert_close(seen.losses, everyone.losses[:, some])
    torch.testing.assert_close(seen.rival_losses, everyone.rival_losses[:, some])
    assert torch.equal(seen.rivals, everyone.rivals[:, some])
    assert seen.pred_probs is None  # only kept if asked for


def test_an_evaluation_asks_the_running_mean_where_there_is_one() -> None:
    state, data = untrained(), TinyData()
    state.learners[1].average = tiny_nets(num_nets=3)[2]
    seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
    expected = predict_probs([state.nets[0], state.learners[1].average], data)
    torch.testing.assert_close(seen.losses, -expected.log()[:, torch.arange(len(data.labels)), data.labels])
    assert seen.pred_probs is not None
    torch.testing.assert_close(seen.pred_probs, expected.mean(dim=0).float())


def test_the_strongest_rival_is_never_the_label_itself() -> None:
    scores = torch.tensor([[[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], [[0.0, 0.0, 9.0], [-5.0, -4.0, -3.0]]])
    assert strongest_rivals(scores, torch.tensor([0, 2])).tolist() == [[1, 0], [2, 1]]


@pytest.mark.parametrize("num_nets", [1, 2])
@pytest.mark.parametrize("mixture", ["gaussian", "beta"])
def test_judged_by_loss_each_net_has_the_opinion_of_its_own_mixture(mixture: MixtureName, num_nets: int) -> None:
    """Oracle: each net's losses by hand, normalised, and the posterior by loops. No net judges for another."""
    state, data = untrained(num_nets), TinyData()
    found = judge_by_loss(state, data, mixture)
    assert found.pred_probs.dtype == torch.float32
    assert found.losses.dtype == found.clean_prob.dtype == torch.float64
    torch.testing.assert_close(found.pred_probs, predict_probs(state.nets, data).mean(dim=0).float())
    for k, net in enumerate(state.nets):
        rows = net.eval()(data.images).tolist()
        losses = [-oracles.log_softmax(row)[label] for row, label in zip(rows, data.labels.tolist(), strict=True)]
        assert found.losses[k].tolist() == pytest.approx(losses, rel=1e-9)
        expected = low_posterior(oracles.min_max(losses), mixture)
        assert found.clean_prob[k].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("mixture", ["gaussian", "beta"])
def test_dividemix_judges_by_the_mixture_that_divides(mixture: MixtureName) -> None:
    """Oracle: the loops, over each net's losses after training. Judging changes nothing."""
    method, data = METHODS["dividemix"], TinyData()
    s = DivideMixSettings(epochs=3, warmup_epochs=2, batch_size=4, lr=0.05, mixture=mixture)
    state = start(method, s, data)
    list(fit(method, state, data, s))
    before = {name: tensor.clone() for name, tensor in state.tensors().items()}
    found = method.judge(state, data, s)
    assert found.clean_prob.shape == (2, len(data.labels))
    for losses, clean_prob in zip(found.losses.tolist(), found.clean_prob.tolist(), strict=True):
        assert clean_prob == pytest.approx(low_posterior(oracles.min_max(losses), mixture), abs=1e-6)
    assert not torch.allclose(found.clean_prob[0], found.clean_prob[1])
    assert all(torch.equal(tensor, before[name]) for name, tensor in state.tensors().items())


def test_a_method_without_an_opinion_of_its_own_judges_by_gaussians() -> None:
    method, data = METHODS["cross_entropy"], TinyData()
    s = MethodSettings(epochs=2, batch_size=4, lr=0.05)
    state = start(method, s, data)
    list(fit(method, state, data, s))
    found = method.judge(state, data, s)
    assert found.clean_prob.shape == (1, len(data.labels))
    expected = low_posterior(oracles.min_max(found.losses[0].tolist()), "gaussian")
    assert found.clean_prob[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_equal_losses_judge_every_label_right() -> None:
    state, data = untrained(num_nets=1), TinyData()
    for parameter in state.nets[0].parameters():
        parameter.data.zero_()
    assert judge_by_loss(state, data).clean_prob.tolist() == [[1.0] * len(data.labels)]
