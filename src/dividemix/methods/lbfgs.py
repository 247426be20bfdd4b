"""Minimise a smooth function by L-BFGS (Nocedal and Wright, Algorithm 7.5) with backtracking.

torch has one, too. Its first step is short by design; ours has unit length, as preconditioned functions want it.
"""

from collections import deque
from collections.abc import Callable

from torch import Tensor

_MEMORY = 8
_ENOUGH = 1e-5  # relative decrease of the function in a step below which it ends


def minimise(function: Callable[[Tensor], tuple[float, Tensor]], start: Tensor, num_steps: int) -> Tensor:
    """The place after at most `num_steps` steps from `start` (n,); `function` gives its value and slope (n,)."""
    place = start
    value, slope = function(place)
    past: deque[tuple[Tensor, Tensor]] = deque(maxlen=_MEMORY)  # steps, and the changes of the slope over them
    for _ in range(num_steps):
        direction = _direction(slope, past)
        expected, length = (slope @ direction).item(), 1.0
        while True:
            new_place = place - length * direction
            new_value, new_slope = function(new_place)
            if new_value <= value - 1e-4 * length * expected or length < 1e-3:
                break
            length /= 2
        if not new_value < value:  # rounding, or the minimum
            break
        step, change = new_place - place, new_slope - slope
        if (step @ change) > 1e-10 * (change @ change):
            past.append((step, change))
        is_over = value - new_value < _ENOUGH * abs(value)
        place, value, slope = new_place, new_value, new_slope
        if is_over:
            break
    return place


def _direction(slope: Tensor, past: deque[tuple[Tensor, Tensor]]) -> Tensor:
    """The inverse Hessian, as far as the past steps show it, times the slope."""
    direction, parts = slope.clone(), []
    for step, change in reversed(past):
        parts.append((step @ direction) / (step @ change))
        direction -= parts[-1] * change
    if past:
        step, change = past[-1]
        direction *= (step @ change) / (change @ change)
    for (step, change), part in zip(past, reversed(parts), strict=True):
        direction += (part - (change @ direction) / (step @ change)) * step
    return direction
