"""Every number of the paper as one frozen dataclass: its symbol, its default, its check.

Nothing here imports torch, so that the command line can list and check every field at once.
"""

import contextlib
import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from dividemix.errors import InputError


def _field(default: Any, doc: str, *, low: float = -math.inf, high: float = math.inf, above: float = -math.inf) -> Any:
    """A dataclass field with its help text and its range: low <= value <= high, and value > above."""
    return dataclasses.field(default=default, metadata={"doc": doc, "low": low, "high": high, "above": above})


def _choice(default: str, doc: str, *choices: str) -> Any:
    """A dataclass field that takes one of a few words."""
    return dataclasses.field(default=default, metadata={"doc": doc, "choices": choices})


@dataclass(frozen=True, kw_only=True)
class Config:
    """How to train. Defaults are the paper's CIFAR setting with a fixed lambda_u of 25; `presets.py` has the rest."""

    net: str = _field(
        "preact_resnet18",
        "network: preact_resnet18, resnet50, inception_resnet_v2, small_cnn, or a factory as package.module:function",
    )
    net_width: int = _field(64, "channels of the first stage (64 is the paper's)", low=1)
    final_norm: bool = _field(False, "BatchNorm and ReLU before the pooling of a pre-activation net (He et al.)")

    epochs: int = _field(300, "epochs in all, warm-up included", low=1)
    warmup_epochs: int = _field(10, "epochs of ordinary training on all samples before the first division", low=1)
    batch_size: int = _field(64, "B: labeled samples, and unlabeled ones, in a step; warm-up takes 2 B", low=1)
    balanced_batches: int = _field(
        0, "mini-batches drawn for an epoch, given labels balanced as far as there are samples; 0: all samples", low=0
    )
    lr: float = _field(0.02, "learning rate of SGD", above=0)
    lr_schedule: str = _choice("step", "step: divided by 10 after lr_drop_epoch; cosine: to zero", "step", "cosine")
    lr_drop_epoch: int = _field(150, "epochs trained before the rate is divided by 10", low=1)
    momentum: float = _field(0.9, "momentum of SGD", low=0, high=1)
    weight_decay: float = _field(5e-4, "weight decay of SGD", low=0)

    co_training: bool = _field(True, "two networks that divide and guess for each other; false: one, for itself")
    confidence_penalty: bool = _field(False, "subtract the predictions' entropy from the warm-up loss (Eq. 2)")
    clean_threshold: float = _field(0.5, "tau: clean probability from which a sample keeps its label", low=0, high=1)
    loss_window: int = _field(
        1, "epochs whose normalised losses (and plausibilities) are averaged before samples are divided", low=1
    )
    mixture: str = _choice("gaussian", "what models the losses: gaussian, or beta (Arazo et al.)", "gaussian", "beta")
    division: str = _choice(
        "global",
        "global: one mixture over all losses; per_class: one for each given label",
        "global",
        "per_class",
    )
    keep_plausible: bool = _field(
        False, "w_i is at least the label's share against the likeliest other class, as the networks together see it"
    )
    keep_all_up_to: float = _field(
        0.0, "estimated noise below which every label is kept, however large its loss", low=0, high=1
    )

    num_views: int = _field(2, "M: augmented views of each sample", low=1)
    refine_labels: bool = _field(True, "labeled samples get refined labels (Eq. 3, 4); false: they keep the given ones")
    temperature: float = _field(0.5, "T: sharpening temperature", above=0)
    alpha: float = _field(4.0, "alpha: parameter of mixup's Beta distribution", above=0)
    mixup_per_sample: bool = _field(False, "draw mixup's lambda for each pair (the paper's text), not once a step")
    norm_per_view: bool = _field(
        True, "while labels are made, move BatchNorm's running statistics once for each view (released code), not once"
    )
    lambda_u: float = _field(25.0, "weight of the loss on unlabeled samples", low=0)
    lambda_u_auto: bool = _field(
        False, "weigh lambda_u by the estimated noise: 0 up to 25 %, all of it from 50 % on, linear between"
    )
    rampup_epochs: int = _field(16, "epochs over which lambda_u grows linearly from zero after warm-up", low=0)
    lambda_r: float = _field(1.0, "weight of the regulariser against predicting one class", low=0)
    labeled_only: bool = _field(
        False, "while lambda_u is 0, unlabeled samples only serve as mixing partners: a third less to compute"
    )

    crop_padding: int = _field(4, "pixels padded on each side before the random crop", low=0)
    crop_size: int = _field(0, "side of the crops, random in training, else at the centre; 0: the images' own", low=0)
    flip: bool = _field(True, "mirror images at random")

    seed: int = _field(1, "seed of everything random: noise, weights, batches, views, mixup", low=0, high=2**63 - 1)
    device: str = _field("auto", "auto, cpu, cuda, cuda:1, mps, ...")
    precision: str = _choice(
        "auto",
        "arithmetic of the nets; auto: float32 on a CPU, bfloat16 or else float16 on a GPU",
        "auto",
        "float32",
        "bfloat16",
        "float16",
    )
    compile: str = _choice(
        "auto", "compile the nets; auto: where the training is long enough to pay for it", "auto", "always", "never"
    )

    def __post_init__(self) -> None:
        """Check every field against its type and range.

        Raises:
            InputError: naming the field, its value, what is allowed.
        """
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _checked(field, getattr(self, field.name)))
        if self.warmup_epochs > self.epochs:
            raise InputError(
                f"warmup_epochs is {self.warmup_epochs}: it must not exceed epochs ({self.epochs}); set both"
            )
        if self.batch_size * self.num_views == 1:
            raise InputError("batch_size 1 with num_views 1 gives BatchNorm a single image: raise one of them")
        if self.labeled_only and self.lambda_u > 0 and not self.lambda_u_auto:
            raise InputError(f"labeled_only drops the loss that lambda_u ({self.lambda_u:g}) weighs: set --lambda_u 0")
        if self.balanced_batches and self.loss_window > 1:
            raise InputError(
                f"loss_window is {self.loss_window}: with balanced_batches each epoch has other samples, whose losses"
                " cannot be averaged; set one of them to its default"
            )

    @property
    def net_words(self) -> str:
        """The net in words, with its width if that is a setting of it."""
        return self.net if self.net in ("resnet50", "inception_resnet_v2") else f"{self.net} of width {self.net_width}"

    def num_divided(self, num_samples: int) -> int:
        """n: how many of N samples an epoch divides."""
        return min(self.balanced_batches * self.batch_size, num_samples) or num_samples


