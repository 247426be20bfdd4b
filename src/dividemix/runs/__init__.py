"""A run: its directory, its training, its checkpoints, and how it is resumed."""
