"""What is known of the published figures of the systems that the paper compares with. No torch import.

A note begins with the rows that it is about. What the paper or a repository says was read there; what is inferred or
recalled says so.
"""

_STAND_IN = (
    "{}: no images with trusted labels are given. A stand-in, the tenth of each class with the smallest losses after a"
    " warm-up, takes their place: this is not the published method."
)
_TWO_VARIANTS = (
    "M-correction: the better of its two variants in each cell, as the published row is (by the README of Arazo et al.,"
    " 2019: soft for CIFAR-10 at 90 % and for CIFAR-100 at 20, 50 and 90 %, else hard). Both are trained, as rows of"
    " their own."
)
_CLOTHING1M = "All rows but DivideMix: published figures are copied from the original papers."
_ASYMMETRIC = (
    "P-correction, Joint-Optim: their published settings for asymmetric noise. That of P-correction is for 50 %, and"
    " its lambda falls from 4000 to 0: ours is constant, 2000."
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
        _TWO_VARIANTS,
        _ASYMMETRIC,
        "Iterative-CV: its public code is told that the noise is asymmetric. Ours estimates it.",
        "Meta-Learning: one round, as in the public code.",
    ),
    "table3": (
        _CLOTHING1M,
        _TWO_VARIANTS,
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
        "A factor is a time divided by that of another row of the same reproduction. Times are of training and testing,"
        " at equal numbers of epochs at mini scale; at paper scale each has its published number of epochs.",
        _STAND_IN.format("MentorNet, Reweight"),
    ),
}
