"""The one place that builds things: settings in, a store, an engine and a runner out."""
