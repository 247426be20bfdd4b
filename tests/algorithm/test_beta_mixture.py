"""The Beta mixture against loops from the equations of Arazo et al. (2019), and against what it was drawn from."""

import math

import numpy as np
import oracles
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from dividemix.algorithm.beta_mixture import Betas, fit_betas

GRID = torch.linspace(0, 1, 501, dtype=torch.float64)
# Not below the clip, where values that differ become one.
VALUES = st.lists(st.floats(0, 1), min_size=2, max_size=30)


def draw(seed: int, num_values: int, *parts: tuple[float, float, float]) -> Tensor:
    """Values from Beta distributions, each given as (weight, alpha, beta)."""
    rng = np.random.default_rng(seed)
    counts = [round(weight * num_values) for weight, _, _ in parts]
    drawn = [rng.beta(a, b, size=count) for count, (_, a, b) in zip(counts, parts, strict=True)]
    return torch.from_numpy(rng.permutation(np.concatenate(drawn)))


SHAPES: dict[str, Tensor] = {
    "well apart": draw(1, 200, (0.6, 2, 20), (0.4, 12, 4)),
    "overlapping": draw(2, 200, (0.5, 2, 5), (0.5, 4, 3)),
    "peak and tail": draw(3, 200, (0.9, 0.3, 8), (0.1, 2, 2)),
    "narrow in broad": draw(4, 200, (0.5, 60, 140), (0.5, 1, 1)),
    "mostly large": draw(5, 200, (0.1, 1, 9), (0.9, 9, 2)),
    "uniform": draw(6, 100, (1.0, 1, 1)),
    "ends included": torch.tensor([0.0, 0.0, 0.01, 0.02, 0.1, 0.4, 0.8, 0.9, 1.0, 1.0], dtype=torch.float64),
    "ties": torch.tensor([0.0, 0.25, 0.25, 0.25, 0.5, 0.5, 0.75, 1.0] * 5, dtype=torch.float64),
}


def pair_of(mixture: Betas) -> oracles.BetaPair:
    return oracles.BetaPair(mixture.weights.tolist(), mixture.alphas.tolist(), mixture.betas.tolist())


def means_of(mixture: Betas) -> list[float]:
    return (mixture.alphas / (mixture.alphas + mixture.betas)).tolist()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("num_iters", [1, 2, 10])
def test_parameters_and_posterior_are_those_of_the_loops(shape: str, num_iters: int) -> None:
    values = SHAPES[shape]
    mixture = fit_betas(values, num_iters=num_iters)
    expected = oracles.beta_expectation_maximisation(values.tolist(), num_iters=num_iters)
    order = np.argsort([a / (a + b) for a, b in zip(expected.alphas, expected.betas, strict=True)])
    for found, wanted in zip((mixture.weights, mixture.alphas, mixture.betas), expected, strict=True):
        assert found.dtype == torch.float64
        assert found.tolist() == pytest.approx([wanted[k] for k in order], rel=1e-7)
    posterior = oracles.beta_low_posterior(expected, GRID.tolist())
    assert mixture.low_prob(GRID).tolist() == pytest.approx(posterior, abs=1e-4)  # the oracle's grid is that coarse


def test_ten_iterations_from_the_triangles() -> None:
    values = SHAPES["overlapping"]
    start = fit_betas(values, num_iters=0)
    assert pair_of(start) == oracles.BetaPair([0.5, 0.5], [1.0, 2.0], [2.0, 1.0])
    assert pair_of(fit_betas(values)) == pair_of(fit_betas(values, num_iters=10))
    assert pair_of(fit_betas(values)) != pair_of(fit_betas(values, num_iters=9))


@pytest.mark.parametrize(
    "parts", [((0.7, 2, 14), (0.3, 9, 3)), ((0.4, 1, 9), (0.6, 6, 6)), ((0.5, 5, 30), (0.5, 30, 20))]
)
def test_what_it_was_drawn_from_is_found_again(parts: tuple[tuple[float, float, float], ...]) -> None:
    """The true mixture has its own weighted moments, so that EM stays there: many samples, many iterations."""
    mixture = fit_betas(draw(7, 40_000, *parts), num_iters=300)
    weights, alphas, betas = zip(*parts, strict=True)
    assert mixture.weights.tolist() == pytest.approx(weights, abs=0.02)
    assert mixture.alphas.tolist() == pytest.approx(alphas, rel=0.1)
    assert mixture.betas.tolist() == pytest.approx(betas, rel=0.1)


