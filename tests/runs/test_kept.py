"""One run, one model: all that predicts is of the kept epoch of this object. Oracle: the model that it saved."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from toys import toy_arrays, toy_job, trained

from dividemix import InputError, Model, Run


@pytest.fixture
def _second_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("run", "kept", "checkpoints"):
        monkeypatch.setattr(f"dividemix.runs.{module}.best_epoch", lambda rows: min(len(rows), 2))


@pytest.mark.usefixtures("_second_is_best")
def test_all_that_predicts_is_of_the_kept_epoch(tmp_path: Path) -> None:
    arrays = toy_arrays()
    run = trained(tmp_path / "run", toy_job(tmp_path, holdout=0.2, lr=0.05))
    saved = Model.from_pretrained(tmp_path / "run", "cpu")
    for one in (run, Run.load(tmp_path / "run")):
        assert (one.kept_epoch, one.state.epoch) == (2, 4)
        assert one.model() is one.model()
        np.testing.assert_array_equal(one.predict_proba(arrays["x_test"]), saved.predict_proba(arrays["x_test"]))
        np.testing.assert_array_equal(one.predict(arrays["x_test"]), saved.predict(arrays["x_test"]))
        of_test = saved.predict_proba(arrays["x_test"])
        np.testing.assert_allclose(one.test_probs().mean(axis=0), of_test, atol=1e-6)
        assert np.abs(one.test_probs_now().mean(axis=0) - of_test).max() > 1e-3  # the last epoch predicts otherwise
        of_all = saved.predict_proba(arrays["x_train"])
        np.testing.assert_allclose(one.label_issues().pred_probs, of_all, atol=1e-6)


def test_a_run_that_trains_on_predicts_by_its_new_epoch(tmp_path: Path) -> None:
    images = toy_arrays()["x_train"]
    run = trained(tmp_path / "run", toy_job(tmp_path, lr=0.05))
    model, before = run.model(), run.predict_proba(images)
    run.extend(2)
    with closing(run.epochs()) as epochs:
        next(epochs)
        after = run.predict_proba(images)
        np.testing.assert_allclose(run.label_issues().pred_probs, after, atol=1e-6)
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_array_equal(model.predict_proba(images), before)


@pytest.mark.usefixtures("_second_is_best")
def test_a_run_never_answers_by_the_model_of_another(tmp_path: Path) -> None:
    """The other one overwrites its directory: the first has its model, or says that it is gone."""
    images = toy_arrays()["x_train"]
    first = trained(tmp_path / "run", toy_job(tmp_path, holdout=0.2, lr=0.05))
    loaded = Run.load(tmp_path / "run")
    expected = Model.from_pretrained(tmp_path / "run", "cpu").predict_proba(images)
    other = Run.create(tmp_path / "run", toy_job(tmp_path, holdout=0.2, lr=0.05, seed=3), overwrite=True)
    other.train()
    assert np.abs(other.predict_proba(images) - expected).max() > 1e-3
    np.testing.assert_array_equal(first.predict_proba(images), expected)
    with pytest.raises(InputError, match="not of the best epoch"):
        loaded.predict_proba(images)


def test_a_run_without_an_epoch_predicts_nothing(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", toy_job(tmp_path))
    with pytest.raises(InputError, match="no epoch is trained yet"):
        run.predict(toy_arrays()["x_test"])
