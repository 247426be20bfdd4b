"""The examples in docstrings. Oracle: doctest, which compares what is printed with what the docstring shows."""

import doctest
import importlib
from pathlib import Path

import pytest

import dividemix

PACKAGE = Path(dividemix.__file__).parent
WITH_EXAMPLES = [
    ".".join(("dividemix", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if "\n    >>> " in path.read_text(encoding="utf-8")
]


def test_there_are_examples() -> None:
    assert "dividemix.estimator" in WITH_EXAMPLES


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_give_what_they_show(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    found = [example for test in doctest.DocTestFinder().find(module) for example in test.examples]
    assert found
    assert not any(doctest.SKIP in example.options for example in found)
    assert doctest.testmod(module).failed == 0
