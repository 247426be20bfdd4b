"""The report of a finished run: one HTML page, in which the labels can be reviewed."""
