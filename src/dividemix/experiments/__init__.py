"""The paper's tables and figures as data, and the runner that fills them."""

TABLES = {
    "table1": "symmetric noise",
    "table2": "asymmetric noise",
    "table3": "Clothing1M",
    "table4": "WebVision",
    "table5": "ablations",
    "table6": "symmetric noise without the true label",
    "table8": "training time",
    "table9": "time by part",
}
FIGURES = {
    "figure2": "losses with and without the confidence penalty",
    "figure3": "AUC of clean against noisy samples",
    "figure4": "images identified as noisy",
    "figure5": "t-SNE of the features",
}
SCALES = ("mini", "paper")
