"""What is known of the systems that the paper compares with: their published figures and settings. No torch import.

What the paper or a repository says was read there; what is inferred or recalled says so. A repository is named as
owner/name, with the commit or the files that were read.
"""

from collections.abc import Sequence
from typing import NamedTuple

_ALL, _OTHERS = "All rows", "All rows but DivideMix"


class Note(NamedTuple):
    """A line below a table: the rows that it is about, with commas between ("": the table as a whole), and the fact."""

    about: str
    fact: str
    column: str = ""  # only for columns that contain this text

    def __str__(self) -> str:
        return f"{self.about}: {self.fact}" if self.about else self.fact

    def belongs_to(self, rows: Sequence[str], columns: Sequence[str]) -> bool:
        """Whether it is about one of these rows and columns."""
        named = {*self.about.split(", ")}
        in_rows = self.about in ("", _ALL) or named & {*rows} or (self.about == _OTHERS and {*rows} - {"DivideMix"})
        return bool(in_rows) and any(self.column in column for column in columns)


_STAND_IN = Note(
    "MentorNet, Reweight",
    "no images with trusted labels are given. A stand-in, the tenth of each class with the smallest losses after a"
    " warm-up, takes their place: this is not the published method.",
)
_TWO_VARIANTS = Note(
    "M-correction",
    "the better of its two variants in each cell, as the published row is (by the README of Arazo et al.,"
    " 2019: soft for CIFAR-10 at 90 % and for CIFAR-100 at 20, 50 and 90 %, else hard). Both are trained, as rows of"
    " their own.",
)
_EITHER_VARIANT = Note(
    "M-correction",
    "the better of its two variants in each cell. Both are trained, as rows of their own. Which one the"
    " published figure is of is unknown.",
)
_COPIED = "Cross-Entropy, Bootstrap, F-correction, Mixup, M-correction"

ROW_NOTES: dict[str, tuple[Note, ...]] = {
    "table1": (
        Note("Co-teaching+, P-correction, Meta-Learning", "the paper's authors ran the public code of these."),
        Note(
            _COPIED,
            "published figures seem to be copied from Arazo et al., 2019, whose rate (0.1, divided by 10 after 100 and"
            " 250 of 300 epochs) and weight decay (1e-4) differ (inferred).",
        ),
        Note(
            "Bootstrap, F-correction",
            "their best epochs are equal at 50, 80 and 90 % of CIFAR-10, so they are probably of an ordinary phase"
            " before the loss of either begins (inferred). Only the last epochs tell them apart.",
        ),
        _TWO_VARIANTS,
        Note(
            _COPIED,
            "the public noise code of Arazo et al. draws new labels from the first ten classes only, also for"
            " CIFAR-100. If the copied figures are of that noise is unknown.",
            column="CIFAR-100",
        ),
        Note(
            "Co-teaching+",
            "several users of the public code report about 57 % at 20 % noise with its own network (issue 5 of"
            " xingruiyu/coteaching_plus).",
        ),
        Note("Meta-Learning", "one round, as in the public code, which has no others."),
        Note(
            "P-correction",
            "with the default weights of its public code no label can change (derived, and tested in"
            " tests/methods/test_pencil.py); with ours labels can.",
        ),
    ),
    "table2": (
        Note(_ALL, "the paper's authors ran these systems in one setting; that code is not public."),
        _EITHER_VARIANT,
        Note(
            "P-correction, Joint-Optim",
            "their published settings for asymmetric noise. Those of Joint-Optim are for 40 % (README of"
            " DaikiTanaka-UT/JointOptimization). Those of P-correction are for 50 % (README of the re-implementation"
            " AlexandrosPetropoulos/PENCIL), and there lambda falls from 4000 to 0: ours is constant (2000 at paper"
            " scale).",
        ),
        Note("Iterative-CV", "its public code takes the kind of noise, asymmetric, as a setting. Ours estimates it."),
        Note("Meta-Learning", "one round, as in the public code."),
    ),
    "table3": (
        Note(_OTHERS, "published figures are copied from the original papers."),
        _EITHER_VARIANT,
        Note(
            "M-correction, F-correction",
            "no code or setting for Clothing1M is public; ours has DivideMix's schedule.",
        ),
        Note(
            "Meta-Learning",
            "the figure is of the third round, which the public code does not have. Its rounds are recalled"
            " from the paper.",
        ),
        Note("Meta-Cleaner", "no code is public. Ours is re-implemented from the description."),
        Note("Joint-Optim", "its rates are recalled, not verified."),
    ),
    "table4": (
        Note(
            _OTHERS,
            "published figures are copied from Chen et al., 2019 (Iterative-CV). A user of its code"
            " reports about 75 % (top-1, WebVision) for ordinary training, above all of these figures.",
        ),
        Note("MentorNet", "Chen et al. do not say which variant they ran; ours is the predefined one."),
        Note(_OTHERS, "no settings for WebVision are public; ours have DivideMix's schedule."),
    ),
    "table6": (
        Note("DivideMix", "Table 7 has no lambda_u for 40 and 60 %: ours is that of 50 %."),
        Note(_OTHERS, "published figures are copied from the original papers, which have other networks."),
        Note(
            "MentorNet",
            "the data-driven curriculum. The authors' own repeat with the public code (its README) gives 91.4, 88.7"
            " and 46.3 on CIFAR-10, below these figures.",
        ),
        Note(
            "Reweight",
            "86.9 and 61.3 are results with 40 % noise, not with 20 % (the default of its code; recalled from its"
            " paper). Others who ported it report that they did not reach them.",
        ),
        Note(
            "D2L",
            "a user reports 88.3 and 84.9 on CIFAR-10 for ordinary training, above these figures; the authors' later"
            " paper gives D2L no lead over it.",
        ),
        Note(
            "Reweight, Abstention",
            "their public noise may keep the true label, which the noise of this table never does.",
        ),
        _STAND_IN,
        Note("Cross-Entropy", "the paper's table does not have this row, so it has no published figure."),
    ),
    "table8": (
        Note("", "Rows without a published figure are not in the paper's table."),
        Note(
            "",
            "A factor is a time divided by that of Cross-Entropy in the same reproduction. On a CPU it is processor"
            " time, which other programs do not lengthen. Times are of training and testing. At mini scale all have"
            " equally many epochs, at paper scale each its published number.",
        ),
        _STAND_IN,
    ),
}

