"""Code that is not part of the package: an object of the user, named as package.module:OBJECT. No torch import."""

import importlib
import sys
from pathlib import Path
from typing import Any

from dividemix.errors import InputError

PACKAGES = ("timm", "torchvision", "open_clip", "transformers", "sentence-transformers", "tokens", "net")
"""What may stand before the colon of an encoder or a net and is no code of the user: well-known packages, our nets."""
TFIDF = "tfidf"  # the encoder of texts that needs no package
OBJECT = "python:"  # what the names of objects begin with that have no module
_objects: dict[str, Any] = {}  # objects that the program itself gave to the package, by name


def remember(name: str, thing: Any) -> None:
    """Let this process find an object by name: the program has it already, so that no code is imported for it."""
    _objects[name] = thing


def forget(name: str) -> None:
    """Forget an object that `remember` was given."""
    _objects.pop(name, None)


def known_object(name: str) -> Any | None:
    """The object that the program gave under this name; None if it gave none."""
    return _objects.get(name)


def is_foreign(name: str) -> bool:
    """Whether the name is one of code that is not part of the package, nor of a well-known package."""
    before, colon, _ = name.partition(":")
    return bool(colon) and before not in PACKAGES


def import_foreign(kind: str, name: str) -> Any:
    """The object that package.module:OBJECT names; modules in the working directory are found, too.

    Raises:
        InputError: if it cannot be imported.
    """
    if (known := known_object(name)) is not None:
        return known
    if name.startswith(OBJECT):
        raise InputError(_give_again(kind, name))
    module_name, _, attribute = name.partition(":")
    before = list(sys.path)
    sys.path.append(str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except Exception as error:  # importing foreign code may raise anything
        first_line = (str(error).splitlines() or [""])[0]
        reason = f"{type(error).__name__}: {first_line}"
        if isinstance(error, ModuleNotFoundError) and error.name == module_name:
            reason = f"no module {module_name!r} in this folder or among the installed packages"
        raise InputError(f"{kind} {name!r} cannot be imported: {reason}") from error
    finally:
        sys.path[:] = before


def refuse_foreign(kind: str, name: Any, where: Path, *, trusted: bool) -> None:
    """Raise InputError if a file names code that is not part of the package, unless the user trusts it."""
    if not isinstance(name, str) or not is_foreign(name) or known_object(name) is not None:
        return
    if name.startswith(OBJECT):
        raise InputError(f"{where}: its {_give_again(kind, name)}")
    if not trusted:
        raise InputError(
            f"{where}: its {kind} {name!r} is Python code that is not part of dividemix and would be run; if you trust"
            " it, add --trust_net (in Python: trust_net=True)"
        )


def _give_again(kind: str, name: str) -> str:
    return (
        f"{kind} {name!r} was an object of a Python program, which no file stores: load it from Python and give the"
        f" object again, as {kind}=..."
    )
