"""The linter and compiler: from the text of a document to a machine, or to a list of findings. Pure."""
