"""transformers:MODEL as a net: a pretrained transformer of texts, and a new head.

Shapes: R texts, L tokens, D numbers of a sentence, C classes.
"""

from collections.abc import Callable

from torch import Tensor, nn

from dividemix.optional import check_folder, import_optional, loading, quiet

SOURCE = "transformers"
_ADVICE = "check the name, connect to the network once, or give a folder that has the model"


class TokenNet(nn.Module):
    """A body that gives a vector for each token, their mean, and a head: linear, tanh, dropout, linear.

    The body is called with input_ids and attention_mask, as a model of the package transformers.
    """

    def __init__(self, body: nn.Module, num_features: int, num_classes: int):
        super().__init__()
        self.body = body
        self.head = nn.Sequential(
            nn.Linear(num_features, num_features), nn.Tanh(), nn.Dropout(0.1), nn.Linear(num_features, num_classes)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (R, C) of tokens (R, L), padded at the end by negative numbers."""
        tokens = tokens[:, : max(int((tokens >= 0).sum(dim=1).max()), 1)].long()
        is_token = (tokens >= 0)[..., None]
        hidden: Tensor = self.body(input_ids=tokens.clamp(min=0), attention_mask=is_token[..., 0].long())[0]
        sentences = hidden.masked_fill(~is_token, 0).sum(dim=1) / is_token.sum(dim=1).clamp(min=1)
        logits: Tensor = self.head(sentences)
        return logits


def is_token_net(name: str) -> bool:
    """Whether the name is that of a transformer of texts."""
    return name.startswith(f"{SOURCE}:")


def token_factory(name: str) -> Callable[..., nn.Module]:
    """What makes the net of that name, with its pretrained body; no code of the model's own is run."""
    transformers, model = import_optional(SOURCE, name, SOURCE), name.partition(":")[2]

    def factory(num_classes: int, in_features: int) -> nn.Module:
        check_folder(model, name)
        with loading(name, _ADVICE), quiet(transformers):
            body = transformers.AutoModel.from_pretrained(model, use_safetensors=True, trust_remote_code=False)
        return TokenNet(body, body.config.hidden_size, num_classes)

    return factory
