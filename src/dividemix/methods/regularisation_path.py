"""The path of regularisation: heads learn the given labels, each step with a weaker one.

The likelihood of labels that the heads did not see chooses the regularisation.
"""

import torch

from dividemix.engine.state import State
from dividemix.methods.fold_heads import Folded, out_of_sample, train_heads
from dividemix.methods.linear_head import set_head
from dividemix.methods.method import EpochReport

STRONGEST, _WEAKEST = 10.0, 3e-4  # regularisation at both ends of the path, for standardised features
PATIENCE = 2  # steps without a better likelihood after which the path ends


def path_step(state: State, data: Folded, num_steps: int, lbfgs_steps: int) -> EpochReport:
    """Train the heads on the given labels with the next, weaker regularisation; remember the likeliest heads."""
    best_lam, best, num_worse = state.buffers["path"].tolist()
    share = state.epoch / (num_steps - 1) if num_steps > 1 else 0.5  # of the path: its middle if there is one step
    lam = STRONGEST * (_WEAKEST / STRONGEST) ** share
    if num_worse < PATIENCE:
        heads = train_heads(state.buffers["heads"], data, lam, state.buffers["matrix"], lbfgs_steps)
        likelihood = out_of_sample(heads, data).gather(1, data.labels[:, None]).double().mean().item()
        if likelihood > best:
            best_lam, best, num_worse = lam, likelihood, 0.0
            state.buffers["best_heads"] = heads
        else:
            num_worse += 1
        state.buffers["heads"] = heads
        state.buffers["path"] = torch.tensor([best_lam, best, num_worse], dtype=torch.float64)
        state.buffers["best_lam"] = state.buffers["path"][0].clone()
    if num_worse == PATIENCE or state.epoch == num_steps - 1:
        state.buffers["heads"] = state.buffers["best_heads"].clone()
    set_head(state, state.buffers["heads"])
    return EpochReport({"loss": [-best]}, figures={"regularisation": best_lam})
