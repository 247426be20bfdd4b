"""Frozen encoders: pretrained models that turn images or texts into vectors. One file per source. No torch import."""
