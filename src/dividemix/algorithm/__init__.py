"""The paper: DivideMix's Algorithm 1 and its equations. No files, no flags, no prints, no true labels."""
