"""Every figure of the paper's tables of results (1 to 6, 8 and 9), typed off its source; no torch import.

A table is text: a line for each method and kind of figure, `method | kind | one number a column`, "-" where the paper
has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Key = tuple[str, str, str]  # method, column, kind of figure


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper; `values` holds its figures by method, column and kind, in the paper's order."""

    name: str
    title: str
    columns: tuple[str, ...]
    values: Mapping[Key, float]

    @property
    def methods(self) -> tuple[str, ...]:
        """Its rows."""
        return tuple(dict.fromkeys(method for method, _, _ in self.values))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of figure that it has for each row, such as best and last."""
        return tuple(dict.fromkeys(kind for _, _, kind in self.values))


def _table(name: str, title: str, columns: tuple[str, ...], text: str) -> PublishedTable:
    values: dict[Key, float] = {}
    for line in text.strip().splitlines():
        method, kind, numbers = (part.strip() for part in line.split("|"))
        for column, number in zip(columns, numbers.split(), strict=True):
            if number != "-":
                values[method, column, kind] = float(number)
    return PublishedTable(name, title, columns, values)


def _sym(data: str, *rates: int) -> tuple[str, ...]:
    return tuple(f"{data} sym. {rate} %" for rate in rates)


_ASYM = "CIFAR-10 asym. 40 %"

_TABLE1 = """
Cross-Entropy | best | 86.8 79.4 62.9 42.7  62.0 46.7 19.9 10.1
Cross-Entropy | last | 82.7 57.9 26.1 16.8  61.8 37.3  8.8  3.5
Bootstrap     | best | 86.8 79.8 63.3 42.9  62.1 46.6 19.9 10.2
Bootstrap     | last | 82.9 58.4 26.8 17.0  62.0 37.9  8.9  3.8
F-correction  | best | 86.8 79.8 63.3 42.9  61.5 46.6 19.9 10.2
F-correction  | last | 83.1 59.4 26.2 18.8  61.4 37.3  9.0  3.4
Co-teaching+  | best | 89.5 85.7 67.4 47.9  65.6 51.8 27.9 13.7
Co-teaching+  | last | 88.2 84.1 45.5 30.1  64.1 45.3 15.5  8.8
Mixup         | best | 95.6 87.1 71.6 52.2  67.8 57.3 30.8 14.6
Mixup         | last | 92.3 77.6 46.7 43.9  66.0 46.6 17.6  8.1
P-correction  | best | 92.4 89.1 77.5 58.9  69.4 57.5 31.1 15.3
P-correction  | last | 92.0 88.7 76.5 58.2  68.1 56.4 20.7  8.8
Meta-Learning | best | 92.9 89.3 77.4 58.7  68.5 59.2 42.4 19.5
Meta-Learning | last | 92.0 88.8 76.1 58.3  67.7 58.0 40.1 14.3
M-correction  | best | 94.0 92.0 86.8 69.1  73.9 66.1 48.2 24.3
M-correction  | last | 93.8 91.9 86.6 68.7  73.4 65.4 47.6 20.5
DivideMix     | best | 96.1 94.6 93.2 76.0  77.3 74.6 60.2 31.5
DivideMix     | last | 95.7 94.4 92.9 75.4  76.9 74.2 59.6 31.0
"""

_TABLE2 = """
Cross-Entropy | best | 85.0
Cross-Entropy | last | 72.3
F-correction  | best | 87.2
F-correction  | last | 83.1
M-correction  | best | 87.4
M-correction  | last | 86.3
Iterative-CV  | best | 88.6
Iterative-CV  | last | 88.0
P-correction  | best | 88.5
P-correction  | last | 88.1
Joint-Optim   | best | 88.9
Joint-Optim   | last | 88.4
Meta-Learning | best | 89.2
Meta-Learning | last | 88.6
DivideMix     | best | 93.4
DivideMix     | last | 92.1
"""

_TABLE3 = """
Cross-Entropy | accuracy | 69.21
F-correction  | accuracy | 69.84
M-correction  | accuracy | 71.00
Joint-Optim   | accuracy | 72.16
Meta-Cleaner  | accuracy | 72.50
Meta-Learning | accuracy | 73.47
P-correction  | accuracy | 73.49
DivideMix     | accuracy | 74.76
"""

_TABLE4 = """
F-correction | top-1 | 61.12 57.36
F-correction | top-5 | 82.68 82.36
Decoupling   | top-1 | 62.54 58.26
Decoupling   | top-5 | 84.74 82.26
D2L          | top-1 | 62.68 57.80
D2L          | top-5 | 84.00 81.36
MentorNet    | top-1 | 63.00 57.80
MentorNet    | top-5 | 81.40 79.92
Co-teaching  | top-1 | 63.58 61.48
Co-teaching  | top-5 | 85.20 84.70
Iterative-CV | top-1 | 65.24 61.60
Iterative-CV | top-5 | 85.34 84.98
DivideMix    | top-1 | 77.32 75.20
DivideMix    | top-5 | 91.64 90.84
"""

_TABLE5 = """
DivideMix                      | best | 96.1 94.6 93.2 76.0 93.4  77.3 74.6 60.2 31.5
DivideMix                      | last | 95.7 94.4 92.9 75.4 92.1  76.9 74.2 59.6 31.0
DivideMix with theta(1) test   | best | 95.2 94.2 93.0 75.5 92.7  75.2 72.8 58.3 29.9
DivideMix with theta(1) test   | last | 95.0 93.7 92.4 74.2 91.4  74.8 72.1 57.6 29.2
DivideMix w/o co-training      | best | 95.0 94.0 92.6 74.3 91.9  74.8 72.3 56.7 27.7
DivideMix w/o co-training      | last | 94.8 93.3 92.2 73.2 90.6  74.1 71.7 56.3 27.2
DivideMix w/o label refinement | best | 96.0 94.6 93.0 73.7 87.7  76.9 74.2 58.7 26.9
DivideMix w/o label refinement | last | 95.5 94.2 92.7 73.0 86.3  76.4 73.9 58.2 26.3
DivideMix w/o augmentation     | best | 95.3 94.1 92.2 73.9 89.5  76.5 73.1 58.2 26.9
DivideMix w/o augmentation     | last | 94.9 93.5 91.8 73.0 88.4  76.2 72.6 58.0 26.4
Divide and MixMatch            | best | 94.1 92.8 89.7 70.1 86.5  73.7 70.5 55.3 25.0
Divide and MixMatch            | last | 93.5 92.3 89.1 68.6 85.2  72.4 69.7 53.9 23.7
"""

_TABLE6 = """
MentorNet  | accuracy | 92.0 89.0    - 49.0  73.0 68.0    - 35.0
D2L        | accuracy | 85.1 83.4 72.8    -  62.2 52.0 42.3    -
Reweight   | accuracy | 86.9    -    -    -  61.3    -    -    -
Abstention | accuracy | 93.4 90.9 87.6 70.8  75.8 68.2 59.4 34.1
DivideMix  | accuracy | 96.2 94.9 94.3 79.8  77.2 75.2 72.0 60.0
"""

_TABLE8 = """
Co-teaching+  | hours | 4.3
P-correction  | hours | 6.0
Meta-Learning | hours | 8.6
DivideMix     | hours | 5.2
"""

_TABLE9 = "DivideMix | seconds | 17.2 16.0 12.5"

PUBLISHED: dict[str, PublishedTable] = {
    table.name: table
    for table in (
        _table(
            "table1",
            "Table 1: test accuracy (%) with symmetric noise",
            _sym("CIFAR-10", 20, 50, 80, 90) + _sym("CIFAR-100", 20, 50, 80, 90),
            _TABLE1,
        ),
        _table("table2", "Table 2: test accuracy (%) with 40 % asymmetric noise", (_ASYM,), _TABLE2),
        _table("table3", "Table 3: test accuracy (%) on Clothing1M", ("Clothing1M",), _TABLE3),
        _table(
            "table4",
            "Table 4: accuracy (%) on the validation images of WebVision and ILSVRC12, trained on (mini) WebVision",
            ("WebVision", "ILSVRC12"),
            _TABLE4,
        ),
        _table(
            "table5",
            "Table 5: ablations, test accuracy (%)",
            (*_sym("CIFAR-10", 20, 50, 80, 90), _ASYM, *_sym("CIFAR-100", 20, 50, 80, 90)),
            _TABLE5,
        ),
        _table(
            "table6",
            "Table 6: test accuracy (%) with symmetric noise that never keeps the true label",
            _sym("CIFAR-10", 20, 40, 60, 80) + _sym("CIFAR-100", 20, 40, 60, 80),
            _TABLE6,
        ),
        _table("table8", "Table 8: total training time (hours)", ("training",), _TABLE8),
        _table(
            "table9",
            "Table 9: time of each part of an epoch (seconds)",
            ("Co-Divide", "Data MixMatch", "Forward-Backward"),
            _TABLE9,
        ),
    )
}
