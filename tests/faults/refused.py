"""A call that may be refused: what it is in words, and the call with its refusal printed as a command prints it."""

import sys
from collections.abc import Callable

from sandbox import Call

from dividemix.errors import InputError

Drawn = tuple[str, Call]  # the call in words, and the call


def refused_or_fine(words: object, call: Callable[[], object]) -> Drawn:
    """The call; an InputError of one line is fine, and so is a TypeError that names an argument that there is not."""

    def run() -> int:
        try:
            call()
        except InputError as error:
            if "\n" in str(error):
                raise RuntimeError("more than one line") from error
            print(f"dividemix: error: {error}"[:3000].encode("utf-8", "backslashreplace").decode(), file=sys.stderr)
            return 2
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
        except OSError as error:
            print(f"dividemix: error: {error}", file=sys.stderr)
            return 2
        return 0

    return shown(words), run


def shown(words: object) -> str:
    try:
        return repr(words)[:700]
    except ValueError:  # an integer of thousands of digits
        return "a huge integer"
