"""MixMatch's pure functions against loops from Algorithm 1 (lines 17 to 21) and closed forms.

Mixup is read back from rows that are unit vectors: an output row then shows its lambda' and its partner.
"""

import math

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dividemix.algorithm.mixmatch import co_guess, co_refine, mixup, sharpen

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 6)
TEMPERATURES = st.floats(0.1, 2)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _probs(seed: int, *shape: int) -> Tensor:
    """Random distributions along the last axis, in float64, some of them sharp and some with exact zeros."""
    rng = np.random.default_rng(seed)
    weights = rng.random(shape) ** rng.uniform(0.2, 8, size=(*shape[:-1], 1)) * (rng.random(shape) > 0.1)
    weights[..., 0] += 1e-3  # no row of zeros only
    return torch.from_numpy(weights / weights.sum(-1, keepdims=True))


# sharpen


@settings(deadline=None)
@given(SEEDS, SIZES, st.integers(1, 12), TEMPERATURES)
def test_sharpen_is_the_equation(seed: int, num_samples: int, num_classes: int, temperature: float) -> None:
    probs = _probs(seed, num_samples, num_classes)
    expected = [oracles.sharpen(row, temperature) for row in probs.tolist()]
    torch.testing.assert_close(sharpen(probs, temperature), torch.tensor(expected, dtype=torch.float64))


@settings(deadline=None)
@given(SEEDS, SIZES, st.integers(1, 12), TEMPERATURES)
def test_sharpened_rows_are_distributions_in_the_same_order(
    seed: int, num_samples: int, num_classes: int, temperature: float
) -> None:
    probs = _probs(seed, num_samples, num_classes)
    sharp = sharpen(probs, temperature)
    assert ((sharp >= 0) & (sharp <= 1)).all()
    torch.testing.assert_close(sharp.sum(1), torch.ones(num_samples, dtype=torch.float64))
    assert (sharp.gather(1, probs.argsort(1)).diff(dim=1) >= 0).all()


def test_temperature_one_changes_nothing() -> None:
    probs = _probs(1, 5, 10)
    torch.testing.assert_close(sharpen(probs, 1.0), probs)


