"""The ladder: what an answer must pass before the machine may move. Pure: no I/O, no clock, no randomness."""
