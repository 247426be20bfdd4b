"""How training runs on a machine: device, precision, compilation, kernels, checkpoints. It knows no method."""