def test_uniform_stays_uniform() -> None:
    probs = torch.full((3, 4), 0.25)
    torch.testing.assert_close(sharpen(probs, 0.5), probs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_temperature_towards_zero_gives_one_hot(dtype: torch.dtype) -> None:
    """Also where p^(1/T) underflows for every class."""
    probs = torch.tensor([[0.1] * 8 + [0.05, 0.15], [0.0, 1.0] + [0.0] * 8], dtype=dtype)
    for temperature in (1e-2, 1e-3):
        expected = torch.zeros(2, 10, dtype=dtype)
        expected[0, 9] = expected[1, 1] = 1
        torch.testing.assert_close(sharpen(probs, temperature), expected)


def test_temperature_one_half_squares() -> None:
    expected = torch.tensor([[0.64 / 0.68, 0.04 / 0.68]])
    torch.testing.assert_close(sharpen(torch.tensor([[0.8, 0.2]]), 0.5), expected)


# co_refine


@settings(deadline=None)
@given(SEEDS, SIZES, SIZES, st.integers(2, 8), TEMPERATURES)
def test_co_refine_is_the_equation(
    seed: int, num_views: int, num_samples: int, num_classes: int, temperature: float
) -> None:
    rng = np.random.default_rng(seed)
    labels, clean_prob = (
        torch.from_numpy(rng.integers(0, num_classes, size=num_samples)),
        torch.from_numpy(rng.random(num_samples)),
    )
    view_probs = _probs(seed, num_views, num_samples, num_classes)
    expected = oracles.co_refine(labels.tolist(), clean_prob.tolist(), view_probs.tolist(), temperature)
    y_hat = co_refine(labels, clean_prob, view_probs, temperature)
    torch.testing.assert_close(y_hat, torch.tensor(expected, dtype=torch.float64))


def test_a_sure_label_stays_as_given() -> None:
    labels = torch.tensor([2, 0, 1])
    y_hat = co_refine(labels, torch.ones(3), _probs(3, 2, 3, 4).float(), 1.0)
    torch.testing.assert_close(y_hat, torch.eye(4)[labels])


def test_a_surely_wrong_label_has_no_say() -> None:
    view_probs = _probs(4, 2, 3, 4)
    first = co_refine(torch.tensor([0, 1, 2]), torch.zeros(3, dtype=torch.float64), view_probs, 0.5)
    second = co_refine(torch.tensor([3, 2, 1]), torch.zeros(3, dtype=torch.float64), view_probs, 0.5)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(first, sharpen(view_probs.mean(0), 0.5))


def test_co_refine_takes_the_mixtures_float64_with_a_networks_float32() -> None:
    labels, clean_prob, view_probs = torch.tensor([1, 0]), torch.tensor([0.3, 0.9]).double(), _probs(5, 2, 2, 3).float()
    expected = oracles.co_refine(labels.tolist(), clean_prob.tolist(), view_probs.tolist(), 0.5)
    y_hat = co_refine(labels, clean_prob, view_probs, 0.5)
    torch.testing.assert_close(y_hat.double(), torch.tensor(expected).double(), rtol=1e-5, atol=1e-6)


# co_guess


@settings(deadline=None)
@given(SEEDS, SIZES, SIZES, st.integers(2, 8), TEMPERATURES)
def test_co_guess_is_the_equation(
    seed: int, num_views: int, num_samples: int, num_classes: int, temperature: float
) -> None:
    own, peer = _probs(seed, num_views, num_samples, num_classes), _probs(seed + 1, num_views, num_samples, num_classes)
    expected = oracles.co_guess(own.tolist(), peer.tolist(), temperature)
    torch.testing.assert_close(co_guess(own, peer, temperature), torch.tensor(expected, dtype=torch.float64))


def test_co_guess_counts_both_networks_alike() -> None:
    own, peer = _probs(6, 2, 5, 4), _probs(7, 2, 5, 4)
    torch.testing.assert_close(co_guess(own, peer, 0.5), co_guess(peer, own, 0.5))
    assert not torch.allclose(co_guess(own, peer, 0.5), co_guess(own, own, 0.5))


def test_co_guess_averages_before_it_sharpens() -> None:
    """Closed form: two views that disagree fully leave a uniform guess, however sharp each is."""
    own = torch.tensor([[[0.9, 0.1]], [[0.1, 0.9]]])
    torch.testing.assert_close(co_guess(own, own, 0.5), torch.tensor([[0.5, 0.5]]))


# mixup


def _mix_unit_vectors(
    num_rows: int, *, seed: int = 1, alpha: float = 4.0, per_sample: bool = False
) -> tuple[Tensor, list[float], list[int]]:
    """The mixed targets of R unit vectors, and each row's lambda' (nan where it is its own partner) and partner."""
    eye = torch.eye(num_rows, dtype=torch.float64)
    _, mixed = mixup(
        eye.reshape(num_rows, 1, 1, num_rows), eye, alpha=alpha, per_sample=per_sample, generator=_generator(seed)
    )
    lambdas, partners = [], []
    for i, row in enumerate(mixed.tolist()):
        others = [j for j in range(num_rows) if j != i and row[j] != 0]
        assert len(others) <= 1
        partners.append(others[0] if others else i)
        lambdas.append(row[i] if others else math.nan)
    return mixed, lambdas, partners


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_convex_combinations_with_a_permutation(seed: int, per_sample: bool) -> None:
    mixed, lambdas, partners = _mix_unit_vectors(32, seed=seed, per_sample=per_sample)
    torch.testing.assert_close(mixed.sum(1), torch.ones(32, dtype=torch.float64))
    assert sorted(partners) == list(range(32))
    assert partners != list(range(32))
    for i, (lam, partner) in enumerate(zip(lambdas, partners, strict=True)):
        if partner == i:
            assert mixed[i, i].item() == pytest.approx(1)
        else:
            assert 0.5 <= lam <= 1
            assert mixed[i, partner].item() == pytest.approx(1 - lam, abs=1e-6)


def test_one_lambda_a_batch_unless_per_sample() -> None:
    for seed in range(5):
        shared = [lam for lam in _mix_unit_vectors(32, seed=seed)[1] if not math.isnan(lam)]
        assert max(shared) - min(shared) < 1e-12
        own = [lam for lam in _mix_unit_vectors(32, seed=seed, per_sample=True)[1] if not math.isnan(lam)]
        assert len({round(lam, 6) for lam in own}) > len(own) // 2


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("shape", [(), (5,), (3, 2, 4)])
def test_images_and_targets_share_lambda_and_partner(shape: tuple[int, ...], per_sample: bool) -> None:
    """Images that are a linear map of the targets must stay so."""
    num_rows, num_classes = 16, 16
    eye = torch.eye(num_rows, num_classes, dtype=torch.float64)
    to_image = torch.randn(num_classes, math.prod(shape), generator=_generator(9), dtype=torch.float64)
    images = (eye @ to_image).reshape(num_rows, *shape)
    mixed_images, mixed = mixup(images, eye, alpha=4.0, per_sample=per_sample, generator=_generator(2))
    assert mixed_images.shape == images.shape
    torch.testing.assert_close(mixed_images, (mixed @ to_image).reshape(num_rows, *shape), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("per_sample", [False, True])
def test_mixup_draws_from_its_generator_only(per_sample: bool) -> None:
    images, targets = torch.randn(8, 3, 4, 4, generator=_generator(3)), torch.eye(8)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"].copy()

    def run(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return mixup(images, targets, alpha=4.0, per_sample=per_sample, generator=generator)

    generator = _generator(5)
    first, second = run(generator), run(generator)
    again = run(_generator(5))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[1], second[1])
    assert not torch.equal(first[1], run(_generator(6))[1])
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state(legacy=False)["state"]["key"] == numpy_state).all()


def test_mixup_leaves_its_inputs_and_their_type_alone() -> None:
    images, targets = torch.randn(8, 3, 4, 4, generator=_generator(3)), torch.eye(8)
    kept = images.clone(), targets.clone()
    mixed = mixup(images, targets, alpha=4.0, per_sample=True, generator=_generator(5))
    assert torch.equal(images, kept[0])
    assert torch.equal(targets, kept[1])
    assert [m.dtype for m in mixed] == [torch.float32, torch.float32]


@pytest.mark.parametrize("per_sample", [False, True])
def test_a_single_row_is_its_own_partner(per_sample: bool) -> None:
    images, targets = torch.rand(1, 3, generator=_generator(1)), torch.tensor([[0.2, 0.8]])
    mixed_images, mixed = mixup(images, targets, alpha=4.0, per_sample=per_sample, generator=_generator(1))
    torch.testing.assert_close(mixed_images, images)
    torch.testing.assert_close(mixed, targets)


def _many_lambdas(alpha: float, per_sample: bool) -> Tensor:
    """Independent draws of lambda', read off the diagonal; a row that is its own partner has 1 there and shows none."""
    draws = []
    generator = _generator(11)
    eye = torch.eye(64 if per_sample else 4, dtype=torch.float64)
    for _ in range(100 if per_sample else 2000):
        diagonal = mixup(eye, eye, alpha=alpha, per_sample=per_sample, generator=generator)[1].diagonal()
        lambdas = diagonal[diagonal < 1 - 1e-12]
        draws.append(lambdas if per_sample else lambdas[:1])
    return torch.cat(draws)


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0, 30.0])
def test_lambda_follows_beta(alpha: float, per_sample: bool) -> None:
    """Oracle: the first two moments of max(L, 1 - L) by numerical integration, within five standard errors."""
    lambdas = _many_lambdas(alpha, per_sample)
    assert len(lambdas) > 1500
    for power in (1, 2):
        expected = oracles.mixup_lambda_moment(alpha, power)
        spread = math.sqrt(oracles.mixup_lambda_moment(alpha, 2 * power) - expected**2)
        assert abs((lambdas**power).mean().item() - expected) < 5 * spread / math.sqrt(len(lambdas))


def test_the_integral_has_its_closed_forms() -> None:
    """The oracle's own oracle: the arcsine law (alpha 1/2), the uniform (1), the parabola 6 x (1 - x) (2)."""
    assert oracles.mixup_lambda_moment(0.5, 1) == pytest.approx(1 / 2 + 1 / math.pi, abs=1e-6)
    assert oracles.mixup_lambda_moment(1.0, 1) == pytest.approx(3 / 4, abs=1e-6)
    assert oracles.mixup_lambda_moment(1.0, 2) == pytest.approx(7 / 12, abs=1e-6)
    assert oracles.mixup_lambda_moment(2.0, 1) == pytest.approx(11 / 16, abs=1e-6)


@pytest.mark.parametrize("alpha", [1e-3, 1e-2, 1e3])
def test_extreme_alpha_gives_numbers(alpha: float) -> None:
    """A Beta draw by way of two gammas is 0/0 when both underflow."""
    eye = torch.eye(256)
    for seed in range(10):
        for mixed in mixup(eye, eye, alpha=alpha, per_sample=True, generator=_generator(seed)):
            assert mixed.isfinite().all()
            assert (mixed.diagonal() >= 0.5).all()
