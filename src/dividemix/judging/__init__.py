"""Scores, the epoch to keep, label issues. True labels are seen here and nowhere else."""
