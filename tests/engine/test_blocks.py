"""One process that computes in blocks. The oracle is the same net without blocks, in double precision."""

import copy

import torch
from torch import Tensor, nn
from torch.autograd import gradgradcheck
from torch.func import functional_call
from torch.nn import functional as F

from dividemix.engine.shared_net import share_net


class Net(nn.Module):
    """All layers that compute in blocks, one with weights that does not, and a weight that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
        self.body, self.scale, self.thin = nn.Linear(12, 12), nn.LayerNorm(12), nn.BatchNorm1d(12, affine=False)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        """(B, 2, 4, 4) to (B, 12)."""
        features = torch.tanh(self.norm(self.conv(x))).flatten(1)
        return F.linear(self.thin(self.scale(self.body(features))), self.body.weight)


def nets() -> tuple[Net, Net, Tensor]:
    """A net, the same net in blocks, and a batch of which blocks get 5, 5, 5 and 4 rows."""
    plain = Net()
    blocked = copy.deepcopy(plain)
    share_net(blocked, sync_batchnorm=True)
    return plain, blocked, torch.randn(19, 2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def test_blocks_change_nothing_but_rounding() -> None:
    plain, blocked, x = nets()
    results = []
    for net in (plain, blocked):
        rows = x.clone().requires_grad_()
        logits = net(rows)
        (logits.square().sin().sum() + (net(rows.flip(0)) * x[:, 0, 0, :1]).sum()).backward()
        assert rows.grad is not None
        gradients = {name: value.grad for name, value in net.named_parameters()}
        results.append({"logits": logits, "rows": rows.grad, **gradients, **dict(net.named_buffers())})
        results[-1]["evaluated"] = net.eval()(x)
    torch.testing.assert_close(results[1], results[0], rtol=1e-9, atol=1e-11)


def test_blocks_have_second_derivatives() -> None:
    _, blocked, x = nets()
    names = ["conv.weight", "norm.weight", "body.weight"]
    values = [dict(blocked.named_parameters())[name].detach().requires_grad_() for name in names]
    buffers = {name: buffer.clone() for name, buffer in blocked.named_buffers()}

    def loss(*weights: Tensor) -> Tensor:
        logits: Tensor = functional_call(blocked, {**dict(zip(names, weights, strict=True)), **buffers}, (x,))
        return logits.square().sin().sum()

    gradgradcheck(loss, values, fast_mode=True)


def test_a_batch_of_fewer_than_two_rows_a_block_is_computed_whole() -> None:
    plain, blocked, x = nets()
    torch.testing.assert_close(blocked(x[:7]), plain(x[:7]))