_ARAZO = "PaulAlbert31/LabelNoiseCorrection at 5e9a73e"
# Where the published settings of each row come from (PUBLISHED of its method's file).
SETTINGS: dict[str, str] = {
    "Bootstrap": (
        "no official code was found. beta by four re-implementations; epochs, rate, weight decay and warm-up on CIFAR"
        f" by the code of Arazo et al., 2019 ({_ARAZO}: train.py, RunScripts.sh)."
    ),
    "F-correction": (
        "CIFAR by its public code (giorgiop/loss-correction at 15a79de: models.py); none for Clothing1M, whose rate and"
        " noise matrix could not be verified."
    ),
    "Mixup": (
        "CIFAR by its public code (facebookresearch/mixup-cifar10 at eaff31a: train.py); alpha 32 by the default of"
        f" Arazo et al., 2019 ({_ARAZO}: train.py)."
    ),
    "Decoupling": (
        "none for these data sets; the warm-up of a tenth is ours. That of the paper, 5000 of 15000 steps on another"
        " set, is recalled."
    ),
    "Co-teaching": (
        "the ramp by its public code (bhanML/Co-teaching at 7c7fbe2: main.py), whose Adam, network and views differ."
    ),
    "Co-teaching+": (
        "the ramp and the first stage by its public code (xingruiyu/coteaching_plus at a68ed61: main.py), whose Adam,"
        " network and views differ."
    ),
    "Joint-Optim": (
        "rate and weights on CIFAR-10 by the README of its public code (DaikiTanaka-UT/JointOptimization at 7e7a30d),"
        " for 70 % symmetric noise, stages and weight decay by first_step_train.py and second_step_train.py there;"
        " Clothing1M recalled, not verified."
    ),
    "P-correction": (
        "stages, weight decay and last rate on CIFAR by its public code (yikun2019/PENCIL at 8a89ed5: PENCIL.py);"
        " rate, weights and lambda by the README of a re-implementation (AlexandrosPetropoulos/PENCIL at 2ca009b), for"
        " 30 % symmetric noise; on Clothing1M the means of rates that fall there."
    ),
    "M-correction": (f"CIFAR by its public code ({_ARAZO}: train.py, RunScripts.sh, README.md); none for Clothing1M."),
    "MentorNet": (
        "CIFAR by its public code (google/mentornet: code/cifar_train_mentornet.py, TRAINING.md); its third drop of"
        " the rate, after 77 %, is skipped."
    ),
    "D2L": (
        "CIFAR by its public code (xingjunm/dimensionality-driven-learning: train_models.py, util.py); its third drop"
        " of the rate on CIFAR-100 is skipped."
    ),
    "Abstention": (
        "by its public code (thulas/dac-label-noise: dac_loss.py) and the commands of its README, which are for STL-10;"
        " its rate is multiplied by 0.2 three times: ours is the common one."
    ),
    "Iterative-CV": (
        "the rounds on CIFAR-10 by its public code (chenpf1025/noisy_label_understanding_utilizing at a6c8e0d:"
        " INCV_main.py), whose Adam differs; its schedule for WebVision is not there."
    ),
    "Reweight": (
        "CIFAR by its public code (uber-research/learning-to-reweight-examples); the warm-up of a tenth is ours, for"
        " the stand-in."
    ),
    "Meta-Learning": (
        "CIFAR-10 by a re-implementation that quotes the paper (ckghosted/MLNT-CIFAR10: main.py); Clothing1M by its"
        " public code (LiJunnan1992/MLNT: main.py, baseline.py); the three rounds of Table 3 are recalled."
    ),
    "Meta-Cleaner": "none, and no code is public; the schedule is DivideMix's.",
}


def row_notes(table: str, rows: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """What is known of the published figures of these rows and columns of a table."""
    return tuple(str(note) for note in ROW_NOTES.get(table, ()) if note.belongs_to(rows, columns))


def settings_notes(rows: Sequence[str]) -> tuple[str, ...]:
    """A line for each row whose method has a source, and one for what has none."""
    systems = dict.fromkeys(row.partition(",")[0] for row in rows)
    notes = [f"Settings of {row}: {SETTINGS[row]}" for row in systems if row in SETTINGS]
    rest = (
        "What has no published value is the paper's common setting (Section 4.1, Appendix B), or the method's default."
    )
    return (*notes, rest) if notes else ()
