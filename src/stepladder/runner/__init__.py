"""The loop that takes a job, asks the machine what comes next, does it and commits. It decides nothing itself."""
