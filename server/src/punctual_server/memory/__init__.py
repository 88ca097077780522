"""The real API and the real engine in memory, in virtual time. `punctual.testing` in the client package is its face."""
