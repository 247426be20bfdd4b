"""The rows of the paper's tables: the method that trains each, and the settings that it changes. No torch import."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

# Each row's method and what it changes. A method's published settings come from its own file (`published`).
ROWS: dict[str, dict[str, Any]] = {
    "DivideMix": {},
    "DivideMix with theta(1) test": {},  # the same training, tested with one net
    "DivideMix w/o co-training": {"co_training": False},
    "DivideMix w/o label refinement": {"refine_labels": False},
    "DivideMix w/o augmentation": {"num_views": 1},
    "Divide and MixMatch": {"co_training": False, "refine_labels": False},
    "Cross-Entropy": {"method": "cross_entropy"},
    "Bootstrap": {"method": "bootstrap"},
    "F-correction": {"method": "forward_correction"},
    "Mixup": {"method": "mixup"},
    "Decoupling": {"method": "decoupling"},
    "Co-teaching": {"method": "co_teaching"},
    "Co-teaching+": {"method": "co_teaching_plus"},
    "Joint-Optim": {"method": "joint_optim"},
    "P-correction": {"method": "pencil"},
    "M-correction, hard": {"method": "m_correction", "correction": "hard"},
    "M-correction, soft": {"method": "m_correction", "correction": "soft"},
    "MentorNet": {"method": "mentornet"},
    "MentorNet, predefined": {"method": "mentornet", "curriculum": "predefined"},
    "D2L": {"method": "d2l"},
    "Abstention": {"method": "abstention"},
    "Iterative-CV": {"method": "incv"},
    "Reweight": {"method": "reweight", "warmup_share": 0.1},  # the stand-in for trusted images needs a trained net
    "Meta-Learning": {"method": "mlnt"},
    "Meta-Cleaner": {"method": "meta_cleaner"},
}

# A row whose published figure is the better one of two variants, cell by cell.
BETTER_OF: dict[str, tuple[str, ...]] = {"M-correction": ("M-correction, hard", "M-correction, soft")}

# Rows that the paper's table does not have. Table 8 has every system.
_M_CORRECTION = BETTER_OF["M-correction"]
ADDED: dict[str, tuple[str, ...]] = {
    "table1": _M_CORRECTION,
    "table2": _M_CORRECTION,
    "table3": _M_CORRECTION,
    "table6": ("Cross-Entropy",),
    "table8": (
        *("Cross-Entropy", "Bootstrap", "F-correction", "Mixup", "Decoupling", "Co-teaching", "Joint-Optim"),
        *(*_M_CORRECTION, "MentorNet, predefined", "MentorNet", "D2L", "Abstention", "Iterative-CV", "Reweight"),
        "Meta-Cleaner",
    ),
}

# Published settings of one table alone. 40 % asymmetric noise: Joint-Optim by its README; P-correction by a
# re-implementation, for 50 %, where lambda falls from 4000 to 0. Table 3 has the third round of Meta-Learning.
_IN_TABLE: dict[tuple[str, str], dict[str, Any]] = {
    ("table2", "Joint-Optim"): {"lr": 0.03, "prior_weight": 0.8, "entropy_weight": 0.4},
    ("table2", "P-correction"): {
        **{"lr": 0.03, "label_lr": 2000.0, "compatibility_weight": 0.0, "entropy_weight": 0.4}
    },
    ("table3", "Meta-Learning"): {"rounds": 3, "epochs": 6, "lr_drop_epoch": 3, "baseline_share": 0.5},
}


def published(table: str, row: str, data: str) -> Mapping[str, Any]:
    """The published settings of a row's method for the data set: those of its file, and those of the table alone."""
    method = ROWS[row].get("method")
    of_file = {} if method is None else getattr(import_module(f"dividemix.methods.{method}"), "PUBLISHED", {})
    return {**of_file.get(data, {}), **_IN_TABLE.get((table, row), {})}
