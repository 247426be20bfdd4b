"""A run directory and the training that fills it: config, environment, metrics, checkpoints, resume, summary."""
