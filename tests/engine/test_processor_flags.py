"""What is known of the processor. Oracle: files in the form in which Linux describes processors."""

from pathlib import Path

import pytest

from dividemix.engine import processor
from dividemix.engine.processor import computes_in_bfloat16, processor_name

INFO = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz: fast\nflags\t\t: fpu {} sse\n\nmodel name\t: other\n"


@pytest.mark.parametrize(
    ("flag", "expected"), [("avx512_bf16", True), ("amx_bf16", True), ("avx512f", False), ("avx512_bf16x", False)]
)
def test_bfloat16_is_known_by_the_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, expected: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(INFO.format(flag))
    monkeypatch.setattr(processor, "Path", lambda _: tmp_path / "cpuinfo")
    assert computes_in_bfloat16() == expected
    assert processor_name() == "Some CPU @ 2 GHz: fast"


def test_where_nothing_is_described_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "Path", lambda _: tmp_path / "missing")
    assert not computes_in_bfloat16()
    assert processor_name()
