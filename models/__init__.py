"""The store: PostgreSQL's tables, and the few statements that move jobs through them."""