def _checked(field: dataclasses.Field[Any], value: Any) -> Any:
    """The value, an int widened to float where a float is meant; raises InputError outside type or range."""
    kind = field.type
    if kind is float and type(value) is int:
        with contextlib.suppress(OverflowError):
            value = float(value)
    if type(value) is not kind:
        raise InputError(f"{field.name} is {value!r}: {_KIND_NAMES[kind]} is needed")
    if choices := field.metadata.get("choices"):
        if value not in choices:
            raise InputError(f"{field.name} is {value!r}: allowed are {', '.join(choices)}")
    elif kind in (int, float):
        low, high, above = (field.metadata[bound] for bound in ("low", "high", "above"))
        if not (low <= value <= high and value > above and abs(value) < _LIMITS[kind]):
            raise InputError(f"{field.name} is {value}: {describe_range(field)} is needed")
    return value


def describe_range(field: dataclasses.Field[Any]) -> str:
    """The field's type and range in words, as error messages show them."""
    if choices := field.metadata.get("choices"):
        return " or ".join(choices)
    words = _KIND_NAMES[field.type]
    low, high, above = (field.metadata[bound] for bound in ("low", "high", "above"))
    if math.isfinite(above):
        words += f" above {above:g}"
    elif math.isfinite(low):
        words += f" from {low:g}"
    return words + (f" to {high:g}" if math.isfinite(high) else "")


_LIMITS: dict[Any, float] = {int: 2**63, float: math.inf}
_KIND_NAMES: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
