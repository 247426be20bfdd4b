"""All that training changes: the nets, their optimisers, the generator, the histories. A checkpoint is this."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import SGD

from dividemix.config import Config
from dividemix.engine.progress import Progress
from dividemix.errors import DivergedError


@dataclass
class State:
    """The state of a training after `epoch` epochs.

    Shapes: K nets (DivideMix has two), n samples in a division, W epochs at most in a history.
    """

    nets: list[nn.Module]
    optimizers: list[SGD]
    scalers: list[torch.amp.GradScaler]  # of the loss, while nets compute in float16; idle otherwise
    generator: torch.Generator
    loss_history: Tensor  # (K, W, n) float64: normalised losses of the last divisions, newest last
    plausibility_history: Tensor  # (W, n) float64: likewise, of plausibilities; empty where they are not asked for
    epoch: int
    progress: Progress

    @classmethod
    def start(cls, nets: list[nn.Module], num_samples: int, config: Config, *, scale_loss: bool = False) -> "State":
        """The state before the first epoch on N samples; `scale_loss` is for nets that compute in float16."""
        device = next(nets[0].parameters()).device
        optimizers = [
            SGD(
                net.parameters(),
                lr=config.lr,
                momentum=config.momentum,
                weight_decay=config.weight_decay,
                fused=device.type in ("cpu", "cuda"),
            )
            for net in nets
        ]
        scalers = [torch.amp.GradScaler(device.type, enabled=scale_loss) for _ in nets]
        generator = torch.Generator().manual_seed(config.seed)
        history = torch.zeros(len(nets), 0, config.num_divided(num_samples), dtype=torch.float64)
        return cls(nets, optimizers, scalers, generator, history, history[0].clone(), epoch=0, progress=Progress())

    def tensors(self) -> dict[str, Tensor]:
        """Everything but the epoch, as named tensors: what a checkpoint stores."""
        named = {"generator": self.generator.get_state(), "loss_history": self.loss_history}
        if len(self.plausibility_history):
            named["plausibility_history"] = self.plausibility_history
        for k, (net, optimizer) in enumerate(zip(self.nets, self.optimizers, strict=True)):
            named |= {f"nets.{k}.{name}": tensor for name, tensor in net.state_dict().items()}
            for i, moments in optimizer.state_dict()["state"].items():
                if moments["momentum_buffer"] is not None:
                    named[f"momentum.{k}.{i}"] = moments["momentum_buffer"]
            if self.scalers[k].is_enabled():
                scaler = self.scalers[k].state_dict()
                named[f"scaler.{k}"] = torch.tensor([scaler["scale"], scaler["_growth_tracker"]])
        return named

    def load(self, named: Mapping[str, Tensor], epoch: int) -> None:
        """Become the state that `tensors()` gave after `epoch` epochs."""
        self.epoch = epoch
        self.generator.set_state(named["generator"])
        self.loss_history = named["loss_history"].clone()
        self.plausibility_history = named.get("plausibility_history", self.loss_history[0, :0]).clone()
        self.load_nets(named)
        for k, optimizer in enumerate(self.optimizers):
            saved = optimizer.state_dict()
            parameters = optimizer.param_groups[0]["params"]
            # The fused step reads memory as it lies, so a buffer has to lie as its parameter does (channels_last).
            saved["state"] = {
                int(i): {"momentum_buffer": torch.empty_like(parameters[int(i)], requires_grad=False).copy_(buffer)}
                for i, buffer in under(f"momentum.{k}.", named).items()
            }
            optimizer.load_state_dict(saved)
            if self.scalers[k].is_enabled() and f"scaler.{k}" in named:
                scale, growth_tracker = named[f"scaler.{k}"].tolist()
                scaler = self.scalers[k].state_dict() | {"scale": scale, "_growth_tracker": int(growth_tracker)}
                self.scalers[k].load_state_dict(scaler)

    def load_nets(self, named: Mapping[str, Tensor]) -> None:
        """Give the nets, and nothing else, the weights among `named`."""
        for k, net in enumerate(self.nets):
            net.load_state_dict(under(f"nets.{k}.", named))

    def descend(self, k: int, loss: Tensor) -> None:
        """One step of SGD: theta(k) = SGD(L, theta(k))."""
        optimizer, scaler = self.optimizers[k], self.scalers[k]
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    def check_finite(self) -> None:
        """Raise DivergedError if a weight or a BatchNorm statistic is not finite."""
        for k, net in enumerate(self.nets):
            for name, tensor in net.state_dict().items():
                if not tensor.isfinite().all():
                    raise DivergedError(
                        f"training diverged in epoch {self.epoch + 1}: {name} of net {k + 1} is not finite;"
                        " try a smaller --lr"
                    )


def learning_rate(epoch: int, config: Config) -> float:
    """The rate in force after `epoch` epochs."""
    if config.lr_schedule == "cosine":
        return config.lr * (1 + math.cos(math.pi * epoch / config.epochs)) / 2
    return config.lr if epoch < config.lr_drop_epoch else config.lr / 10


def under(prefix: str, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose name starts with prefix, under the rest of their name."""
    return {name.removeprefix(prefix): tensor for name, tensor in named.items() if name.startswith(prefix)}
