"""One file per command of the command line. `add` gives a parser its flags and the function that runs the command.

Importing a command loads nothing heavy. A command imports torch and the like when it runs.
"""

import shutil
import textwrap


def entry(name: str, *texts: str, column: int = 16) -> str:
    """An entry of a list: the name in a column, then each text in lines of its own, wrapped for the terminal."""
    width, indent = shutil.get_terminal_size().columns, " " * (column + 1)
    wrapper = textwrap.TextWrapper(width, indent, indent, break_long_words=False, break_on_hyphens=False)
    return f"{name:{column}} " + "\n".join(map(wrapper.fill, texts)).lstrip()


def paragraph(text: str) -> str:
    """The text, wrapped for the terminal."""
    return textwrap.fill(text, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
