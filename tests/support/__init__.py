"""What several test modules build their cases from."""
