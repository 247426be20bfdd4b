"""Page contents with invented numbers of a plausible shape, for tests and for looking at the page."""

import math

import numpy as np
from numpy.typing import NDArray

from dividemix.data.readers.fashion import read_fashion
from dividemix.report.content import PageContent
from dividemix.report.shown import Shown, image
from dividemix.report.thumbnails import encode

NUM_BINS = 50


def fashion_content(num_epochs: int = 30, with_truth: bool = True, seed: int = 0) -> PageContent:
    """The embedded set with 30 % wrong labels, as if it had been trained on."""
    source = read_fashion()
    assert source.true_labels is not None
    return invented_content(
        source.true_labels,
        source.classes,
        title="fashion_photos",
        num_epochs=num_epochs,
        paths=tuple(
            f"{source.classes[label].replace('/', '-')}/{i:05d}.png" for i, label in enumerate(source.train_labels)
        ),
        with_truth=with_truth,
        seed=seed,
    )


def invented_content(
    true: NDArray[np.int64],
    classes: tuple[str, ...],
    *,
    title: str = "invented",
    num_epochs: int = 4,
    paths: tuple[str, ...] | None = None,
    with_truth: bool = False,
    seed: int = 0,
) -> PageContent:
    """Content for samples with these true labels, of which 30 % are given wrong, mostly as the next class."""
    rng = np.random.default_rng(seed)
    N, C = len(true), len(classes)
    is_wrong = rng.random(N) < 0.3
    other = np.where(rng.random(N) < 0.6, true + 1, true + rng.integers(1, C, N)) % C
    labels = np.where(is_wrong, other, true)
    # Networks that are right nine times in ten.
    guess = np.where(rng.random(N) < 0.9, true, (true + rng.integers(1, C, N)) % C)
    logits = rng.normal(0, 1, (N, C)).astype(np.float32)
    logits[np.arange(N), guess] += rng.gamma(4, 1.6, N)
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    losses = np.stack([-np.log(probs[np.arange(N), labels] + 1e-4) + rng.gamma(1, 0.1, N) for _ in range(2)])
    clean_prob = 1 / (1 + np.exp(3 * (losses - 1.8)))
    score = probs[np.arange(N), labels].astype(np.float64)
    joint = np.zeros((C, C))
    np.add.at(joint, (labels, probs.argmax(axis=1)), 1.0)
    num_warmup = max(1, num_epochs // 8)
    rows, divisions = [], []
    for epoch in range(1, num_epochs + 1):
        skill = 1 - math.exp(-epoch / (0.25 * num_epochs))
        is_mix = epoch > num_warmup
        rows.append(
            {
                "epoch": epoch,
                "phase": "mix" if is_mix else "warmup",
                "selects": is_mix,
                "test_acc": 62 + 24 * skill + float(rng.normal(0, 0.5)) if with_truth else None,
                "val_acc": 45 + 18 * skill + float(rng.normal(0, 0.8)),
                "num_labeled": [int(N * (0.5 + 0.17 * skill + rng.normal(0, 0.01))) for _ in range(2)]
                if is_mix
                else [],
                "clean_auc": [0.86 + 0.12 * skill + rng.normal(0, 0.002) for _ in range(2)]
                if is_mix and with_truth
                else None,
                "noise_rate": 0.42 - 0.12 * skill if is_mix else None,
            }
        )
        if is_mix:
            divisions += [_division(rng, epoch, net, skill, is_wrong if with_truth else None, N) for net in range(2)]
    return PageContent(
        title=title,
        facts=[
            ("Data", title),
            ("Images", f"{N:,} of 28 x 28, grey"),
            ("Classes", str(C)),
            ("Method", "DivideMix"),
            ("Network", "small_cnn, two of them"),
            ("Epochs", f"{num_epochs}, {num_warmup} of them warm-up"),
            ("Time", "2 min 41 s on 2 cores"),
            ("Version", "dividemix 0.1.0, torch 2.13"),
        ],
        choices=[
            ("arch", "small_cnn", "28 x 28 pixels: a small network is enough"),
            ("epochs", str(num_epochs), "6,000 images on 2 cores, within 10 minutes"),
            ("lambda_u", "0", "estimated noise is 30 %, below 40 %: unlabeled samples need no loss of their own"),
            ("loss_window", "5", "averaged losses divide more steadily"),
            ("kept epoch", str(num_epochs - 2), "best on 10 % of the samples held out, with their noisy labels"),
        ],
        rows=rows,
        divisions=divisions,
        classes=classes,
        labels=labels,
        probs=probs.astype(np.float32),
        label_score=score,
        is_issue=score < 0.2,
        clean_prob=clean_prob,
        losses=losses,
        sample_rows=np.arange(N),
        can_add_classes=paths is not None,
        paths=paths,
        true_labels=true if with_truth else None,
        noise_rate=0.303,
        noise_matrix=joint / N,
        kept_epoch=num_epochs - 2,
        num_skipped=3,
    )


def _division(
    rng: np.random.Generator, epoch: int, net: int, skill: float, is_wrong: NDArray[np.bool_] | None, N: int
) -> dict[str, object]:
    """A histogram of two humps that drift apart as training goes on, and the humps as curves."""
    wrong = rng.random(N) < 0.3 if is_wrong is None else is_wrong
    means, stds = (0.16 - 0.08 * skill, 0.45 + 0.2 * skill), (0.07, 0.13)
    values = np.where(wrong, rng.normal(means[1], stds[1], N), np.abs(rng.normal(means[0], stds[0], N))).clip(0, 1)
    counts, edges = np.histogram(values, NUM_BINS, (0, 1))
    middle = (edges[1:] + edges[:-1]) / 2
    curves = [
        share * N / NUM_BINS * np.exp(-(((middle - mean) / std) ** 2) / 2) / (std * math.sqrt(2 * math.pi))
        for share, mean, std in zip((0.7, 0.3), means, stds, strict=True)
    ]
    division: dict[str, object] = {
        "epoch": epoch,
        "net": net,
        "low": 0.0,
        "high": 1.0,
        "counts": counts.tolist(),
        "clean_curve": curves[0].tolist(),
        "wrong_curve": curves[1].tolist(),
    }
    if is_wrong is not None:
        division["wrong_counts"] = np.histogram(values[wrong], NUM_BINS, (0, 1))[0].tolist()
    return division


def fashion_shown(i: int) -> Shown | None:
    return image(encode(_FASHION.train_samples[i]))


_FASHION = read_fashion()
