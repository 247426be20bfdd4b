"""For images and more time: our recipe for unknown noise. DivideMix with two nets that keep plausible labels.

What differs from Algorithm 1 (docs/fidelity.md): a label is dropped only if the nets together find another class far
more plausible; every label is kept while the estimated noise is low; lambda_u follows the estimated noise; losses
may be compared within each class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from dividemix.algorithm.settings import PaperSettings
from dividemix.methods import dividemix
from dividemix.methods.method import EpochReport, Judgement, Method, Phase, TrainingSets
from dividemix.settings import setting, with_default

if TYPE_CHECKING:
    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State


@dataclass(frozen=True, kw_only=True)
class RobustSettings(dividemix.DivideMixSettings):
    """The settings of DivideMix with defaults for unknown noise and short schedules, and the recipe's own."""

    warmup_epochs: int = with_default(PaperSettings, "warmup_epochs", 1)
    confidence_penalty: bool = with_default(PaperSettings, "confidence_penalty", True)
    clean_threshold: float = with_default(PaperSettings, "clean_threshold", 0.15)
    loss_window: int = with_default(PaperSettings, "loss_window", 5)  # plausibilities, too
    alpha: float = with_default(PaperSettings, "alpha", 0.5)
    norm_per_view: bool = with_default(PaperSettings, "norm_per_view", False)
    labeled_only: bool = with_default(PaperSettings, "labeled_only", True)
    division: Literal["global", "per_class"] = setting(
        "global", "global: one mixture over all losses; per_class: one for each given label"
    )
    keep_plausible: bool = setting(
        True,
        "w_i is at least the plausibility of the label, compared with the most likely other class, by both networks",
    )
    keep_all_up_to: float = setting(
        0.125, "estimated noise below which every label is kept, however large its loss", low=0, high=1
    )
    lambda_u_auto: bool = setting(
        True, "scale lambda_u by the estimated noise: by 0 up to 25 %, by 1 from 50 % on, linear between"
    )

    def check_labeled_only(self) -> None:
        """Raise InputError if labeled_only would drop a loss whose weight does not follow the noise."""
        if not self.lambda_u_auto:
            super().check_labeled_only()


class Robust(Method):
    """DivideMix for unknown noise."""

    settings = RobustSettings

    def num_nets(self, s: RobustSettings) -> int:
        """K: two, or one without co-training."""
        return s.num_nets

    def phases(self, s: RobustSettings) -> tuple[Phase, ...]:
        """Those of DivideMix. With strong views an epoch of the second costs more, unless all labels are kept."""
        warmup, mix = dividemix.METHOD.phases(s)
        return warmup, replace(mix, cost=4.5)

    def start(self, state: State, sets: TrainingSets, s: RobustSettings) -> None:
        """Make room for the losses and plausibilities of the last divisions."""
        from dividemix.methods import keep_labels

        dividemix.METHOD.start(state, sets, s)
        keep_labels.start(state, sets.train, s)

    def epoch(self, state: State, sets: TrainingSets, s: RobustSettings) -> EpochReport:
        """An epoch of Algorithm 1 with the divisions of keep_labels."""
        from dividemix.algorithm.dividemix import train_epoch
        from dividemix.methods.keep_labels import select

        if state.epoch < s.warmup_epochs:
            return dividemix.METHOD.epoch(state, sets, s)
        losses, divisions, noise = select(state, sets.train, s)
        if s.lambda_u_auto:
            s = replace(s, lambda_u=s.lambda_u * noise_weight(noise))
        terms = [train_epoch(state, k, division, sets.train, s) for k, division in enumerate(divisions)]
        in_force = dividemix.mean_lambda_u(state.epoch, divisions, s)
        figures = {"noise_rate": noise, "lambda_u": in_force, "lambda_u_full": s.lambda_u}
        return EpochReport(dividemix.by_term(terms), divisions, losses, figures)

    def judge(self, state: State, data: TrainingData, s: RobustSettings) -> Judgement:
        """Each net's opinion of every given label, formed as in training."""
        from dividemix.methods.keep_labels import judge

        return judge(state, data, s)


def noise_weight(noise_rate: float) -> float:
    """The share of lambda_u for an estimated noise rate: 0 up to 25 %, 1 from 50 % on, linear between.

    Table 7's CIFAR-10 columns as a rule: lambda_u is 0 at 20 % noise and 25 at 50 %.
    """
    return min(max((noise_rate - 0.25) / 0.25, 0.0), 1.0)


METHOD = Robust()
