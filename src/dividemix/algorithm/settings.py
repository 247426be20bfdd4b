"""The numbers of the paper and the switches of the released code. No torch import.

Defaults are the paper's CIFAR setting with lambda_u 25, the most frequent value in Table 7.
"""

from dataclasses import dataclass
from typing import Literal

from dividemix.engine.settings import ScheduleSettings
from dividemix.errors import InputError
from dividemix.settings import setting

MixtureName = Literal["gaussian", "beta"]


@dataclass(frozen=True, kw_only=True)
class PaperSettings(ScheduleSettings):
    """What Algorithm 1 reads."""

    warmup_epochs: int = setting(10, "epochs of ordinary training on all samples before the first division", low=1)
    co_training: bool = setting(True, "two networks that divide and guess for each other; false: one, for itself")
    confidence_penalty: bool = setting(False, "subtract the predictions' entropy from the warm-up loss (Eq. 2)")
    clean_threshold: float = setting(0.5, "tau: clean probability from which a sample keeps its label", low=0, high=1)
    loss_window: int = setting(
        1, "epochs whose normalised losses are averaged before samples are divided (released code: 5 at 90 %)", low=1
    )
    mixture: Literal["gaussian", "beta"] = setting(
        "gaussian", "what models the losses: gaussian, or beta (Arazo et al.)"
    )
    num_views: int = setting(2, "M: augmented views of each sample", low=1, high=1000)
    refine_labels: bool = setting(True, "refine the labels of labeled samples (Eq. 3, 4); false: keep the given ones")
    temperature: float = setting(0.5, "T: sharpening temperature", above=0)
    alpha: float = setting(4.0, "alpha: parameter of mixup's Beta distribution", above=0)
    mixup_per_sample: bool = setting(False, "draw mixup's lambda for each pair (the paper's text), not once a step")
    norm_per_view: bool = setting(
        True, "while labels are guessed, update BatchNorm's running statistics for each view (released code), not once"
    )
    lambda_u: float = setting(25.0, "weight of the loss on unlabeled samples", low=0)
    rampup_epochs: int = setting(16, "epochs over which lambda_u grows linearly from zero after warm-up", low=0)
    lambda_r: float = setting(1.0, "weight of the regulariser against predicting one class", low=0)
    labeled_only: bool = setting(
        False, "while lambda_u is 0, use unlabeled samples only as mixing partners: a third less to compute"
    )

    @property
    def num_nets(self) -> int:
        """K: two, or one that is its own peer (the ablation without co-training)."""
        return 2 if self.co_training else 1

    def check(self) -> None:
        """Raise InputError unless the settings fit each other."""
        super().check()
        if self.warmup_epochs > self.epochs:
            raise InputError(
                f"warmup_epochs is {self.warmup_epochs}: it must be at most epochs ({self.epochs}); lower it, or raise"
                " epochs"
            )
        if self.batch_size * self.num_views == 1:
            raise InputError("batch_size 1 with num_views 1 gives BatchNorm a single image: raise one of them")
        if self.balanced_batches and self.loss_window > 1:
            raise InputError(
                f"loss_window is {self.loss_window}: with balanced_batches each epoch has other samples, whose losses"
                " cannot be averaged; set loss_window to 1 or balanced_batches to 0"
            )
        self.check_labeled_only()

    def check_labeled_only(self) -> None:
        """Raise InputError if labeled_only would drop a loss that has a weight."""
        if self.labeled_only and self.lambda_u > 0:
            raise InputError(f"labeled_only drops the loss that lambda_u ({self.lambda_u:g}) weighs: set lambda_u to 0")
