"""CEL over JSON: the grammar is cel-python's, what it means stands here. ``validation.expressions`` is the way in."""
