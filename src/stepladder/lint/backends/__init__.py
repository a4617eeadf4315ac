"""What each grammar backend enforces, refuses and ignores: tables of data, one module a backend, and who asks them."""
