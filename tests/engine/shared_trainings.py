"""Tiny trainings by every method, for the test that compares one process with several."""

import warnings
from typing import Any

import torch
from method_checks import SHORT
from tiny import TinyData, tiny_nets

from dividemix.engine.processes import together
from dividemix.engine.shared_net import share_net
from dividemix.engine.state import State
from dividemix.methods import METHODS, find_method, loop
from dividemix.methods.method import TrainingSets
from dividemix.settings import fields_of


def train_every_method() -> dict[str, Any]:
    """For each method its losses and figures of every epoch, its weights' sum at the end, and its judgement."""
    with together():
        results = {name: train(name) for name, method in METHODS.items() if not method.needs_vectors}
        results["mlnt, second order"] = train("mlnt", second_order=True)
        return results


def train(name: str, *, sync_batchnorm: bool = True, **changes: Any) -> dict[str, Any]:
    """What a short training of tiny nets reports, with work shared if there are several processes."""
    method = find_method(name)
    known = {"warmup_epochs": 2} if "warmup_epochs" in fields_of(method.settings) else {}
    s = method.settings(**{**SHORT, "epochs": 4, **known, **changes})
    sets = TrainingSets(TinyData(41), TinyData(9, seed=1, noise=0.0))
    nets = tiny_nets(num_nets=method.num_nets(s))
    for net in nets:
        share_net(net, sync_batchnorm=sync_batchnorm)
    state = State.start(nets, s)
    loop.start(method, state, sets, s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reports = [[dict(report.losses), dict(report.figures)] for report in loop.fit(method, state, sets, s)]
        judged = method.judge(state, sets.train, s)
    tensors = {key: tensor.double() for key, tensor in state.tensors().items() if not key.startswith("generators.")}
    return {
        "reports": reports,
        "sums": {key: tensor[tensor.isfinite()].sum().item() for key, tensor in tensors.items()},
        "clean_prob": judged.clean_prob.double().tolist(),
        "draws": torch.randint(2**40, (), generator=state.draws).item(),
    }
