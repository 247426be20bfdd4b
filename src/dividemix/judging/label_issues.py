"""What the trained networks think of every given label: scores, flags, suggestions, and label_issues.csv.

Shapes: N samples, C classes, K networks.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dividemix.algorithm.divide import clean_probability, normalise
from dividemix.algorithm.ensemble import predict_probs
from dividemix.algorithm.plausibility import plausibility, strongest_rivals
from dividemix.config import Config
from dividemix.data.training_data import TrainingData


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """Arrays in the order of the samples that were used; `order` ranks them, worst first."""

    classes: tuple[str, ...]
    paths: tuple[str, ...] | None
    labels: NDArray[np.int64]
    """(N,): as given."""
    pred_probs: NDArray[np.float32]
    """(N, C): what the networks predict together."""
    losses: NDArray[np.float64]
    """(K, N): cross-entropy of the given label by each network."""
    clean_prob: NDArray[np.float64]
    """(K, N): posterior of the small-loss component, by each network's losses at the end; with keep_plausible at least
    how plausible all networks together find the label."""
    sample_rows: NDArray[np.int64] | None = None
    """(N,): where each sample stands in the data as it was given, counted from 0; None: at its own index."""

    @property
    def predicted(self) -> NDArray[np.int64]:
        """(N,): the suggested label."""
        predicted: NDArray[np.int64] = self.pred_probs.argmax(axis=1)
        return predicted

    @property
    def label_score(self) -> NDArray[np.float32]:
        """(N,): the probability of the given label, low is bad. cleanlab calls it self-confidence."""
        score: NDArray[np.float32] = self.pred_probs[np.arange(len(self.labels)), self.labels]
        return score

    @property
    def is_label_issue(self) -> NDArray[np.bool_]:
        """(N,): where the clean probability is below a half, and the networks predict another label.

        Both are asked for: a hard sample has a large loss, too, though the networks agree with its label. A half,
        whatever tau is: training may keep a label that a person should look at.
        """
        issue: NDArray[np.bool_] = (self.clean_prob.mean(axis=0) < 0.5) & (self.predicted != self.labels)
        return issue

    @property
    def order(self) -> NDArray[np.int64]:
        """(N,): sample indices, flagged ones first, each group by score."""
        return np.lexsort((self.label_score, ~self.is_label_issue))

    @property
    def noise_rate(self) -> float:
        """Estimated share of wrong labels."""
        return float(self.is_label_issue.mean())

    @property
    def noise_matrix(self) -> NDArray[np.float64]:
        """(C, C): estimated joint distribution of given (rows) and true label (columns)."""
        believed = np.where(self.is_label_issue, self.predicted, self.labels)
        counts = np.zeros((len(self.classes), len(self.classes)))
        np.add.at(counts, (self.labels, believed), 1)
        return counts / len(self.labels)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The lines of label_issues.csv, worst first."""
        columns = {
            "is_label_issue": self.is_label_issue,
            "label_score": self.label_score,
            "predicted_prob": self.pred_probs.max(axis=1),
        }
        predicted = self.predicted
        for i in self.order.tolist():
            yield {
                "index": i if self.sample_rows is None else int(self.sample_rows[i]),
                "path": "" if self.paths is None else self.paths[i],
                "is_label_issue": bool(columns["is_label_issue"][i]),
                "label_score": float(columns["label_score"][i]),
                "given_label": self.classes[self.labels[i]],
                "predicted_label": self.classes[predicted[i]],
                "predicted_prob": float(columns["predicted_prob"][i]),
                **{f"clean_prob_{k + 1}": float(prob[i]) for k, prob in enumerate(self.clean_prob)},
                **{f"loss_{k + 1}": float(loss[i]) for k, loss in enumerate(self.losses)},
            }

    def to_csv(self) -> str:
        """The text of label_issues.csv."""
        text = io.StringIO()
        writer: csv.DictWriter[str] | None = None
        for row in self.rows():
            if writer is None:
                writer = csv.DictWriter(text, row.keys(), lineterminator="\n")
                writer.writeheader()
            writer.writerow(
                {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}
            )
        return text.getvalue()


def find_issues(
    nets: Sequence[nn.Module],
    data: TrainingData,
    config: Config,
    *,
    classes: tuple[str, ...],
    paths: tuple[str, ...] | None = None,
    rows: NDArray[np.int64] | None = None,
) -> LabelIssues:
    """Judge every sample of the data by the nets as they are; paths and rows (N,) are the samples' own."""
    probs = predict_probs(nets, data).double().cpu()  # (K, N, C)
    labels = data.labels.cpu()
    losses = -probs[:, torch.arange(len(labels)), labels].clamp_min(1e-12).log()
    clean_prob = torch.stack(
        [
            clean_probability(normalise(values), labels, division=config.division, mixture=config.mixture)[0]
            for values in losses
        ]
    )
    if config.keep_plausible:
        rivals = strongest_rivals(probs, labels)
        rival_losses = -probs.gather(2, rivals[..., None]).squeeze(2).clamp_min(1e-12).log()
        clean_prob = torch.maximum(clean_prob, plausibility(losses, rivals, rival_losses, labels))
    return LabelIssues(
        classes=classes,
        paths=paths,
        labels=labels.numpy(),
        pred_probs=probs.mean(dim=0).float().numpy(),
        losses=losses.numpy(),
        clean_prob=clean_prob.numpy(),
        sample_rows=rows,
    )
