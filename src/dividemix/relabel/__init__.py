"""Apply a reviewer's decisions to the data."""
