"""Everything killed again and again while jobs run, and an audit of what became of them: ``scripts/chaos``."""
