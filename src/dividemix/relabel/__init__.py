"""From a reviewer's decisions to corrected data."""
