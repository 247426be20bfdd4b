"""SelfMix. Oracles: loops over what the head of a tiny transformer was asked, and an epoch written out in torch."""

import copy
import math
from typing import Any

import oracles
import pytest
import torch
from method_checks import assert_phases_add_up
from tiny import copied
from tiny_transformer import NUM_CLASSES, TinyTexts, tiny_token_net
from torch import Tensor
from torch.nn import functional as F

from dividemix.algorithm import mixmatch
from dividemix.engine import processes
from dividemix.engine.acceleration import autocast_net
from dividemix.engine.state import State
from dividemix.errors import DegenerateDivisionWarning, InputError
from dividemix.methods import loop
from dividemix.methods.method import EpochReport, TrainingSets
from dividemix.methods.selfmix import METHOD, SelfMixSettings, bounded_losses, pseudo_loss, rdrop_loss

SHORT: dict[str, Any] = {"epochs": 4, "warmup_epochs": 2, "batch_size": 4, "lr": 0.01, "lr_drop_epoch": 3, "seed": 3}


def started(s: SelfMixSettings, data: TinyTexts, *, dropout: float = 0.1) -> State:
    state = State.start([tiny_token_net(dropout=dropout)], s)
    loop.start(METHOD, state, TrainingSets(data), s)
    return state


def trained(s: SelfMixSettings, data: TinyTexts, num_epochs: int, *, dropout: float = 0.1) -> State:
    state = started(s, data, dropout=dropout)
    for _ in range(num_epochs):
        loop.train_one(METHOD, state, TrainingSets(data), s)
    data.asked.clear()
    return state


def probs_of(logits: Tensor) -> oracles.Rows:
    return [[math.exp(entry) for entry in oracles.log_softmax(row)] for row in logits.tolist()]


