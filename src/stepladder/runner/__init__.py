"""The loop that claims a job, asks the machine what comes next, does it and commits. It decides nothing itself."""
