"""A transformer of texts as a net. Oracle: each text by itself, without padding, and the mean by a loop."""

import sys
import types
from typing import Any

import pytest
import torch
from tiny_transformer import NUM_CLASSES, TinyBody, TinyTexts, tiny_token_net

from dividemix.errors import InputError
from dividemix.nets.build import build_net
from dividemix.nets.settings import NetSettings


def test_logits_are_those_of_the_mean_over_the_tokens_of_each_text_alone() -> None:
    net, tokens = tiny_token_net().eval(), TinyTexts(12).tokens
    together = net(tokens)
    for row, logits in zip(tokens, together, strict=True):
        words = row[row >= 0].long()
        (hidden,) = net.body(words[None], torch.ones(1, len(words)))
        mean = sum(hidden[0, i] for i in range(len(words))) / len(words)
        torch.testing.assert_close(net.head(mean), logits)


def test_padding_beyond_the_longest_text_changes_nothing() -> None:
    net, tokens = tiny_token_net().eval(), TinyTexts(12).tokens
    longer = torch.cat([tokens, torch.full((12, 5), -1.0)], dim=1)
    torch.testing.assert_close(net(longer), net(tokens))


def test_a_text_without_a_token_has_finite_logits() -> None:
    net = tiny_token_net().eval()
    tokens = torch.tensor([[1.0, 2.0], [-1.0, -1.0]])
    logits = net(tokens)
    assert logits.isfinite().all()
    torch.testing.assert_close(logits[1], net.head(torch.zeros(8, dtype=torch.float64)))


def package() -> Any:
    """A stand-in for transformers that knows one model."""

    class Body(TinyBody):
        config = types.SimpleNamespace(hidden_size=8)

    def load(name: str, *, use_safetensors: bool, trust_remote_code: bool) -> TinyBody:
        assert use_safetensors
        assert not trust_remote_code
        if name != "tiny":
            raise OSError(f"{name} is not a local folder\nsecond line")
        return Body()

    made = types.ModuleType("transformers")
    made.AutoModel = types.SimpleNamespace(from_pretrained=load)  # type: ignore[attr-defined]
    return made


def test_it_is_built_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", package())
    net = build_net(NetSettings(net="transformers:tiny"), num_classes=NUM_CLASSES, image_shape=(6,), seed=0)
    assert net(TinyTexts(4).tokens).shape == (4, NUM_CLASSES)
    with pytest.raises(InputError, match=r"'transformers:other' cannot be loaded: other is not .*; check the name"):
        build_net(NetSettings(net="transformers:other"), num_classes=3, image_shape=(6,), seed=0)
    with pytest.raises(InputError, match="net 'transformers:tiny' takes vectors"):
        build_net(NetSettings(net="transformers:tiny"), num_classes=3, image_shape=(8, 8, 3), seed=0)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"'transformers:tiny' needs transformers .*: pip install transformers"):
        build_net(NetSettings(net="transformers:tiny"), num_classes=3, image_shape=(6,), seed=0)
