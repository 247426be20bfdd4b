"""Text in CSV files that people open: no spreadsheet program may take it for a formula and run it.

A text that would be one, such as =1+1 or @name, is written with an apostrophe before it. So is such a text with
apostrophes before it already; that is how the apostrophe can be taken off again without a doubt.
"""

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"'*[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)  # runs nothing, and -1 is a common label


def as_field(text: str) -> str:
    """The text as it is written to a CSV file."""
    return f"'{text}" if _is_formula(text) else text


def from_field(field: str) -> str:
    """The text that was written as this field."""
    return field[1:] if field.startswith("'") and _is_formula(field) else field


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
