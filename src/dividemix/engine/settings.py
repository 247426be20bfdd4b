"""Settings of the optimiser, its schedule and the machine. No torch import."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self

from dividemix.engine.earlier_plans import EarlierPlan, parse_plans, plans_text
from dividemix.errors import InputError
from dividemix.settings import Settings, fields_of, setting


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings(Settings):
    """How long to train, in steps of which size, and at which learning rate."""

    epochs: int = setting(300, "epochs in total", low=1)
    batch_size: int = setting(
        64,
        "DivideMix: labeled samples in a step, next to as many unlabeled; ordinary training takes twice as many",
        low=1,
    )
    balanced_batches: int = setting(
        0, "mini-batches in an epoch, drawn so that given labels are balanced if possible; 0: all samples", low=0
    )
    head_epochs: int = setting(
        0, "epochs at the start that train only the last layer, for a net with pretrained weights", low=0
    )
    lr: float = setting(0.02, "learning rate of SGD", above=0)
    lr_schedule: Literal["step", "cosine"] = setting(
        "step", "step: the rate is divided by 10 after lr_drop_epoch and lr_second_drop; cosine: it falls to zero"
    )
    lr_drop_epoch: int = setting(150, "epochs trained before the rate is divided by 10", low=1)
    lr_second_drop: int = setting(0, "epochs trained before the rate is divided by 10 again; 0: never", low=0)
    momentum: float = setting(0.9, "momentum of SGD", low=0, high=1)
    weight_decay: float = setting(5e-4, "weight decay of SGD", low=0)
    seed: int = setting(1, "seed of everything random: noise, weights, batches, views, mixup", low=0, high=2**63 - 1)
    earlier_plans: str = setting(
        "", "written by a run with minutes: the plans that it replaced, so that its config.yaml repeats it", "TEXT"
    )

    def check(self) -> None:
        """Raise InputError unless the earlier plans are plans of these settings."""
        super().check()
        plans = parse_plans(self.earlier_plans)
        fields = fields_of(type(self))
        if unknown := [name for plan in plans for name in plan.values if name not in fields]:
            raise InputError(f"earlier_plans names {unknown[0]}, which is no setting here: leave earlier_plans out")
        if plans and plans[-1].until > self.epochs:
            raise InputError(f"earlier_plans ends at epoch {plans[-1].until}: epochs ({self.epochs}) must not be less")

    def in_force(self, epoch: int) -> Self:
        """The settings as they are, or were, in force after `epoch` epochs."""
        plans = parse_plans(self.earlier_plans)
        values: dict[str, int] = {}
        for plan in reversed(plans):
            if epoch < plan.until:
                values |= plan.values
        before = plans_text(plan for plan in plans if plan.until <= epoch)
        return replace(self, earlier_plans=before, **values) if values else self  # type: ignore[arg-type]

    def replanned(self, epoch: int, values: Mapping[str, int]) -> Self:
        """The settings with other values, the epochs among them, from now on: after `epoch` epochs."""
        plans = list(parse_plans(self.earlier_plans))
        if epoch and (not plans or plans[-1].until < epoch):
            plans.append(EarlierPlan(epoch, {name: getattr(self, name) for name in sorted(values)}))
        return replace(self, earlier_plans=plans_text(plans), **values)  # type: ignore[arg-type]

    def decided(self, epoch: int) -> dict[str, int]:
        """Lengths of phases that the first `epoch` epochs have decided: a new plan must keep them."""
        return {}

    def learning_rate(self, epoch: int) -> float:
        """The rate in force after `epoch` epochs. If the plan has changed, the rest of the curve is stretched."""
        return self.rate_at(self._share_done(epoch) * self.epochs if self.earlier_plans else epoch)

    def rate_at(self, epoch: float) -> float:
        """The rate after `epoch` epochs of a training whose plan never changes."""
        if self.lr_schedule == "cosine":
            return self.lr * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        num_drops = (epoch >= self.lr_drop_epoch) + (0 < self.lr_second_drop <= epoch)
        return self.lr / float(10**num_drops)

    def _share_done(self, epoch: int) -> float:
        """The share of the schedule after `epoch` epochs: each plan divides what the one before it left."""
        share, begin = 0.0, 0
        plans = [(plan.until, plan.values["epochs"]) for plan in parse_plans(self.earlier_plans)]
        for until, epochs in [*plans, (self.epochs, self.epochs)]:
            end = min(until, epoch)
            if end > begin:
                share += (1 - share) * (end - begin) / (epochs - begin)
                begin = end
        return share

    def num_divided(self, num_samples: int) -> int:
        """n: how many of N samples a mini-batch of B each draws in an epoch."""
        return min(self.balanced_batches * self.batch_size, num_samples) or num_samples


@dataclass(frozen=True, kw_only=True)
class MachineSettings(Settings):
    """Where and with which arithmetic the nets compute."""

    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps, ...")
    precision: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "auto", "arithmetic of the nets; auto: bfloat16 on a GPU that has it, else float32"
    )
    compile: Literal["auto", "always", "never"] = setting(
        "auto", "compile the nets; auto: if the training is so long that this saves time"
    )
    kernels: Literal["auto", "torch", "own"] = setting(
        "auto", "convolutions on a CPU; auto: our own where they are measured to be faster, in a long training"
    )
    reproducible: bool = setting(
        False, "the same bits on all x86 processors with AVX2, also with AVX-512; slower: one thread, no compilation"
    )
    sync_batchnorm: bool = setting(
        False, "BatchNorm over the rows of all processes (torchrun): 1, 2 and 4 processes give the same bits; slower"
    )
