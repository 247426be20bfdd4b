"""Slow, obvious loops written from the paper's equations (Section 3, Algorithm 1): what the tests compare with.

Plain Python floats and lists, one sample, one class and one view at a time. Nothing here knows the package.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

Row = list[float]
Rows = list[Row]


class Gaussians(NamedTuple):
    """Two weighted Gaussians; which one comes first is up to whoever made them."""

    weights: Row
    means: Row
    variances: Row


# Co-divide: two Gaussians over the losses by EM, the posterior of the one with the smaller mean.


def two_means(values: Sequence[float], *, midway_is_low: bool = True) -> list[bool]:
    """Lloyd's 2-means from the smallest and the largest value: for each value, whether it is in the low cluster."""
    low, high = min(values), max(values)
    while True:
        is_low = [abs(v - low) < abs(v - high) or (midway_is_low and abs(v - low) == abs(v - high)) for v in values]
        lows = [v for v, here in zip(values, is_low, strict=True) if here]
        highs = [v for v, here in zip(values, is_low, strict=True) if not here]
        moved = math.fsum(lows) / len(lows), math.fsum(highs) / len(highs)
        if moved == (low, high):
            return is_low
        low, high = moved


def maximise(values: Sequence[float], low_share: Sequence[float], floor: float) -> Gaussians:
    """M-step: weighted share, mean and variance of each component; the floor is added to the variance."""
    weights, means, variances = [], [], []
    for share in (list(low_share), [1 - s for s in low_share]):
        total = math.fsum(share)
        mean = math.fsum(s * v for s, v in zip(share, values, strict=True)) / total
        variance = math.fsum(s * (v - mean) ** 2 for s, v in zip(share, values, strict=True)) / total
        weights.append(total / len(values))
        means.append(mean)
        variances.append(variance + floor)
    return Gaussians(weights, means, variances)


def log_joint(mixture: Gaussians, value: float) -> Row:
    """log(weight * density) of the value under each component."""
    return [
        math.log(w) - 0.5 * math.log(2 * math.pi * var) - (value - mean) ** 2 / (2 * var)
        for w, mean, var in zip(*mixture, strict=True)
    ]


