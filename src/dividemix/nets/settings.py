"""Settings of the network. No torch import."""

from dataclasses import dataclass

from dividemix.settings import Settings, setting

FIXED_WIDTH = ("resnet50", "inception_resnet_v2", "trees")  # nets that net_width does not change

LINEAR = ("linear", "fourier")  # nets whose only trained part is one linear layer


@dataclass(frozen=True, kw_only=True)
class NetSettings(Settings):
    """Which network is trained."""

    net: str = setting(
        "preact_resnet18",
        "network: preact_resnet18, resnet50, inception_resnet_v2, small_cnn, small_vgg; for vectors mlp, linear,"
        " fourier, trees; timm:NAME, torchvision:NAME; or your own function that builds a network, as"
        " package.module:function",
    )
    net_width: int = setting(64, "channels of the first stage (64 in the paper)", low=1)
    final_norm: bool = setting(False, "BatchNorm and ReLU before the pooling of a pre-activation net (He et al.)")

    @property
    def net_words(self) -> str:
        """The net in words, with its width if that is a setting of it."""
        has_width = self.net not in (*FIXED_WIDTH, "linear") and ":" not in self.net
        return f"{self.net} of width {self.net_width}" if has_width else self.net
