"""Plans that were replaced: the settings in force in each epoch, and a rate worked out step by step."""

import math
from dataclasses import replace

import pytest

from dividemix.engine.earlier_plans import EarlierPlan, parse_plans, plans_text
from dividemix.engine.settings import ScheduleSettings
from dividemix.errors import InputError
from dividemix.methods.dividemix import DivideMixSettings

PLAN = DivideMixSettings(epochs=20, warmup_epochs=4, rampup_epochs=16, lr=1.0, lr_schedule="cosine")


def revised() -> DivideMixSettings:
    """20 epochs, after two of them 12, after five of them 9."""
    s = PLAN.replanned(2, {"epochs": 12, "warmup_epochs": 3, "rampup_epochs": 9})
    return s.replanned(5, {"epochs": 9, "warmup_epochs": 3, "rampup_epochs": 6})


def test_each_epoch_has_the_settings_that_it_was_trained_with() -> None:
    s = revised()
    lengths = [(one.epochs, one.warmup_epochs, one.rampup_epochs) for one in map(s.in_force, range(9))]
    assert lengths == [(20, 4, 16)] * 2 + [(12, 3, 9)] * 3 + [(9, 3, 6)] * 4
    assert s.in_force(0) == PLAN
    assert s.in_force(5) == s.in_force(8) == s


def test_a_value_that_only_the_second_revision_changes_is_right_before_the_first() -> None:
    s = PLAN.replanned(2, {"epochs": 12}).replanned(5, {"epochs": 9, "warmup_epochs": 5})
    assert s.in_force(1) == PLAN
    assert s.in_force(3) == replace(PLAN, epochs=12, earlier_plans="2: epochs=20")


def test_a_plan_that_is_revised_twice_after_the_same_epoch_is_replaced() -> None:
    s = PLAN.replanned(2, {"epochs": 12}).replanned(2, {"epochs": 15})
    assert (s.epochs, s.earlier_plans) == (15, "2: epochs=20")
    assert PLAN.replanned(0, {"epochs": 15}) == replace(PLAN, epochs=15)


def test_the_rate_follows_the_share_of_the_schedule_that_is_left() -> None:
    """Oracle: walk through the epochs; each one takes an equal part of what its plan has left."""
    s, share = revised(), 0.0
    for epoch in range(9):
        now = s.in_force(epoch)
        assert now.learning_rate(epoch) == pytest.approx((1 + math.cos(math.pi * share)) / 2)
        share += (1 - share) / (now.epochs - epoch)
    assert share == pytest.approx(1.0)


def test_past_rates_do_not_depend_on_later_plans() -> None:
    before = PLAN.replanned(2, {"epochs": 12, "warmup_epochs": 3, "rampup_epochs": 9})
    assert [revised().in_force(e).learning_rate(e) for e in range(5)] == [
        before.in_force(e).learning_rate(e) for e in range(5)
    ]


@pytest.mark.parametrize("schedule", ["step", "cosine"])
def test_a_plan_that_never_changes_has_the_same_bits_as_ever(schedule: str) -> None:
    s = ScheduleSettings(epochs=17, lr=0.04, lr_schedule=schedule, lr_drop_epoch=9)  # type: ignore[arg-type]
    for epoch in range(17):
        cosine = 0.04 * (1 + math.cos(math.pi * epoch / 17)) / 2
        assert s.learning_rate(epoch) == (cosine if schedule == "cosine" else 0.04 / (10.0 if epoch >= 9 else 1.0))


def test_an_extended_run_follows_the_longer_schedule() -> None:
    s = replace(revised(), epochs=11)
    shares = [s._share_done(epoch) for epoch in (5, 8, 11)]
    assert shares == pytest.approx([0.37, 0.37 + 0.63 / 2, 1.0])  # 0.1 after 2 epochs, 0.9 * 3 / 10 more after 5


def test_text_and_plans_are_the_same() -> None:
    text = revised().earlier_plans
    assert text == "2: epochs=20 rampup_epochs=16 warmup_epochs=4; 5: epochs=12 rampup_epochs=9 warmup_epochs=3"
    assert plans_text(parse_plans(text)) == text
    assert parse_plans("2: epochs=3") == (EarlierPlan(2, {"epochs": 3}),)


@pytest.mark.parametrize(
    "text",
    [
        *("x", "3", "3:", "3: epochs", "3: warmup_epochs=2", "3: epochs=2", "0: epochs=2", "5: epochs=9; 5: epochs=8"),
        *("5: epochs=9;3: epochs=8", "3: epochs=-4", "3: epochs=4 ", "3: epochs=4; ", "3: epochs=9999999999"),
    ],
)
def test_other_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"earlier_plans is .*: it must be the text"):
        ScheduleSettings(epochs=10, earlier_plans=text)


def test_plans_must_fit_the_settings() -> None:
    with pytest.raises(InputError, match="earlier_plans names colour, which is no setting here"):
        ScheduleSettings(epochs=10, earlier_plans="3: epochs=4 colour=3")
    with pytest.raises(InputError, match=r"earlier_plans ends at epoch 11: epochs \(10\)"):
        ScheduleSettings(epochs=10, earlier_plans="11: epochs=12")
