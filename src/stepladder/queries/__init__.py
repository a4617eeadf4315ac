"""What people read of jobs: lists, one job with its turns, statistics, counts. Nothing here writes."""
