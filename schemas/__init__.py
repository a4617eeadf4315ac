"""The shapes of data that every other room speaks in. Nothing here acts, and nothing here imports another room."""
