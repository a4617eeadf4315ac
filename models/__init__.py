"""The store: PostgreSQL's tables, and the few statements by which jobs move through them."""
