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
    parts = [f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in _ranges_of_marks()]
    joined = rf"[{''.join(parts)}{_JOINERS}]"
    return rf"\w+(?:(?![\x00-\x7f]){joined}\w*)*"  # a mark is never ASCII: most ends of words are seen at once


def plain(text: str) -> str:
    """The text in lower case, an accent stored in its letter where Unicode has one such character."""
    return unicodedata.normalize("NFC", text).lower()


def _ranges_of_marks() -> list[tuple[int, int]]:
    """The first and the last code point of each range of marks."""
    ranges: list[tuple[int, int]] = []
    for code in (*range(0x20000), *range(0xE0000, 0xE1000)):  # the planes that have marks
        if unicodedata.category(chr(code)).startswith("M"):
            is_next = bool(ranges) and ranges[-1][1] == code - 1
            ranges[-1:] = [(ranges[-1][0], code)] if is_next else [*ranges[-1:], (code, code)]
    return ranges
