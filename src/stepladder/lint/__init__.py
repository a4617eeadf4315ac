"""What is wrong with a document before it runs: from its text to a machine or a list of findings. Pure."""
