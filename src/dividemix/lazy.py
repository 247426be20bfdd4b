"""torch, loaded when it is first used: a method's settings and its help need none of it.

A method file of the package writes `from dividemix.lazy import F, torch` and uses both as usual inside functions.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.nn import functional as F
else:

    class _Lazy:
        """A module that is imported when one of its names is looked up."""

        def __init__(self, name: str):
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self._name), name)

    torch, F = _Lazy("torch"), _Lazy("torch.nn.functional")

__all__ = ["F", "torch"]
