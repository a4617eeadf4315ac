"""The HTTP API, over the services, the store and the read service. Every error is a problem (RFC 9457)."""
