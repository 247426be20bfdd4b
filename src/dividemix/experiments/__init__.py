"""The paper's tables and figures as data, and the runner that fills them."""

TABLES = ("table1", "table2", "table3", "table4", "table5", "table6", "table8", "table9")
FIGURES = ("figure2", "figure3", "figure4", "figure5")
SCALES = ("mini", "paper")
