"""A part of an image file: a box of an annotation file, in pixels of the upright image."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Crop:
    """A box in an image file: left, top, width and height, which may be fractions and may reach out of the image."""

    path: Path
    box: tuple[float, float, float, float]

    def inside(self, width: int, height: int) -> tuple[int, int, int, int] | None:
        """Left, top, right and bottom in whole pixels inside an image of a size; None if it has no pixel there."""
        left, top, across, down = self.box
        corners = (max(round(left), 0), max(round(top), 0), min(round(left + across), width))
        bottom = min(round(top + down), height)
        return (*corners, bottom) if corners[0] < corners[2] and corners[1] < bottom else None
