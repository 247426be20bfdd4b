"""The paper: DivideMix's Algorithm 1 and the equations it stands on. No files, no flags, no prints, no true labels."""
