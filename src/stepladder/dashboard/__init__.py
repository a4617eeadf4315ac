"""The dashboard: pages for people, made on the server over the same read service as the API."""
