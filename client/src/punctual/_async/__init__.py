"""The asynchronous client. `client/generate_sync.py` writes `punctual._sync` from it."""
