"""What people ask of the system, once for every face: publish, submit, signal, settle, replay, compare."""
