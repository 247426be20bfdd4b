"""Ordinary training, what the paper calls Cross-Entropy: one net that trusts every given label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dividemix.lazy import F
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets

if TYPE_CHECKING:
    from dividemix.engine.state import State


class CrossEntropy(Method):
    """Cross-entropy with the given labels, in batches of 2 B."""

    def epoch(self, state: State, sets: TrainingSets, s: MethodSettings) -> EpochReport:
        """An epoch of ordinary training, which is the paper's warm-up without a penalty."""
        from dividemix.algorithm.warm_up import warm_up

        terms = warm_up(state, 0, sets.train, s, F.cross_entropy)
        return EpochReport({"loss": [terms["loss"].item()]})


METHOD = CrossEntropy()
