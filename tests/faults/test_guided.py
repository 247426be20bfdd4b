"""The corpus of the guided fuzzing, read again. Oracle: a reader takes bytes, or refuses them in one line."""

from pathlib import Path

import pytest
from guided import CORPUS, attempt, seeds_of, targets

NAMES = sorted(path.stem for path in CORPUS.glob("*.txt"))


@pytest.mark.parametrize("name", NAMES)
def test_every_input_of_the_corpus_is_read_or_refused(name: str, tmp_path: Path) -> None:
    read = targets(tmp_path)[name]
    for content in seeds_of(name):
        attempt(read, content)


def test_every_reader_has_a_corpus(tmp_path: Path) -> None:
    assert sorted(targets(tmp_path)) == NAMES
