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
    rows = list(Run.create(tmp_path / "run", job).epochs())
    assert [row["figures"] for row in rows] == [{"trusted": pytest.approx(labels.mean())}] * 4
    assert Run.load(tmp_path / "run").finished


def test_other_methods_train_without_looking_at_trusted_samples(tmp_path: Path) -> None:
    """Oracle: the same job without any."""
    np.savez(tmp_path / "trusted.npz", x_train=toy_arrays()["x_test"], y_train=toy_arrays()["y_test"])
    losses = []
    for name, changes in (("with", {"trusted": str(tmp_path / "trusted.npz")}), ("without", {})):
        run = Run.create(tmp_path / name, toy_job(tmp_path, **changes))
        losses.append([row["losses"] for row in run.epochs()])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("name", [name for name, one in METHODS.items() if not one.needs_vectors])
def test_nets_and_their_averages_start_from_the_given_weights(tmp_path: Path, name: str) -> None:
    """An average was the copy of random weights, which it kept for epochs. The oracle is the file."""
    job = toy_job(tmp_path, method=name)
    _, _, trained = prepare(toy_job(tmp_path, method=name, seed=7))
    weights = {key: tensor.clone() for key, tensor in trained.nets[0].state_dict().items()}
    torch.save(weights, tmp_path / "weights.pt")
    run = Run.create(tmp_path / "run", replace(job, weights=str(tmp_path / "weights.pt")))
    for learner in run.state.learners:
        for net in (learner.net, learner.average):
            for key, tensor in ({} if net is None else net.state_dict()).items():
                torch.testing.assert_close(tensor, weights[key], rtol=0, atol=0)


@pytest.mark.parametrize("name", [name for name, one in METHODS.items() if one.double_backward])
def test_a_method_with_second_derivatives_refuses_float16_whose_gradients_would_vanish(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match="precision is float16, but the method needs second derivatives"):
        prepare(toy_job(tmp_path, method=name, precision="float16", trusted=None))
