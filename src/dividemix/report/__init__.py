"""What a person sees of a finished run: the HTML page with its review, and the corrected table that follows from it."""
