"""Our own CPU kernels, for 3 x 3 convolutions. The door is choice.py: which kernels to use, and using them."""
