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
