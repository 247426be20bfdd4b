"""What is known of the systems that the paper compares with: their published figures and settings. No torch import.

A note begins with the rows that it is about. What the paper or a repository says was read there; what is inferred or
recalled says so.
"""

from collections.abc import Sequence

_STAND_IN = (
    "{}: no images with trusted labels are given. A stand-in, the tenth of each class with the smallest losses after a"
    " warm-up, takes their place: this is not the published method."
)
_TWO_VARIANTS = (
    "M-correction: the better of its two variants in each cell, as the published row is (by the README of Arazo et al.,"
    " 2019: soft for CIFAR-10 at 90 % and for CIFAR-100 at 20, 50 and 90 %, else hard). Both are trained, as rows of"
    " their own."
)
_EITHER_VARIANT = (
    "M-correction: the better of its two variants in each cell. Both are trained, as rows of their own. Which one the"
    " published figure is of is unknown."
)
_CLOTHING1M = "All rows but DivideMix: published figures are copied from the original papers."
_ASYMMETRIC = (
    "P-correction, Joint-Optim: their published settings for asymmetric noise. That of P-correction is for 50 %, and"
    " its lambda falls from 4000 to 0: ours is constant (2000 at paper scale)."
)

ROW_NOTES: dict[str, tuple[str, ...]] = {
    "table1": (
        "Co-teaching+, P-correction, Meta-Learning: the paper's authors ran the public code of these.",
        "Cross-Entropy, Bootstrap, F-correction, Mixup, M-correction: published figures seem to be copied from Arazo et"
        " al., 2019, whose rate (0.1, divided by 10 after 100 and 250 of 300 epochs) and weight decay (1e-4) differ"
        " (inferred).",
        "Bootstrap, F-correction: their best epochs are equal at 50, 80 and 90 % of CIFAR-10, so they are probably of"
        " an ordinary phase before the loss of either begins (inferred). Only the last epochs tell them apart.",
        _TWO_VARIANTS,
        "CIFAR-100: the public noise code of Arazo et al. draws new labels from the first ten classes only. If the"
        " copied figures are of that noise is unknown.",
        "Co-teaching+: several users of the public code report about 57 % at 20 % noise with its own network.",
        "Meta-Learning: one round, as in the public code, which has no others.",
        "P-correction: with the default weights of its public code no label can change (derived, and tested in"
        " tests/methods/test_pencil.py); with ours labels can.",
    ),
    "table2": (
        "All rows: the paper's authors ran these systems in one setting; that code is not public.",
        _EITHER_VARIANT,
        _ASYMMETRIC,
        "Iterative-CV: its public code takes the kind of noise, asymmetric, as a setting. Ours estimates it.",
        "Meta-Learning: one round, as in the public code.",
    ),
    "table3": (
        _CLOTHING1M,
        _EITHER_VARIANT,
        "M-correction, F-correction: no code or setting for Clothing1M is public; ours has DivideMix's schedule.",
        "Meta-Learning: the figure is of the third round, which the public code does not have. Its rounds are recalled"
        " from the paper.",
        "Meta-Cleaner: no code is public. Ours is re-implemented from the description.",
        "Joint-Optim: its rates are recalled, not verified.",
    ),
    "table4": (
        "All rows but DivideMix: published figures are copied from Chen et al., 2019 (Iterative-CV). A user of its code"
        " reports about 75 % (top-1, WebVision) for ordinary training, above all of these figures.",
        "MentorNet: Chen et al. do not say which variant they ran; ours is the predefined one.",
        "All rows but DivideMix: no settings for WebVision are public; ours have DivideMix's schedule.",
    ),
    "table6": (
        "All rows but DivideMix: published figures are copied from the original papers, which have other networks.",
        "MentorNet: the data-driven curriculum. The authors' own repeat with the public code gives 91.4, 88.7 and 46.3"
        " on CIFAR-10, below these figures.",
        "Reweight: 86.9 and 61.3 are results with 40 % noise, not with 20 % (the default of its code; recalled from its"
        " paper). Others who ported it report that they did not reach them.",
        "D2L: a user reports 88.3 and 84.9 on CIFAR-10 for ordinary training, above these figures; the authors' later"
        " paper gives D2L no lead over it.",
        "Reweight, Abstention: their public noise may keep the true label, which the noise of this table never does.",
        _STAND_IN.format("MentorNet, Reweight"),
        "Rows without a published figure are not in the paper's table.",
    ),
    "table8": (
        "Rows without a published figure are not in the paper's table.",
        "A factor is a time divided by that of Cross-Entropy in the same reproduction. On a CPU it is processor time,"
        " which other programs do not lengthen. Times are of training and testing. At mini scale all have equally many"
        " epochs, at paper scale each its published number.",
        _STAND_IN.format("MentorNet, Reweight"),
    ),
}

# Where the published settings of each row come from (PUBLISHED of its method's file).
SETTINGS: dict[str, str] = {
    "Bootstrap": "beta by four re-implementations; rate and warm-up on CIFAR by the code of Arazo et al., 2019.",
    "F-correction": "CIFAR by its public code.",
    "Mixup": "CIFAR by its public code; alpha by the code of Arazo et al., 2019.",
    "Decoupling": "none for these data sets; the warm-up of a tenth is ours.",
    "Co-teaching": "the ramp by its public code, whose Adam, network and views differ.",
    "Co-teaching+": "the ramp and the first stage by its public code, whose Adam, network and views differ.",
    "Joint-Optim": "CIFAR-10 by the README of its public code; Clothing1M recalled.",
    "P-correction": "by re-implementations; on Clothing1M the means of rates that fall there.",
    "M-correction": "CIFAR by its public code; none for Clothing1M.",
    "MentorNet": "CIFAR by its public scripts; their third drop of the rate, after 77 %, is skipped.",
    "D2L": "CIFAR by its public code; its third drop of the rate on CIFAR-100 is skipped.",
    "Abstention": "by its public code and README, whose rate is multiplied by 0.2 three times: ours is the common one.",
    "Iterative-CV": "the rounds on CIFAR-10 by its public code, whose Adam differs.",
    "Reweight": "CIFAR by its public code; the warm-up of a tenth is ours, for the stand-in.",
    "Meta-Learning": "CIFAR-10 by a re-implementation that quotes the paper; Clothing1M by its public code.",
    "Meta-Cleaner": "none; the schedule is DivideMix's.",
}


def settings_notes(rows: Sequence[str]) -> tuple[str, ...]:
    """A line for each row whose method has a source, and one for what has none."""
    systems = dict.fromkeys(row.partition(",")[0] for row in rows)
    notes = [f"Settings of {row}: {SETTINGS[row]}" for row in systems if row in SETTINGS]
    rest = (
        "What has no published value is the paper's common setting (Section 4.1, Appendix B), or the method's default."
    )
    return (*notes, rest) if notes else ()