def log_sum(logs: Sequence[float]) -> float:
    """log(sum of exp(l)), without leaving the range of floats."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(entry - top) for entry in logs))


def mean_log_likelihood(mixture: Gaussians, values: Sequence[float]) -> float:
    """Mean over the values of log p(value)."""
    return math.fsum(log_sum(log_joint(mixture, v)) for v in values) / len(values)


def posterior(mixture: Gaussians, value: float) -> Row:
    """p(component | value) for each component."""
    joint = log_joint(mixture, value)
    return [math.exp(entry - log_sum(joint)) for entry in joint]


def expectation_maximisation(
    values: Sequence[float], *, max_iters: int = 10, tolerance: float = 1e-2, floor: float = 5e-4
) -> Gaussians:
    """EM from the 2-means partition, until the mean log-likelihood changes by less than the tolerance."""
    mixture = maximise(values, [float(low) for low in two_means(values)], floor)
    before = -math.inf
    for _ in range(max_iters):
        now = mean_log_likelihood(mixture, values)
        mixture = maximise(values, [posterior(mixture, v)[0] for v in values], floor)
        if abs(now - before) < tolerance:
            break
        before = now
    return mixture


def low_posterior(values: Sequence[float]) -> Row:
    """w_i = p(g | l_i), g the component with the smaller mean; 1 for all when there is nothing to tell apart."""
    if min(values) == max(values):
        return [1.0] * len(values)
    mixture = expectation_maximisation(values)
    low = mixture.means.index(min(mixture.means))
    return [posterior(mixture, v)[low] for v in values]


def low_posterior_per_class(values: Sequence[float], labels: Sequence[int]) -> Row:
    """w_i with a mixture of its own for the samples of each given label."""
    probs = [math.nan] * len(values)
    for c in set(labels):
        members = [i for i, label in enumerate(labels) if label == c]
        for i, prob in zip(members, low_posterior([values[i] for i in members]), strict=True):
            probs[i] = prob
    return probs


def min_max(losses: Sequence[float]) -> Row:
    """(l_i - min) / (max - min); zeros when all are equal."""
    low, high = min(losses), max(losses)
    return [0.0 if low == high else (entry - low) / (high - low) for entry in losses]


# Two Betas over the losses (Arazo et al. 2019, Section 3.1): EM with the method of moments.


class BetaPair(NamedTuple):
    """Two weighted Beta distributions; which one comes first is up to whoever made them."""

    weights: Row
    alphas: Row
    betas: Row


def inside(value: float, margin: float = 1e-4) -> float:
    """The value, kept away from 0 and 1."""
    return min(max(value, margin), 1 - margin)


def beta_log_joint(mixture: BetaPair, value: float) -> Row:
    """log(weight * density) of the value under each component."""
    x = inside(value)
    return [
        math.log(w)
        + math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + (a - 1) * math.log(x)
        + (b - 1) * math.log(1 - x)
        for w, a, b in zip(*mixture, strict=True)
    ]


def beta_expectation_maximisation(values: Sequence[float], *, num_iters: int = 10) -> BetaPair:
    """EM from Beta(1, 2) and Beta(2, 1): alpha = m (m (1 - m) / s^2 - 1), beta = alpha (1 - m) / m."""
    clipped = [inside(v) for v in values]
    mixture = BetaPair([0.5, 0.5], [1.0, 2.0], [2.0, 1.0])
    for _ in range(num_iters):
        joints = [beta_log_joint(mixture, v) for v in clipped]
        weights, alphas, betas = [], [], []
        for k in range(2):
            share = [math.exp(joint[k] - log_sum(joint)) for joint in joints]
            total = math.fsum(share)
            mean = math.fsum(s * v for s, v in zip(share, clipped, strict=True)) / total
            variance = math.fsum(s * (v - mean) ** 2 for s, v in zip(share, clipped, strict=True)) / total
            weights.append(total / len(clipped))
            alphas.append(mean * (mean * (1 - mean) / variance - 1))
            betas.append(alphas[-1] * (1 - mean) / mean)
        mixture = BetaPair(weights, alphas, betas)
    return mixture


def beta_low_posterior(mixture: BetaPair, values: Sequence[float], *, num_cells: int = 4000) -> Row:
    """p(low | value), low the component with the smaller mean, held where it would rise with the value.

    Beyond the point where the odds are smallest they stay as small; before the point where they are largest, as large.
    Both are looked for on a grid.
    """
    means = [a / (a + b) for a, b in zip(mixture.alphas, mixture.betas, strict=True)]
    low = means.index(min(means))

    def log_odds(value: float) -> float:
        joint = beta_log_joint(mixture, value)
        return joint[low] - joint[1 - low]

    grid = [inside(i / num_cells) for i in range(num_cells + 1)]
    on_grid = [log_odds(point) for point in grid]
    smallest, largest = on_grid.index(min(on_grid)), on_grid.index(max(on_grid))
    probs = []
    for value in values:
        if 0 < smallest < num_cells:
            value = min(value, grid[smallest])
        if 0 < largest < num_cells:
            value = max(value, grid[largest])
        odds = log_odds(value)
        probs.append(1 / (1 + math.exp(-odds)) if odds > -700 else 0.0)
    return probs


def plausibility(probs: Rows, labels: Sequence[int]) -> Row:
    """The given label's share against the likeliest other class, each over its mean among the samples labelled so."""
    means = []
    for c in range(len(probs[0])):
        own = [row[c] for row, label in zip(probs, labels, strict=True) if label == c]
        means.append(math.fsum(own) / len(own) if own else 1.0)
    shares = []
    for row, label in zip(probs, labels, strict=True):
        rival = max((c for c in range(len(row)) if c != label), key=lambda c: row[c])
        mine, other = row[label] / means[label], row[rival] / means[rival]
        shares.append(mine / (mine + other))
    return shares


def noise_rate(clean_prob: Sequence[float], predictions: Sequence[int], labels: Sequence[int]) -> float:
    """Mean over the samples of 1 - w_i where the prediction differs from the given label, of 0 where it does not."""
    total = 0.0
    for w, predicted, label in zip(clean_prob, predictions, labels, strict=True):
        if predicted != label:
            total += 1 - w
    return total / len(labels)


# MixMatch: targets.


def sharpen(row: Sequence[float], temperature: float) -> Row:
    """Sharpen(y, T)^c = y_c^(1/T) / sum_c y_c^(1/T)."""
    powers = [p ** (1 / temperature) for p in row]
    return [p / math.fsum(powers) for p in powers]


