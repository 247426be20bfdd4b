"""All that training changes: learners, values per sample, optimisers, generators. A checkpoint is this."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from dividemix.engine.progress import Progress
from dividemix.engine.settings import ScheduleSettings
from dividemix.errors import DivergedError


@dataclass
class Learner:
    """A net and what trains it."""

    net: nn.Module
    optimizer: Optimizer
    scaler: torch.amp.GradScaler  # of the loss, while the net computes in float16; idle otherwise
    average: nn.Module | None = None  # a running mean of the net's weights, which predicts in its place
    frozen: frozenset[str] = frozenset()  # names of weights that the net itself keeps from training

    @classmethod
    def start(cls, net: nn.Module, s: ScheduleSettings, *, scale_loss: bool = False) -> "Learner":
        """A learner before its first step; `scale_loss` is for a net that computes in float16."""
        device = next(net.parameters()).device
        fused = device.type in ("cpu", "cuda")
        optimizer = SGD(net.parameters(), lr=s.lr, momentum=s.momentum, weight_decay=s.weight_decay, fused=fused)
        frozen = frozenset(name for name, weight in net.named_parameters() if not weight.requires_grad)
        return cls(net, optimizer, torch.amp.GradScaler(device.type, enabled=scale_loss), frozen=frozen)

    def descend(self, loss: Tensor) -> None:
        """Make one step of the optimiser: theta = SGD(L, theta)."""
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()


@dataclass
class State:
    """The state of a training after `epoch` epochs."""

    learners: list[Learner]
    draws: torch.Generator  # which samples, permutations, mixing weights
    views: torch.Generator  # augmentation, dropout
    samples: dict[str, Tensor] = field(default_factory=dict)  # by name; dimension 0 is the training sample
    buffers: dict[str, Tensor] = field(default_factory=dict)  # a method's tensors that are not per sample, by name
    optimizers: dict[str, Optimizer] = field(default_factory=dict)  # of a method's own, by name
    epoch: int = 0
    progress: Progress = field(default_factory=Progress)

    @classmethod
    def start(cls, nets: list[nn.Module], s: ScheduleSettings, *, scale_loss: bool = False) -> "State":
        """The state before the first epoch, without what a method adds to it."""
        draws = torch.Generator().manual_seed(s.seed)
        views = torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=draws)))
        return cls([Learner.start(net, s, scale_loss=scale_loss) for net in nets], draws, views)

    @property
    def nets(self) -> list[nn.Module]:
        """The nets that are trained."""
        return [learner.net for learner in self.learners]

    @property
    def predictors(self) -> list[nn.Module]:
        """The nets that predict: running means where there are any."""
        return [learner.average or learner.net for learner in self.learners]

    def tensors(self) -> dict[str, Tensor]:
        """Everything but the epoch, as named tensors: what a checkpoint stores."""
        named = {"generators.draws": self.draws.get_state(), "generators.views": self.views.get_state()}
        named |= _named("samples.", self.samples) | _named("buffers.", self.buffers)
        for name, optimizer in self.optimizers.items():
            named |= _named(f"optimizers.{name}.", _moments(optimizer))
        for k, learner in enumerate(self.learners):
            named |= _named(f"nets.{k}.", learner.net.state_dict())
            named |= _named(f"optimizer.{k}.", _moments(learner.optimizer))
            if learner.average is not None:
                named |= _named(f"averages.{k}.", learner.average.state_dict())
            if learner.scaler.is_enabled():
                scaler = learner.scaler.state_dict()
                named[f"scaler.{k}"] = torch.tensor([scaler["scale"], scaler["_growth_tracker"]])
        return named

    def load(self, named: Mapping[str, Tensor], epoch: int) -> None:
        """Become the state that `tensors()` gave after `epoch` epochs."""
        self.epoch = epoch
        self.draws.set_state(named["generators.draws"])
        self.views.set_state(named["generators.views"])
        self.samples = _taken(self.samples, under("samples.", named))
        self.buffers = _taken(self.buffers, under("buffers.", named))
        self.load_nets(named)
        for name, optimizer in self.optimizers.items():
            _load_moments(optimizer, under(f"optimizers.{name}.", named))
        for k, learner in enumerate(self.learners):
            _load_moments(learner.optimizer, under(f"optimizer.{k}.", named))
            if learner.scaler.is_enabled() and f"scaler.{k}" in named:
                scale, growth_tracker = named[f"scaler.{k}"].tolist()
                scaler = learner.scaler.state_dict() | {"scale": scale, "_growth_tracker": int(growth_tracker)}
                learner.scaler.load_state_dict(scaler)

    def load_nets(self, named: Mapping[str, Tensor]) -> None:
        """Give the nets and their running means, and nothing else, the weights among `named`."""
        for k, learner in enumerate(self.learners):
            learner.net.load_state_dict(under(f"nets.{k}.", named))
            if learner.average is not None:
                learner.average.load_state_dict(under(f"averages.{k}.", named))

    def check_finite(self) -> None:
        """Raise DivergedError if a weight or a BatchNorm statistic is not finite."""
        for k, net in enumerate(self.nets):
            for name, tensor in net.state_dict().items():
                if not tensor.isfinite().all():
                    problem = f"{name} of net {k + 1} is infinite or NaN; try a smaller lr"
                    raise DivergedError(f"training diverged in epoch {self.epoch + 1}: {problem}")


def net_tensors(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of a state's tensors that `load_nets` reads."""
    return {name: tensor for name, tensor in named.items() if name.startswith(("nets.", "averages."))}


def under(prefix: str, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose name starts with prefix, under the rest of their name."""
    return {name.removeprefix(prefix): tensor for name, tensor in named.items() if name.startswith(prefix)}


def _named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def _taken(before: Mapping[str, Tensor], named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The named values, in place of those before where shape and type are the same: an optimiser may train them."""
    taken = {}
    for name, tensor in named.items():
        existing = before.get(name)
        if existing is not None and existing.shape == tensor.shape and existing.dtype == tensor.dtype:
            taken[name] = existing
            existing.data.copy_(tensor)
        else:
            taken[name] = tensor.clone()
    return taken


def _moments(optimizer: Optimizer) -> dict[str, Tensor]:
    """What the optimiser remembers of each parameter, as PARAMETER.NAME."""
    state: dict[int, dict[str, Any]] = optimizer.state_dict()["state"]
    values = {f"{i}.{name}": value for i, moments in state.items() for name, value in moments.items()}
    return {key: torch.as_tensor(value) for key, value in values.items() if value is not None}


def _load_moments(optimizer: Optimizer, named: Mapping[str, Tensor]) -> None:
    saved = optimizer.state_dict()
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    saved["state"] = {}
    for key, tensor in named.items():
        i, _, name = key.partition(".")
        parameter = parameters[int(i)]
        if tensor.shape == parameter.shape:  # a fused step needs the moments in the parameter's memory format
            tensor = torch.empty_like(parameter, requires_grad=False).copy_(tensor)
        elif tensor.ndim:  # only a number of steps belongs to no element
            raise ValueError(f"{key} has shape {tuple(tensor.shape)}, its parameter {tuple(parameter.shape)}")
        saved["state"].setdefault(int(i), {})[name] = tensor.clone()
    optimizer.load_state_dict(saved)
