"""One thread for every test: the nets are tiny, and two busy test processes would spin against each other."""

import torch

torch.set_num_threads(1)