@pytest.fixture
def mixtures(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Of each step, the matrix (R, R) that mixes its rows: what mixup makes of the identity."""
    found: list[Tensor] = []
    mixup = mixmatch.mixup

    def noted(images: Tensor, targets: Tensor, *, generator: torch.Generator, **rest: Any) -> tuple[Tensor, Tensor]:
        before, identity = generator.get_state(), torch.eye(len(images), dtype=torch.float64)
        found.append(mixup(identity, identity, generator=generator, **rest)[0])
        generator.set_state(before)
        return mixup(images, targets, generator=generator, **rest)

    monkeypatch.setattr(mixmatch, "mixup", noted)
    return found


def watched(state: State, data: TinyTexts, s: SelfMixSettings) -> tuple[EpochReport, list[tuple[Tensor, Tensor]]]:
    """The next epoch's report, and what went into the head and came out, each time."""
    calls: list[tuple[Tensor, Tensor]] = []

    def note(_: Any, inputs: tuple[Tensor, ...], out: Tensor) -> None:
        calls.append((inputs[0].detach().clone(), out.detach().clone()))

    hook = state.nets[0].get_submodule("head").register_forward_hook(note)
    report = loop.train_one(METHOD, state, TrainingSets(data), s)
    hook.remove()
    return report, calls


def test_the_losses_of_an_epoch_are_those_of_the_equations(mixtures: list[Tensor]) -> None:
    s, data = SelfMixSettings(**SHORT), TinyTexts()
    report, (_, *calls) = watched(trained(s, data, 2), data, s)  # the first call is for the division
    B, terms = s.batch_size, []
    assert len(calls) == 6 * len(data.asked) > 0
    for step, index in enumerate(data.asked):
        guess, sentences, again, first, second, mixed = calls[6 * step : 6 * step + 6]
        targets = [[float(c == int(data.labels[i])) for c in range(NUM_CLASSES)] for i in index[:B]]
        targets += [oracles.sharpen(row, s.temperature) for row in probs_of(guess[1])]
        assert torch.equal(first[0], sentences[0][B:])
        assert torch.equal(second[0], again[0])
        assert not torch.equal(first[0], second[0])  # other dropout
        torch.testing.assert_close(mixed[0], mixtures[step] @ sentences[0])
        assert ((mixtures[step].diagonal() >= 0.5) & (mixtures[step].diagonal() <= 1)).all()
        soft = [
            [math.fsum(float(w) * y[c] for w, y in zip(row, targets, strict=True)) for c in range(NUM_CLASSES)]
            for row in mixtures[step]
        ]
        l_pseudo, l_rdrop = 0.0, 0.0
        for p, q in zip(probs_of(first[1]), probs_of(second[1]), strict=True):
            l_pseudo -= (math.log(max(p)) + math.log(max(q))) / 2 / B
            l_rdrop += sum(a * math.log(a / b) + b * math.log(b / a) for a, b in zip(p, q, strict=True)) / 2
        terms.append((oracles.loss_x(mixed[1].tolist(), soft), l_pseudo, l_rdrop))
    assert len({float(mixture.max()) for mixture in mixtures}) > 1
    means = [math.fsum(column) / len(terms) for column in zip(*terms, strict=True)]
    names = ("loss_mix", "loss_pseudo", "loss_rdrop")
    assert [report.losses[name][0] for name in names] == pytest.approx(means, rel=1e-5)


def test_an_epoch_descends_its_loss_by_adam(mixtures: list[Tensor]) -> None:
    """Without dropout, the epoch written out: no hooks, matrices that mix, torch's Adam on a copy."""
    s, data = SelfMixSettings(**SHORT), TinyTexts()
    state = trained(s, data, 2, dropout=0.0)
    net: Any = copy.deepcopy(state.nets[0]).train()
    adam = torch.optim.Adam(net.parameters(), lr=s.lr)
    adam.load_state_dict(copy.deepcopy(state.learners[0].optimizer.state_dict()))
    loop.train_one(METHOD, state, TrainingSets(data), s)
    B = s.batch_size

    def sentences(x: Tensor) -> Tensor:
        (hidden,) = net.body(x.clamp(min=0).long(), (x >= 0).long())
        return torch.stack([row[: int((one >= 0).sum())].mean(dim=0) for row, one in zip(hidden, x, strict=True)])

    for step, index in enumerate(data.asked):
        e = sentences(data.tokens[index])
        guess = net.head(e[B:]).detach().softmax(dim=1) ** (1 / s.temperature)
        y = torch.cat([F.one_hot(data.labels[index[:B]], NUM_CLASSES), guess / guess.sum(dim=1, keepdim=True)])
        loss = F.cross_entropy(net.head(mixtures[step] @ e), mixtures[step] @ y)
        loss = loss - s.pseudo_weight * net.head(e[B:]).log_softmax(dim=1).max(dim=1).values.mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(state.nets[0].state_dict()[name], tensor, rtol=1e-6, atol=1e-8, msg=name)


def test_every_forward_of_an_epoch_has_the_net_s_precision() -> None:
    """The oracle is the type of what the first layer of the head gives, each time it is asked."""
    s, data = SelfMixSettings(**SHORT), TinyTexts()
    state = State.start([tiny_token_net().float()], s)
    loop.start(METHOD, state, TrainingSets(data), s)
    autocast_net(state.nets[0], torch.device("cpu"), torch.bfloat16)
    types: list[torch.dtype] = []
    for name in ("body.layer.linear1", "head.0"):
        layer = state.nets[0].get_submodule(name)
        layer.register_forward_hook(lambda layer, inputs, out: types.append(out.dtype))
    for _ in range(3):
        report = loop.train_one(METHOD, state, TrainingSets(data), s)
    assert report.phase == "mix"
    assert set(types) == {torch.bfloat16}


def test_more_processes_than_pairs_of_a_batch_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "num_joined", lambda: 3)
    with pytest.raises(InputError, match=r"^batch_size is 4: with 3 processes it must be at least 6$"):
        started(SelfMixSettings(**SHORT), TinyTexts())


