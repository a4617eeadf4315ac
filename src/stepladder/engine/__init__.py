"""The HTTP client for an OpenAI-compatible engine, its identity, and the bound on requests in flight."""
