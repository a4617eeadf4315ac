"""The HTTP API: one face over the store, the read service and the machines. Every error is a problem (RFC 9457)."""