def test_the_terms_of_two_views() -> None:
    generator = torch.Generator().manual_seed(0)
    views = tuple(torch.randn(5, 4, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert rdrop_loss((views[0], views[0])).item() == 0
    assert rdrop_loss(views).item() == rdrop_loss((views[1], views[0])).item() > 0  # type: ignore[arg-type]
    kl = [F.kl_div(a.log_softmax(1), b.softmax(1), reduction="sum") for a, b in (views, views[::-1])]
    torch.testing.assert_close(rdrop_loss(views), (kl[0] + kl[1]) / 2)  # type: ignore[arg-type]
    sure = torch.tensor([[0.0, 50.0], [50.0, 0.0]])
    assert pseudo_loss((sure, sure)).item() == pytest.approx(0)
    assert pseudo_loss((torch.zeros(2, 4), sure)).item() == pytest.approx(math.log(4) / 2)
    assert torch.autograd.gradcheck(lambda a, b: rdrop_loss((a, b)) + pseudo_loss((a, b)), views)


def test_the_division_is_by_a_mixture_over_bounded_losses() -> None:
    s, data = SelfMixSettings(**SHORT), TinyTexts()
    state = trained(s, data, 2)
    probs = probs_of(state.nets[0].eval()(data.tokens))
    losses = [-oracles.log_softmax(row)[int(label)] for row, label in zip(probs, data.labels, strict=True)]
    report, _ = watched(state, data, s)
    assert report.sample_losses is not None
    assert report.sample_losses[0].tolist() == pytest.approx(losses, rel=1e-6)
    expected = oracles.low_posterior(oracles.min_max(losses))
    (division,) = report.divisions
    assert division.clean_prob.tolist() == pytest.approx(expected, abs=1e-5)
    assert division.labeled.tolist() == [i for i, w in enumerate(expected) if w >= 0.5]
    sure = torch.tensor([[1.0, 0.0]])
    assert bounded_losses(sure, torch.tensor([1])).item() == pytest.approx(math.log(1 + math.e))


def test_a_training_that_is_all_warm_up_is_ordinary_fine_tuning() -> None:
    s, data = SelfMixSettings(**{**SHORT, "warmup_epochs": 4}), TinyTexts()
    state = started(s, data, dropout=0.0)
    net, adam = copy.deepcopy(state.nets[0]), None
    for number in range(4):
        data.asked.clear()
        loop.train_one(METHOD, state, TrainingSets(data), s)
        adam = adam or torch.optim.Adam(net.parameters(), lr=s.lr)
        for group in adam.param_groups:
            group["lr"] = s.learning_rate(number)
        for index in data.asked:
            adam.zero_grad()
            F.cross_entropy(net.train()(data.tokens[index]), data.labels[index]).backward()
            adam.step()
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(state.nets[0].state_dict()[name], tensor)


def test_resumed_it_continues_to_the_bit() -> None:
    s, data = SelfMixSettings(**SHORT), TinyTexts()
    straight = started(s, data)
    saved = [copied(straight.tensors())]
    for _ in loop.fit(METHOD, straight, TrainingSets(data), s):
        saved.append(copied(straight.tensors()))
    for epoch, tensors in enumerate(saved[:-1]):
        resumed = started(s, data)
        torch.manual_seed(epoch)  # another process's global generator
        resumed.load(tensors, epoch)
        list(loop.fit(METHOD, resumed, TrainingSets(data), s))
        for name, tensor in saved[-1].items():
            assert torch.equal(resumed.tensors()[name], tensor), (epoch, name)


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("num_samples", [3, 5, 40])
def test_it_trains_whatever_is_dropped(num_samples: int) -> None:
    for threshold in (0.0, 0.5, 1.0):  # all labels kept; some; nearly none
        s, data = SelfMixSettings(**{**SHORT, "clean_threshold": threshold}), TinyTexts(num_samples)
        state = started(s, data)
        reports = list(loop.fit(METHOD, state, TrainingSets(data), s))
        assert all(math.isfinite(value) for report in reports for (value,) in report.losses.values())
        judged = METHOD.judge(state, data, s)
        assert judged.clean_prob.shape == judged.losses.shape == (1, num_samples)
        if threshold == 0:
            assert reports[-1].losses["loss_rdrop"] == [0.0]


def test_equal_losses_keep_all_labels_with_a_warning() -> None:
    s, data = SelfMixSettings(**SHORT), TinyTexts()
    data.tokens[:] = data.tokens[0]
    data.labels[:] = 1
    state = started(s, data)
    with pytest.warns(DegenerateDivisionWarning, match="all losses are equal"):
        list(loop.fit(METHOD, state, TrainingSets(data), s))


def test_its_phases_and_settings() -> None:
    assert_phases_add_up(METHOD, warmup_epochs=1)
    assert [phase.name for phase in METHOD.phases(SelfMixSettings(**SHORT))] == ["warmup", "mix"]
    with pytest.raises(InputError, match="warmup_epochs is 5: it must be at most epochs"):
        SelfMixSettings(**{**SHORT, "warmup_epochs": 5})