@pytest.mark.parametrize("shape", SHAPES)
def test_densities_are_the_weighted_components(shape: str) -> None:
    """Oracle: the densities written out, at values moved away from the ends."""
    mixture = fit_betas(SHAPES[shape])
    densities = mixture.densities(GRID)
    assert densities.shape == (2, len(GRID))
    assert densities.isfinite().all()
    expected = [[math.exp(entry) for entry in oracles.beta_log_joint(pair_of(mixture), x)] for x in GRID.tolist()]
    torch.testing.assert_close(densities.T, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12)


def test_what_is_under_the_densities_is_the_weights() -> None:
    mixture = fit_betas(SHAPES["well apart"])
    fine = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    torch.testing.assert_close(torch.trapezoid(mixture.densities(fine), fine), mixture.weights, rtol=0, atol=1e-3)


def made(weights: list[float], alphas: list[float], betas: list[float]) -> Betas:
    return Betas(*(torch.tensor(row, dtype=torch.float64) for row in (weights, alphas, betas)))


TURNING = {
    "broad low: falls, then rises": (made([0.5, 0.5], [1.0, 30.0], [3.0, 20.0]), "smallest"),
    "broad high: rises, then falls": (made([0.5, 0.5], [20.0, 1.0], [60.0, 1.0]), "largest"),
}


@pytest.mark.parametrize("case", TURNING)
def test_the_posterior_is_held_where_it_would_rise(case: str) -> None:
    """Oracle: Bayes' rule, held beyond its turning point, which is looked for on a grid."""
    mixture, turn = TURNING[case]
    densities = mixture.densities(GRID)
    plain = densities[0] / densities.sum(dim=0)
    inner = plain[1:-1]
    at = 1 + int(inner.argmin() if turn == "smallest" else inner.argmax())
    assert 1 < at < len(GRID) - 2  # there is something to hold
    low_prob = mixture.low_prob(GRID)
    held, kept = (slice(at, None), slice(None, at)) if turn == "smallest" else (slice(None, at), slice(at, None))
    torch.testing.assert_close(low_prob[kept], plain[kept], rtol=0, atol=1e-4)
    torch.testing.assert_close(low_prob[held], plain[at].expand_as(low_prob[held]), rtol=0, atol=1e-4)
    assert low_prob.tolist() == pytest.approx(oracles.beta_low_posterior(pair_of(mixture), GRID.tolist()), abs=1e-4)


def test_without_a_turning_point_the_posterior_is_bayes_rule() -> None:
    mixture = made([0.6, 0.4], [2.0, 6.0], [9.0, 3.0])
    densities = mixture.densities(GRID)
    torch.testing.assert_close(mixture.low_prob(GRID), densities[0] / densities.sum(dim=0), rtol=0, atol=1e-12)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(VALUES)
def test_any_values_have_a_mixture_and_a_falling_posterior(listed: list[float]) -> None:
    """However few, tied, or near the ends: numbers everywhere, a distribution, the smaller mean first."""
    assume(min(listed) < max(listed))
    mixture = fit_betas(torch.tensor(listed, dtype=torch.float64))
    for row in (mixture.weights, mixture.alphas, mixture.betas):
        assert row.shape == (2,)
        assert row.isfinite().all()
        assert (row > 0).all()
    assert float(mixture.weights.sum()) == pytest.approx(1, abs=1e-12)
    low, high = means_of(mixture)
    assert low <= high
    low_prob = mixture.low_prob(GRID)
    assert ((low_prob >= 0) & (low_prob <= 1)).all()
    assert (low_prob.diff() <= 1e-6).all()
    assert mixture.densities(GRID).isfinite().all()


@pytest.mark.parametrize("listed", [[0.0, 1.0], [0.1, 0.7], [0.0] * 50 + [1.0], [0.0] + [1.0] * 50])
def test_two_heaps_are_told_apart(listed: list[float]) -> None:
    values = torch.tensor(listed, dtype=torch.float64)
    low_prob = fit_betas(values).low_prob(values)
    assert (low_prob[values == values.min()] > 0.5).all()
    assert (low_prob[values == values.max()] < 0.5).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_order_of_values_does_not_matter(shape: str) -> None:
    values = SHAPES[shape]
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        fit_betas(values[order]).low_prob(GRID), fit_betas(values).low_prob(GRID), rtol=0, atol=1e-8
    )


def test_float32_values_are_worked_on_in_float64() -> None:
    values = SHAPES["overlapping"].float()
    assert fit_betas(values).low_prob(values).dtype == torch.float64
    torch.testing.assert_close(fit_betas(values).low_prob(values), fit_betas(values.double()).low_prob(values.double()))


@pytest.mark.parametrize("listed", [[0.5], [0.0, 0.0], [0.3] * 50, [0.0] * 9, [1.0] * 9])
def test_equal_values_are_refused(listed: list[float]) -> None:
    with pytest.raises(ValueError, match="all values are equal"):
        fit_betas(torch.tensor(listed))
