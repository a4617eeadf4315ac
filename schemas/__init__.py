"""The data shapes that all other packages share. They do nothing, and import no other package."""
