"""How training runs on a machine: the device, and checkpoints on its disk. Knows nothing of the paper."""
