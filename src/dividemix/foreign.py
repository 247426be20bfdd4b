"""Code that is not part of the package: an object of the user, named as package.module:OBJECT. No torch import."""

import importlib
import sys
from pathlib import Path
from typing import Any

from dividemix.errors import InputError

PACKAGES = ("timm", "torchvision", "open_clip", "transformers", "sentence-transformers", "net")
"""What may stand before the colon of an encoder or a net and is no code of the user: well-known packages, our nets."""


def is_foreign(name: str) -> bool:
    """Whether the name is one of code that is not part of the package, nor of a well-known package."""
    before, colon, _ = name.partition(":")
    return bool(colon) and before not in PACKAGES


def import_foreign(kind: str, name: str) -> Any:
    """The object that package.module:OBJECT names; modules in the working directory are found, too.

    Raises:
        InputError: if it cannot be imported.
    """
    module_name, _, attribute = name.partition(":")
    before = list(sys.path)
    sys.path.append(str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except Exception as error:  # importing foreign code may raise anything
        first_line = (str(error).splitlines() or [""])[0]
        raise InputError(f"{kind} {name!r} cannot be imported: {type(error).__name__}: {first_line}") from error
    finally:
        sys.path[:] = before


def refuse_foreign(kind: str, name: Any, where: Path, *, trusted: bool) -> None:
    """Raise InputError if a file names code that is not part of the package, unless the user trusts it."""
    if isinstance(name, str) and is_foreign(name) and not trusted:
        raise InputError(
            f"{where}: its {kind} {name!r} is Python code that is not part of dividemix and would be run; if you trust"
            " it, add --trust_net (in Python: trust_net=True)"
        )
