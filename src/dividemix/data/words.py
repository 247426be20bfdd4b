r"""The words of a text, in any script that separates them.

A word is letters, digits and underscores, with the marks and joiners that follow them. Python's `\w` alone ends a word
at each mark: at a vowel sign of Hindi, or at an accent that is stored as a character of its own.
"""

import functools
import re
import unicodedata

_JOINERS = "\u200c\u200d"


@functools.cache
def word_pattern() -> str:
    """A regular expression that matches each word; it has no groups."""
    marks = "".join(re.escape(char) for char in map(chr, _with_marks()) if unicodedata.category(char).startswith("M"))
    return rf"\w[\w{marks}{_JOINERS}]*"


def plain(text: str) -> str:
    """The text in lower case, an accent stored in its letter where Unicode has one such character."""
    return unicodedata.normalize("NFC", text).lower()


def _with_marks() -> list[int]:
    """Code points of the planes that have marks."""
    return [*range(0x20000), *range(0xE0000, 0xE1000)]
