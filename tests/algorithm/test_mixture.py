"""The mixture against two oracles: scikit-learn's GaussianMixture from the same start, and loops from the equations."""

import itertools
import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import oracles
import pytest
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from dividemix.algorithm.mixture import Gaussians, fit_gaussians, two_means_start

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator], Array]

FLOOR = 5e-4
VECTORS_PER_FAMILY = 63  # 16 families besides "hair apart": more than a thousand vectors


def _unit(values: Array) -> Array:
    """Min-max normalised, as the caller hands losses over."""
    scaled: Array = (values - values.min()) / (values.max() - values.min())
    return scaled


def _size(rng: np.random.Generator) -> int:
    return int(rng.integers(3, 200))


def _two_spikes(rng: np.random.Generator) -> Array:
    return rng.permutation(np.repeat([0.0, 1.0], rng.integers(1, 100, size=2)))


def _tiny(rng: np.random.Generator) -> Array:
    return _unit(rng.random(int(rng.integers(2, 7))))


def _heavy_ties(rng: np.random.Generator) -> Array:
    return np.append(rng.integers(0, 4, size=_size(rng)), [0, 3]) / 3


def _one_outlier(rng: np.random.Generator) -> Array:
    return _unit(np.append(rng.normal(0.1, 0.01, size=_size(rng)), 1.0))


def _one_low_outlier(rng: np.random.Generator) -> Array:
    return 1 - _one_outlier(rng)


def _uniform(rng: np.random.Generator) -> Array:
    return _unit(rng.random(_size(rng)))


def _exponential(rng: np.random.Generator) -> Array:
    return _unit(rng.exponential(size=_size(rng)))


def _heavy_tail(rng: np.random.Generator) -> Array:
    return _unit(rng.lognormal(sigma=2, size=_size(rng)))


def _overlapping(rng: np.random.Generator) -> Array:
    low, high = rng.normal(0.3, 0.1, size=_size(rng)), rng.normal(0.5, rng.uniform(0.05, 0.3), size=_size(rng))
    return _unit(rng.permutation(np.concatenate([low, high])))


def _wide_around_narrow(rng: np.random.Generator) -> Array:
    """One centre, two widths: EM draws the means together, and may let them cross."""
    return _unit(np.concatenate([rng.normal(0, 0.02, size=_size(rng)), rng.normal(0, 0.5, size=_size(rng))]))


def _symmetric(rng: np.random.Generator) -> Array:
    half = rng.random(_size(rng))
    return _unit(np.concatenate([half, 1 - half]))


def _imbalanced(rng: np.random.Generator) -> Array:
    """A few samples against many; one draw in ten 1 : 10,000, either way round."""
    many = 10_000 if rng.random() < 0.1 else 500
    values = _unit(np.append(rng.normal(0.1, 0.03, size=many), rng.normal(0.8, 0.03, size=1 if many > 500 else 2)))
    return values if rng.random() < 0.5 else 1 - values


def _hair_apart(rng: np.random.Generator) -> Array:
    """Not normalised (a class of its own under `per_class`): all values within 1e-3 to 1e-15 of one another."""
    values = 0.5 + 10.0 ** -rng.uniform(3, 15) * rng.random(_size(rng))
    return np.append(values, [0.5, math.nextafter(values.max(), 1)])


def _narrow(rng: np.random.Generator) -> Array:
    """Not normalised either: a class whose losses span less than the floor's standard deviation."""
    return rng.uniform(0.2, 0.2 + rng.uniform(0.002, 0.02), size=_size(rng))


def _reversed_order(rng: np.random.Generator) -> Array:
    return np.sort(_overlapping(rng))[::-1].copy()


def _bimodal_far_outlier(rng: np.random.Generator) -> Array:
    low, high = rng.normal(0, 0.004, size=_size(rng)), rng.normal(0.04, 0.004, size=_size(rng))
    return _unit(np.concatenate([low, high, [1.0]]))


def _spike_and_tail(rng: np.random.Generator) -> Array:
    """An overfitted network: most losses exactly zero."""
    return _unit(np.concatenate([np.zeros(_size(rng)), rng.exponential(size=int(rng.integers(1, 50)))]))


FAMILIES: dict[str, Draw] = {
    "two spikes": _two_spikes,
    "tiny": _tiny,
    "heavy ties": _heavy_ties,
    "one outlier": _one_outlier,
    "one low outlier": _one_low_outlier,
    "uniform": _uniform,
    "exponential": _exponential,
    "heavy tail": _heavy_tail,
    "overlapping": _overlapping,
    "wide around narrow": _wide_around_narrow,
    "symmetric": _symmetric,
    "imbalanced": _imbalanced,
    "hair apart": _hair_apart,
    "narrow": _narrow,
    "reversed order": _reversed_order,
    "bimodal, far outlier": _bimodal_far_outlier,
    "spike and tail": _spike_and_tail,
}


