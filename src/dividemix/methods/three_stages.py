"""The schedule of methods that correct labels: labels as given, labels corrected, a final stage on fixed labels.

Tanaka et al. and Yi and Wu train 70, 130 and 120 of 320 epochs. No torch import.
"""

from dataclasses import dataclass

from dividemix.errors import InputError
from dividemix.methods.method import MethodSettings, Phase
from dividemix.settings import setting


@dataclass(frozen=True, kw_only=True)
class StagedSettings(MethodSettings):
    """When the stages begin, and their rates; lr_schedule and lr_drop_epoch are not used."""

    correct_from: float = setting(70 / 320, "share of the epochs before labels are corrected", low=0, high=1)
    final_from: float = setting(200 / 320, "share of the epochs before the final stage", low=0, high=1)
    final_lr: float | None = setting(
        None, "learning rate of the final stage, divided by 10 after each third; none: 2.5 lr", above=0
    )

    @property
    def num_before(self) -> int:
        """How many epochs come before the correction."""
        return round(self.correct_from * self.epochs)

    @property
    def final_epoch(self) -> int:
        """How many epochs come before the final stage."""
        return max(round(self.final_from * self.epochs), self.num_before)

    def check(self) -> None:
        """Raise InputError unless the stages are in order."""
        super().check()
        if self.correct_from > self.final_from:
            raise InputError(
                f"correct_from is {self.correct_from:g}: it must not exceed final_from ({self.final_from:g}); set both"
            )

    def learning_rate(self, epoch: int) -> float:
        """lr, constant and high so that labels are not memorised; in the final stage final_lr, lower in each third."""
        if epoch < self.final_epoch:
            return self.lr
        third = 3 * (epoch - self.final_epoch) // (self.epochs - self.final_epoch)
        return (2.5 * self.lr if self.final_lr is None else self.final_lr) / float(10**third)


def three_phases(s: StagedSettings) -> tuple[Phase, ...]:
    """The stages as phases; only the final one has the epoch to keep."""
    return (
        Phase("given", s.num_before, selects=False),
        Phase("correct", s.final_epoch - s.num_before, selects=False),
        Phase("final", s.epochs - s.final_epoch),
    )