def co_refine(
    labels: Sequence[int], clean_prob: Sequence[float], view_probs: Sequence[Rows], temperature: float
) -> Rows:
    """y-hat_b = Sharpen(w_b y_b + (1 - w_b) p_b, T), p_b the mean over the views."""
    y_hat = []
    for b, (label, w) in enumerate(zip(labels, clean_prob, strict=True)):
        num_classes = len(view_probs[0][b])
        p = [math.fsum(view[b][c] for view in view_probs) / len(view_probs) for c in range(num_classes)]
        y = [1.0 if c == label else 0.0 for c in range(num_classes)]
        y_hat.append(sharpen([w * y[c] + (1 - w) * p[c] for c in range(num_classes)], temperature))
    return y_hat


def co_guess(own_probs: Sequence[Rows], peer_probs: Sequence[Rows], temperature: float) -> Rows:
    """q_b = Sharpen(1 / (2 M) sum over views of both networks' predictions, T)."""
    num_views, q = len(own_probs), []
    for b in range(len(own_probs[0])):
        bar = [0.0] * len(own_probs[0][b])
        for m in range(num_views):
            for c in range(len(bar)):
                bar[c] += (own_probs[m][b][c] + peer_probs[m][b][c]) / (2 * num_views)
        q.append(sharpen(bar, temperature))
    return q


def self_guess(own_probs: Sequence[Rows], temperature: float) -> Rows:
    """MixMatch's own guess: q_b = Sharpen(1 / M sum over views of the network's predictions, T)."""
    num_views, q = len(own_probs), []
    for b in range(len(own_probs[0])):
        bar = [0.0] * len(own_probs[0][b])
        for m in range(num_views):
            for c in range(len(bar)):
                bar[c] += own_probs[m][b][c] / num_views
        q.append(sharpen(bar, temperature))
    return q


def mixup_lambda_moment(alpha: float, power: int, num_cells: int = 2000) -> float:
    """E[max(L, 1 - L)^power] for L ~ Beta(alpha, alpha), alpha at least 1/2, by the midpoint rule.

    With L = sin^2(t) the density is proportional to (sin t cos t)^(2 alpha - 1), which has no pole; by symmetry the
    half where L is the larger one, t from pi/4 to pi/2, is enough.
    """
    angles = [math.pi / 4 * (1 + (k + 0.5) / num_cells) for k in range(num_cells)]
    density = [(math.sin(t) * math.cos(t)) ** (2 * alpha - 1) for t in angles]
    moment = math.fsum(d * math.sin(t) ** (2 * power) for d, t in zip(density, angles, strict=True))
    return moment / math.fsum(density)


# Losses: from logits, in logarithms, so that they hold where a probability underflows.


def log_softmax(row: Sequence[float]) -> Row:
    """Logarithm of p_model^c of one sample."""
    norm = log_sum(row)
    return [z - norm for z in row]


def loss_x(logits: Rows, targets: Rows) -> float:
    """L_X = -1/|X'| sum over x, c of p_c log p_model^c(x)."""
    total = 0.0
    for row, target in zip(logits, targets, strict=True):
        for log_p, p in zip(log_softmax(row), target, strict=True):
            total -= p * log_p
    return total / len(logits)


def loss_u(logits: Rows, targets: Rows) -> float:
    """L_U as the released code scales it: the squared difference, averaged over samples and classes."""
    total = 0.0
    for row, target in zip(logits, targets, strict=True):
        for log_p, p in zip(log_softmax(row), target, strict=True):
            total += (p - math.exp(log_p)) ** 2
    return total / (len(logits) * len(logits[0]))


def loss_reg(logits: Rows) -> float:
    """L_reg = sum over c of pi_c log(pi_c / mean over x of p_model^c(x)), pi uniform."""
    num_classes = len(logits[0])
    log_probs = [log_softmax(row) for row in logits]
    total = 0.0
    for c in range(num_classes):
        log_mean = log_sum([row[c] for row in log_probs]) - math.log(len(logits))
        total += (math.log(1 / num_classes) - log_mean) / num_classes
    return total


def negative_entropy(logits: Rows) -> float:
    """Mean over x of -H(x) = sum over c of p log p (Eq. 2), 0 log 0 being 0."""
    total = 0.0
    for row in logits:
        for log_p in log_softmax(row):
            total += math.exp(log_p) * log_p
    return total / len(logits)
