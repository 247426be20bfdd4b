"""Lengths of a training's parts that follow from its number of epochs. No torch import."""

from dividemix.planning.choices import Choice


def lengths_for(epochs: int, on_cpu: bool, num_warmup: int | None = None) -> list[Choice]:
    """Warm-up, unless its length is given, and ramp-up in a training of so many epochs."""
    warmup = warmup_for(epochs, on_cpu)
    left = epochs - (warmup.value if num_warmup is None else num_warmup)
    return [warmup, Choice("rampup_epochs", max(1, min(16, left)), "until lambda_u is in full force")]


def warmup_for(epochs: int, on_cpu: bool) -> Choice:
    """Epochs of warm-up in a training of so many epochs."""
    most = 5 if on_cpu else 10
    return Choice("warmup_epochs", max(1, min(round(epochs / 6), most)), f"a sixth of the epochs, {most} at most")
