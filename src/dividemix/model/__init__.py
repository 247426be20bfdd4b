"""The deployable result: save, load, predict, export."""
