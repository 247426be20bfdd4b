"""How long a job takes. Oracles: sums worked out by hand, and the phases that the methods say they have."""

from pathlib import Path
from typing import Any

import pytest
from toys import NUM_TEST, NUM_TRAIN, toy_job

from dividemix.methods import METHODS, find_method
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.planning.job import Job
from dividemix.planning.pace import Pace, PhasePace, measure

pytestmark = pytest.mark.filterwarnings("error::dividemix.errors.DegenerateDivisionWarning")

PHASES = {"warmup": PhasePace(0.002), "mix": PhasePace(0.001, kept=0.01)}


def job_of(**values: Any) -> Job:
    return Job.of({"data": "fashion", "epochs": 10, "warmup_epochs": 3} | values)


def test_a_phase_takes_its_epochs_and_a_division_counts_the_labels_that_are_kept() -> None:
    """Of 100 samples 60 keep their label: 3 epochs of 0.2 s, and 7 of 0.1 s for all and 0.6 s for those kept."""
    pace = Pace(PHASES, evaluate=0.0, num_train=100, num_test=50)
    assert pace.seconds(job_of(noise="symmetric:0.4")) == pytest.approx(3 * 0.2 + 7 * (0.1 + 0.6))


def test_noise_that_nobody_knows_is_taken_to_leave_85_percent() -> None:
    pace = Pace(PHASES, evaluate=0.0, num_train=100, num_test=50)
    for noise in ("none", "file:labels.json"):
        assert pace.seconds(job_of(noise=noise)) == pytest.approx(3 * 0.2 + 7 * (0.1 + 0.85))


@pytest.mark.parametrize(("test_epochs", "num_tests"), [(True, 11), (False, 1)])
def test_held_out_images_are_evaluated_each_epoch_test_images_too_or_at_the_end(
    test_epochs: bool, num_tests: int
) -> None:
    """At the end the kept model is tested, and judges the training images."""
    pace = Pace({"warmup": PhasePace(0.0), "mix": PhasePace(0.0)}, 0.004, num_train=100, num_test=50, num_held_out=7)
    expected = 0.004 * (10 * 7 + num_tests * 50 + 100)
    assert pace.seconds(job_of(test_epochs=test_epochs)) == pytest.approx(expected)


def test_balanced_batches_make_an_epoch_of_their_own_length() -> None:
    """5 batches: of 2 B = 8 samples in an ordinary epoch, of B = 4 in one with divisions, which keep 60 %."""
    pace = Pace(PHASES, evaluate=0.0, num_train=100, num_test=0)
    job = job_of(noise="symmetric:0.4", balanced_batches=5, batch_size=4)
    assert pace.seconds(job) == pytest.approx(3 * 40 * 0.002 + 7 * (20 * 0.001 + 12 * 0.01))


class ThreePhases(Method):
    """A method with phases of other names and lengths."""

    def phases(self, s: MethodSettings) -> tuple[Phase, ...]:
        """One epoch, none, and all others."""
        return Phase("first", 1), Phase("never", 0), Phase("rest", s.epochs - 1)

    def epoch(self, state: Any, sets: TrainingSets, s: MethodSettings) -> EpochReport:
        """Nothing is trained."""
        return EpochReport({"loss": [0.0]})


def test_the_method_says_which_phases_there_are_and_one_without_epochs_needs_no_pace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(METHODS, "three_phases", ThreePhases())
    pace = Pace({"first": PhasePace(0.03), "rest": PhasePace(0.001)}, evaluate=0.0, num_train=100, num_test=0)
    job = Job.of({"data": "fashion", "epochs": 10, "method": "three_phases"})
    assert pace.seconds(job) == pytest.approx(3.0 + 9 * 0.1)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs_vectors])
def test_every_phase_of_a_method_is_measured(tmp_path: Path, method: str) -> None:
    job = toy_job(tmp_path, method=method)
    pace = measure(job)
    phases = find_method(method).phases(job.settings)
    assert list(pace.phases) == [phase.name for phase in phases]
    assert (pace.num_train, pace.num_test) == (NUM_TRAIN, NUM_TEST)
    assert pace.evaluate > 0
    assert all(phase_pace.each > 0 for phase_pace in pace.phases.values())
    # Only an epoch with divisions depends on the labels that are kept, unless it must cost more than was measured.
    assert all(pace.phases[phase.name].kept == 0 for phase in phases if phase.name != "mix")
    assert 0 < pace.seconds(job) < 600


def test_a_job_that_only_warms_up_has_a_pace_for_a_longer_one(tmp_path: Path) -> None:
    """A phase without epochs had none, and --minutes also asks for trainings in which it has some."""
    job = toy_job(tmp_path, epochs=2, warmup_epochs=2)
    pace = measure(job)
    longer = Job.of(job.values() | {"epochs": 4})
    assert 0 < pace.seconds(job) < pace.seconds(longer) < 600
    assert pace.phases["mix"] == PhasePace(
        find_method(job.method).phases(job.settings)[1].cost * pace.phases["warmup"].each
    )


def test_a_phase_costs_at_least_what_the_method_states(tmp_path: Path) -> None:
    """After a few steps every label is kept, and the timed epoch has no unlabeled sample."""
    job = toy_job(tmp_path, method="robust", noise="none")
    phases = find_method("robust").phases(job.settings)
    pace = measure(job)
    warmup, mix = (pace.phases[phase.name] for phase in phases)
    assert mix.each + mix.kept >= 0.999 * phases[1].cost * warmup.each
