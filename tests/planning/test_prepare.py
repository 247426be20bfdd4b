"""From a job to nets that are ready to train: what a method needs of the data."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import toy_arrays, toy_job

from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.methods import METHODS
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets
from dividemix.planning.prepare import prepare
from dividemix.runs.run import Run


class Trusting(Method):
    """A method that needs trusted samples, and reports the mean of their labels."""

    needs_trusted = True

    def start(self, state: State, sets: TrainingSets, s: Any) -> None:
        """Keep a value per sample."""
        assert sets.trusted is not None
        state.samples["trust"] = torch.ones(len(sets.train.labels))

    def epoch(self, state: State, sets: TrainingSets, s: MethodSettings) -> EpochReport:
        """Nothing is trained."""
        assert sets.trusted is not None
        return EpochReport({"loss": [0.0]}, figures={"trusted": sets.trusted.labels.float().mean().item()})


@pytest.fixture(autouse=True)
def _trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "trusting", Trusting())


def test_a_method_that_needs_trusted_samples_is_refused_without_any_in_one_line(tmp_path: Path) -> None:
    job = replace(toy_job(tmp_path, method="trusting"), trusted=None)
    for wanted in (job, replace(job, data="missing.npz")):  # known before data is read
        with pytest.raises(InputError) as caught:
            prepare(wanted)
        assert str(caught.value) == "method trusting needs samples with trusted labels: name them by trusted"
    with pytest.raises(InputError, match="trusted"):
        Run.create(tmp_path / "run", job)
    assert not (tmp_path / "run").exists()


def test_a_method_gets_the_trusted_samples(tmp_path: Path) -> None:
    labels = toy_arrays()["y_test"][:7]
    np.savez(tmp_path / "trusted.npz", x_train=toy_arrays()["x_test"][:7], y_train=labels)
    job = toy_job(tmp_path, method="trusting", trusted=str(tmp_path / "trusted.npz"))
    _, _, state = prepare(job)
    assert state.samples.keys() == {"trust"}
    rows = list(Run.create(tmp_path / "run", job).train())
    assert [row["figures"] for row in rows] == [{"trusted": pytest.approx(labels.mean())}] * 4
    assert Run.load(tmp_path / "run").finished


def test_other_methods_train_without_looking_at_trusted_samples(tmp_path: Path) -> None:
    """Oracle: the same job without any."""
    np.savez(tmp_path / "trusted.npz", x_train=toy_arrays()["x_test"], y_train=toy_arrays()["y_test"])
    losses = []
    for name, changes in (("with", {"trusted": str(tmp_path / "trusted.npz")}), ("without", {})):
        run = Run.create(tmp_path / name, toy_job(tmp_path, **changes))
        losses.append([row["losses"] for row in run.train()])
    assert losses[0] == losses[1]
