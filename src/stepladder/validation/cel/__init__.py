"""CEL over JSON: the grammar is cel-python's, the evaluation ours. Use it through ``validation.expressions``."""
