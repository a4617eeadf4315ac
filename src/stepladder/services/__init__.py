"""What people ask of the system, once for all its interfaces: submit, signal, settle, replay, compare."""
