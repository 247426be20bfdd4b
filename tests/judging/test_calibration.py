"""Calibration. Oracles: samples drawn from a known noise matrix and known probabilities; slow loops."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dividemix.judging import calibration
from dividemix.judging.calibration import calibrate, noise_matrix

N, C = 6000, 4
NOISE = np.array([[0.6, 0.3, 0.1, 0.0], [0.1, 0.8, 0.0, 0.1], [0.0, 0.0, 1.0, 0.0], [0.1, 0.1, 0.1, 0.7]])


def drawn(temperature: float, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Samples whose true and given labels are drawn; predictions are the true probabilities at a temperature."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * rng.normal(size=(N, C))
    right = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    true = (right.cumsum(axis=1) > rng.random(N)[:, None]).argmax(axis=1)
    given = (NOISE[true].cumsum(axis=1) > rng.random(N)[:, None]).argmax(axis=1)
    shown = right ** (1 / temperature)
    joint = right * NOISE.T[given]
    clean = joint[np.arange(N), given] / joint.sum(axis=1)
    return {
        "probs": (shown / shown.sum(axis=1, keepdims=True)).astype(np.float32),
        "labels": given,
        "clean_prob": clean,  # the best opinion that there is
        "is_wrong": given != true,
    }


def unreliability(wrong_prob: NDArray[np.float64], is_wrong: NDArray[np.bool_]) -> float:
    """The mean distance, over ten bins, of what is expected and what is true."""
    bins = np.minimum((10 * wrong_prob).astype(int), 9)
    return sum(abs(float((wrong_prob - is_wrong)[bins == b].sum())) for b in range(10)) / len(bins)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_ninety_percent_sure_is_right_nine_times_in_ten(temperature: float) -> None:
    """Predictions that are too sure (0.5), right (1), or not sure enough (2) are put right."""
    case = drawn(temperature)
    found = calibrate(case["probs"], case["labels"], case["clean_prob"], np.arange(0, N, 3))
    assert found.temperature == pytest.approx(1 / temperature, rel=0.2)
    assert unreliability(found.wrong_prob, case["is_wrong"]) < 0.025
    if temperature != 1.0:
        joint = case["probs"] * NOISE.T[case["labels"]]  # without a temperature
        without = 1 - joint[np.arange(N), case["labels"]] / joint.sum(axis=1)
        assert unreliability(without, case["is_wrong"]) > 0.03
    assert found.low < case["is_wrong"].sum() < found.high
    assert found.expected == pytest.approx(case["is_wrong"].sum(), rel=0.1)


def test_an_opinion_that_exaggerates_widens_the_bounds_to_itself() -> None:
    case = drawn(1.0)
    sure = (case["clean_prob"] < 0.9).astype(np.float64)  # far too many look wrong
    found = calibrate(case["probs"], case["labels"], 1 - sure, np.arange(0, N, 3))
    assert found.low < found.expected
    assert found.high >= sure.sum()


@pytest.mark.parametrize("unseen", [None, np.arange(0), np.arange(99)])
def test_with_few_held_out_samples_the_opinion_is_taken_as_it_is(unseen: NDArray[np.int64] | None) -> None:
    case = drawn(0.5)
    found = calibrate(case["probs"], case["labels"], case["clean_prob"], unseen)
    assert found.temperature is None
    assert np.array_equal(found.wrong_prob, 1 - case["clean_prob"])
    wrong = 1 - case["clean_prob"]
    factor, chance = math.exp(1.645 * 0.2), 1.645 * math.sqrt((wrong * (1 - wrong)).sum())
    assert (found.low, found.high) == pytest.approx((wrong.sum() / factor - chance, wrong.sum() * factor + chance))


def test_predictions_that_use_the_label_are_not_calibrated() -> None:
    case = drawn(1.0)
    assert calibrate(None, case["labels"], case["clean_prob"], np.arange(N)).temperature is None


def test_the_matrix_is_that_of_a_slow_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {name: array[:50] for name, array in drawn(1.0).items()}
    probs, labels, clean = (case[name] for name in ("probs", "labels", "clean_prob"))
    counts = [[1 / C] * C for _ in range(C)]  # true, given
    for p, given, w in zip(probs.astype(float), labels, clean, strict=True):
        others = sum(p) - p[given]
        for true in range(C):
            counts[true][given] += w if true == given else (1 - w) * p[true] / others
    expected = [[value / sum(row) for value in row] for row in counts]
    assert noise_matrix(probs, labels, clean) == pytest.approx(np.array(expected))
    monkeypatch.setattr(calibration, "_BLOCK", 7 * C)  # in blocks
    assert noise_matrix(probs, labels, clean) == pytest.approx(np.array(expected))


def test_each_probability_is_bayes_rule() -> None:
    case = drawn(2.0)
    found = calibrate(case["probs"], case["labels"], case["clean_prob"], np.arange(0, N, 2))
    matrix = noise_matrix(case["probs"], case["labels"], case["clean_prob"])
    matrix = calibration._fitted(case["probs"][::2], case["labels"][::2], matrix)
    assert found.temperature is not None
    for i in range(0, N, 998):  # held out; the odds of the others have another factor
        powers = [float(p) ** (1 / found.temperature) for p in case["probs"][i]]
        joint = [power * matrix[true][case["labels"][i]] for true, power in enumerate(powers)]
        assert found.wrong_prob[i] == pytest.approx(1 - joint[case["labels"][i]] / sum(joint), abs=1e-5)


def test_labels_that_were_learned_by_heart_are_doubted_as_much_as_held_out_ones() -> None:
    """Predictions for seen samples that lean to their given labels hide wrong ones: the expected number must not."""
    case = drawn(1.0)
    unseen = np.arange(0, N, 3)
    is_seen = ~np.isin(np.arange(N), unseen)
    probs = case["probs"].copy()
    probs[is_seen] = 0.6 * probs[is_seen] + 0.4 * np.eye(C, dtype=np.float32)[case["labels"][is_seen]]
    found = calibrate(probs, case["labels"], case["clean_prob"], unseen)
    hidden = calibrate(probs, case["labels"], case["clean_prob"], np.arange(N))  # as if all were held out
    num_wrong = case["is_wrong"].sum()
    assert hidden.expected < 0.85 * num_wrong
    assert found.expected == pytest.approx(num_wrong, rel=0.1)
    assert found.wrong_prob[is_seen].mean() == pytest.approx(found.wrong_prob[~is_seen].mean(), abs=0.005)


def test_seen_samples_get_other_odds_by_one_factor() -> None:
    """With 100 held-out samples of deviation d the mean moves by 0.05^2 / (0.05^2 + d^2 / 100) of the difference."""
    rng = np.random.default_rng(0)
    before, unseen = rng.random(500) ** 2, np.arange(100)
    before[unseen] = rng.random(100)
    after = calibration._as_held_out(before, unseen)
    assert np.array_equal(after[unseen], before[unseen])
    seen, moved, held_out = before[100:], after[100:], before[unseen]
    belief = 0.0025 / (0.0025 + np.mean((held_out - held_out.mean()) ** 2) / 100)
    assert moved.mean() == pytest.approx(seen.mean() + belief * (held_out.mean() - seen.mean()))
    factors = moved / (1 - moved) / (seen / (1 - seen))
    assert factors == pytest.approx(factors[0])


def test_held_out_labels_tell_the_matrix_though_the_opinion_knows_no_noise() -> None:
    """The opinion believes every label. A few steps of EM bring the matrix to less than half of the distance."""
    case = drawn(1.0)
    opinion = np.full(N, 0.999)
    before = noise_matrix(case["probs"], case["labels"], opinion)
    assert np.abs(before - NOISE).max() > 0.3
    unseen = np.arange(0, N, 2)
    after = calibration._fitted(case["probs"][unseen], case["labels"][unseen], before)
    assert np.abs(after - NOISE).max() < 0.5 * np.abs(before - NOISE).max()
    found = calibrate(case["probs"], case["labels"], opinion, unseen)
    num_wrong = case["is_wrong"].sum()
    assert 0.7 * num_wrong < found.expected < 1.1 * num_wrong
    assert found.expected > 2 * calibrate(case["probs"], case["labels"], opinion, np.arange(N)).expected  # no EM


def test_sure_and_right_labels_are_hardly_suspected() -> None:
    labels = np.arange(600) % 3
    probs = np.full((600, 3), 0.005, dtype=np.float32)
    probs[np.arange(600), labels] = 0.99
    found = calibrate(probs, labels, np.full(600, 0.999), np.arange(150))
    assert found.high < 6
    assert found.low == 0
    assert calibrate(probs, labels, np.ones(600), None).high < 1e-6  # no doubt at all
