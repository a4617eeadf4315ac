"""The engine's side of the house: the HTTP client for an OpenAI-compatible server, and how to tell which one it is."""
