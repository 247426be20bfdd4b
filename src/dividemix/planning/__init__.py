"""From a request to a plan: presets, defaults with their reasons, pace, data and nets ready to train."""
