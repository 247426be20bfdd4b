"""dividemix presets against the table of presets."""

import pytest

from dividemix.cli import main
from dividemix.planning.presets import PRESETS

pytestmark = pytest.mark.usefixtures("workshop")


def test_presets_are_listed_with_their_origin_and_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["presets"]) == 0
    text = capsys.readouterr().out
    for name, preset in PRESETS.items():
        assert name in text
        assert preset.origin in text
        assert all(f"{key}={value}" in text for key, value in preset.fields.items())


def test_the_methods_of_the_default_preset_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It printed method=robust, which is trained only if a setting of it is given."""
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("default "))
    line = next(line for line in lines[first:] if "method=" in line)
    assert line.split("  lr_schedule")[0].strip() == (
        "method=robust_history for images, robust_vectors for vectors and texts, cross_fitted for rows of a table,"
        " selfmix for texts with finetune, robust if a setting of it is given"
    )
