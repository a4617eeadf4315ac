"""The command line, over the same services as the API."""
