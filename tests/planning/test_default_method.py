"""The method for a request that names none. Oracle: what docs/methods.md says of the defaults, by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import toy_arrays

from dividemix.errors import InputError
from dividemix.planning.choices import Choice
from dividemix.planning.default_method import default_method, reason_for
from dividemix.planning.plan import make_draft, make_plan

TEXTS: dict[str, Any] = {"data": "news.csv", "text_column": "text"}
CHECKPOINT = {"encoder": "transformers:x"}


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ({"data": "photos"}, "robust_history"),
        ({"data": "photos", "lambda_u": 5.0}, "robust"),  # a setting that only this method has
        ({"data": "photos", "encoder": "timm:resnet18"}, "robust_vectors"),
        ({"data": "photos", "encoder": "timm:resnet18", "net": "mlp"}, "robust"),
        ({"data": "v.parquet", "features_column": "v"}, "robust_vectors"),
        (TEXTS, "robust_vectors"),
        (TEXTS | {"lambda_u": 5.0}, "robust"),
        (TEXTS | {"net": "linear"}, "robust_vectors"),
        (TEXTS | CHECKPOINT | {"finetune": True}, "selfmix"),
        (TEXTS | CHECKPOINT | {"finetune": "true"}, "selfmix"),  # as a flag says it
        (TEXTS | CHECKPOINT | {"finetune": False}, "robust_vectors"),
        (TEXTS | CHECKPOINT | {"finetune": "false"}, "robust_vectors"),
        ({"data": "people.csv", "target": "risk"}, "cross_fitted"),
    ],
)
def test_the_request_decides(given: dict[str, Any], method: str) -> None:
    assert default_method("default", given) == method


def test_another_preset_has_one_method() -> None:
    assert default_method("cifar10-sym-50", TEXTS) == default_method("cifar10-sym-50", {"data": "a"}) == "dividemix"


def test_rows_in_memory_have_no_target() -> None:
    assert default_method("default", {"data": "data.npz"}, kind="rows") == "cross_fitted"


@pytest.mark.parametrize(
    ("given", "kind", "method"),
    [
        ({"num_folds": 3}, "vectors", "robust_vectors"),
        ({"steps": 5, "epochs": 4}, "texts", "robust_vectors"),
        ({"num_folds": 3}, None, "robust_vectors"),  # a file, which may have vectors
        ({"lambda_u": 5.0}, "vectors", "robust"),
        ({"net": "mlp"}, "vectors", "robust"),
        ({"num_trees": 9}, "rows", "cross_fitted"),
        # What no method has is refused in the name of the one for this data.
        ({"num_folds": 3}, "rows", "cross_fitted"),
        ({"num_folds": 3}, "images", "robust_history"),
        ({"given_share": 0.3}, "vectors", "robust_vectors"),
    ],
)
def test_the_kind_of_data_decides_whose_settings_these_are(given: dict[str, Any], kind: Any, method: str) -> None:
    assert default_method("default", {"data": "data.npz"} | given, kind=kind) == method


def test_a_folder_is_not_taken_for_vectors() -> None:
    with pytest.raises(InputError, match="method robust_history has no setting num_folds"):
        make_draft({"data": "photos", "num_folds": 3})


@pytest.mark.parametrize("kind", ["vectors", "images"])
def test_settings_are_checked_when_the_file_is_read(tmp_path: Path, kind: str) -> None:
    samples = {"features": np.eye(6, dtype=np.float32).repeat(5, axis=0)}
    arrays = toy_arrays() if kind == "images" else samples | {"labels": np.arange(30) % 3}
    np.savez(tmp_path / "data.npz", **arrays)
    given: dict[str, Any] = {"data": str(tmp_path / "data.npz"), "num_folds": 3, "epochs": 4, "device": "cpu"}
    if kind == "images":
        with pytest.raises(InputError, match="method robust_history has no setting num_folds"):
            make_plan(given)
    else:
        job = make_plan(given).job
        assert (job.method, job.values()["num_folds"]) == ("robust_vectors", 3)
        with pytest.raises(InputError, match="method robust_vectors has no setting given_share"):
            make_plan({"data": given["data"], "given_share": 0.3})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"data": "photos"}, None),
        ({"data": "photos", "epochs": 3, "given_share": 0.3}, None),
        (
            {"data": "photos", "temperature": 0.6},
            "instead of robust_history, because you gave temperature, which robust_history does not have",
        ),
        (
            {"data": "photos", "temperature": 0.6, "lambda_u": 5.0},
            "instead of robust_history, because you gave temperature and lambda_u, which robust_history does not have",
        ),
        (TEXTS | {"net": "mlp"}, "instead of robust_vectors, which has no net mlp"),
    ],
)
def test_a_setting_that_chooses_another_method_is_the_reason(given: dict[str, Any], reason: str | None) -> None:
    assert reason_for(default_method("default", given), "default", given) == reason


def test_the_plan_has_the_reason_as_a_warning() -> None:
    """It was one of fifteen lines of settings, and was missed."""
    [choice] = [one for one in make_draft({"data": "photos", "temperature": 0.6}).choices if one.name == "method"]
    told = "instead of robust_history, because you gave temperature, which robust_history does not have"
    assert choice == Choice("method", "robust", told)
    assert str(choice) == f"warning: method robust: {told}"
    assert str(Choice("epochs", 3, "few")) == "epochs 3: few"
    assert make_draft({"data": "photos", "temperature": 0.6, "method": "robust"}).choices == ()