def _vectors(family: str, count: int) -> Iterator[Array]:
    rng = np.random.default_rng([sorted(FAMILIES).index(family), 20])
    return (FAMILIES[family](rng) for _ in range(count))


def _sklearn_fit(values: Array, start: Gaussians) -> GaussianMixture:
    model = GaussianMixture(
        n_components=2,
        max_iter=10,
        tol=1e-2,
        reg_covar=FLOOR,
        weights_init=start.weights.numpy(),
        means_init=start.means.numpy()[:, None],
        precisions_init=1 / start.variances.numpy()[:, None, None],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(values[:, None])


@pytest.mark.parametrize("count", [9, pytest.param(VECTORS_PER_FAMILY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_posteriors_agree_with_sklearn(family: str, count: int) -> None:
    """Oracle: scikit-learn, same start, limits and floor; the column of its component with the smaller mean.

    Where the values lie within far less than the floor's standard deviation, EM draws both means to one number and
    which of them is smaller is a matter of the last bit. The paper's g is then not defined, and either column is
    right. That needs values that are not normalised: only "hair apart" may come to it.
    """
    ties = 0
    for values in _vectors(family, count):
        tensor = torch.from_numpy(values)
        mixture = fit_gaussians(tensor)
        model = _sklearn_fit(values, two_means_start(tensor))
        columns, means = model.predict_proba(values[:, None]), model.means_[:, 0]
        low_prob = mixture.low_prob(tensor).numpy()
        errors = [np.abs(low_prob - columns[:, k]).max() for k in np.argsort(means)]
        if np.ptp(means) < 1e-12:
            ties += 1
            assert min(errors) < 1e-6
        else:
            assert errors[0] < 1e-6
        assert mixture.num_iters == model.n_iter_
        assert mixture.converged == model.converged_
    assert ties == 0 or family == "hair apart"


def test_the_low_component_is_the_one_that_ends_with_the_smaller_mean() -> None:
    """Oracle: scikit-learn, which keeps its components in the start's order, on vectors whose means cross."""
    num_crossed = 0
    for values in _vectors("wide around narrow", VECTORS_PER_FAMILY):
        tensor = torch.from_numpy(values)
        model = _sklearn_fit(values, two_means_start(tensor))
        if model.means_[0, 0] > model.means_[1, 0]:
            num_crossed += 1
            expected = torch.from_numpy(model.predict_proba(values[:, None])[:, 1])
            torch.testing.assert_close(fit_gaussians(tensor).low_prob(tensor), expected, rtol=0, atol=1e-6)
    assert num_crossed > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_posteriors_agree_with_loops(family: str) -> None:
    """Oracle: 2-means and EM as loops, start included; vectors with a value midway between two centres left out."""
    for values in _vectors(family, 4):
        if len(values) > 1000:
            continue
        listed = values.tolist()
        has_tie = oracles.two_means(listed) != oracles.two_means(listed, midway_is_low=False)
        expected = oracles.expectation_maximisation(listed)
        if has_tie or abs(expected.means[0] - expected.means[1]) < 1e-12:
            continue
        tensor = torch.from_numpy(values)
        assert fit_gaussians(tensor).low_prob(tensor).tolist() == pytest.approx(oracles.low_posterior(listed), abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_start_is_an_m_step_on_the_two_means_partition(family: str) -> None:
    """Oracle: Lloyd's loop. A value midway between the centres may go to either side."""
    for values in _vectors(family, 10):
        if np.ptp(values) < 1e-12:
            continue  # a few units in the last place: the centres themselves are rounded onto values
        start = two_means_start(torch.from_numpy(values))
        found = torch.cat([start.weights, start.means, start.variances]).tolist()
        allowed = []
        for midway_is_low in (True, False):
            is_low = oracles.two_means(values.tolist(), midway_is_low=midway_is_low)
            expected = oracles.maximise(values.tolist(), [float(low) for low in is_low], FLOOR)
            allowed.append([*expected.weights, *expected.means, *expected.variances])
        assert any(found == pytest.approx(one, rel=1e-9, abs=1e-12) for one in allowed)
        assert start.num_iters == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_mixture_is_a_distribution_with_the_small_mean_first(family: str) -> None:
    for values in _vectors(family, 10):
        tensor = torch.from_numpy(values)
        for mixture in (two_means_start(tensor), fit_gaussians(tensor)):
            assert mixture.weights.sum().item() == pytest.approx(1, abs=1e-12)
            assert (mixture.weights >= 0).all()
            assert mixture.means[0] <= mixture.means[1]
            assert (mixture.variances >= FLOOR * (1 - 1e-12)).all()
            for field in (mixture.weights, mixture.means, mixture.variances):
                assert field.shape == (2,)
                assert field.dtype == torch.float64
            low_prob = mixture.low_prob(tensor)
            assert low_prob.shape == tensor.shape
            assert low_prob.dtype == torch.float64
            assert ((low_prob >= 0) & (low_prob <= 1)).all()


@pytest.mark.parametrize("family", ["overlapping", "exponential", "uniform", "wide around narrow", "heavy tail"])
def test_likelihood_never_falls(family: str) -> None:
    """EM's theorem, with a negligible floor: a floor that is added to the variance voids it."""
    floor, gains = 1e-10, []
    for values in _vectors(family, 5):
        tensor = torch.from_numpy(values)
        steps = [two_means_start(tensor, variance_floor=floor)]
        steps += [fit_gaussians(tensor, max_iters=k, tolerance=0, variance_floor=floor) for k in range(1, 12)]
        assert [step.num_iters for step in steps] == list(range(12))
        likelihoods = [
            oracles.mean_log_likelihood(
                oracles.Gaussians(step.weights.tolist(), step.means.tolist(), step.variances.tolist()), values.tolist()
            )
            for step in steps
        ]
        assert all(later > earlier - 1e-6 for earlier, later in itertools.pairwise(likelihoods))
        gains.append(likelihoods[-1] - likelihoods[0])
    assert max(gains) > 1e-3  # some start was not a fixed point already


def test_max_iters_is_a_limit_and_converged_says_so() -> None:
    values = torch.from_numpy(next(_vectors("overlapping", 1)))
    cut = fit_gaussians(values, max_iters=3, tolerance=0)
    assert (cut.num_iters, cut.converged) == (3, False)
    done = fit_gaussians(values, max_iters=500, tolerance=1e-3)
    assert done.converged
    assert done.num_iters < 500


@pytest.mark.parametrize("family", FAMILIES)
def test_order_of_values_does_not_matter(family: str) -> None:
    for values in _vectors(family, 3):
        tensor = torch.from_numpy(values)
        order = torch.randperm(len(tensor), generator=torch.Generator().manual_seed(1))
        mixture, shuffled = fit_gaussians(tensor), fit_gaussians(tensor[order])
        if mixture.means[1] - mixture.means[0] < 1e-12:
            continue  # which mean is smaller is a matter of the last bit
        torch.testing.assert_close(shuffled.low_prob(tensor), mixture.low_prob(tensor), rtol=0, atol=1e-8)


def test_low_prob_is_bayes_rule() -> None:
    """Oracle: the posterior written out, at values on and off the data."""
    values = torch.from_numpy(next(_vectors("overlapping", 1)))
    mixture = fit_gaussians(values)
    plain = oracles.Gaussians(mixture.weights.tolist(), mixture.means.tolist(), mixture.variances.tolist())
    points = torch.linspace(-1, 2, 50, dtype=torch.float64)
    expected = [oracles.posterior(plain, point)[0] for point in points.tolist()]
    assert mixture.low_prob(points).tolist() == pytest.approx(expected, abs=1e-12)


def test_densities_are_the_weighted_components() -> None:
    """Oracle: the densities written out; what is under both curves is 1."""
    values = torch.from_numpy(next(_vectors("overlapping", 1)))
    mixture = fit_gaussians(values)
    plain = oracles.Gaussians(mixture.weights.tolist(), mixture.means.tolist(), mixture.variances.tolist())
    points = torch.linspace(-3, 4, 2001, dtype=torch.float64)
    densities = mixture.densities(points)
    assert densities.shape == (2, 2001)
    expected = [[math.exp(entry) for entry in oracles.log_joint(plain, point)] for point in points.tolist()]
    torch.testing.assert_close(densities.T, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-300)
    torch.testing.assert_close(torch.trapezoid(densities, points), mixture.weights, rtol=0, atol=1e-6)
    torch.testing.assert_close(densities[0] / densities.sum(dim=0), mixture.low_prob(points), rtol=0, atol=1e-9)


def test_far_values_have_a_posterior() -> None:
    """Both densities underflow there; the posterior does not."""
    mixture = fit_gaussians(torch.tensor([0.0, 0.0, 0.01, 0.9, 1.0, 1.0]))
    low_prob = mixture.low_prob(torch.tensor([-1e3, 1e3], dtype=torch.float64))
    assert low_prob.isfinite().all()


def test_clear_clusters_are_told_apart() -> None:
    values = torch.tensor([0.9, 0.02, 0.0, 0.05, 1.0, 0.03, 0.95])
    assert (fit_gaussians(values).low_prob(values) > 0.5).tolist() == [False, True, True, True, False, True, False]


def test_float32_values_are_worked_on_in_float64() -> None:
    values = torch.from_numpy(next(_vectors("overlapping", 1))).float()
    single, double = fit_gaussians(values), fit_gaussians(values.double())
    torch.testing.assert_close(single.low_prob(values), double.low_prob(values.double()), rtol=0, atol=1e-12)
    assert single.low_prob(values).dtype == torch.float64
    assert two_means_start(values).means.dtype == torch.float64


@pytest.mark.parametrize("values", [[0.5], [0.0, 0.0], [0.3] * 50])
@pytest.mark.parametrize("fit", [fit_gaussians, two_means_start])
def test_equal_values_are_refused(fit: Callable[[torch.Tensor], Gaussians], values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        fit(torch.tensor(values))
