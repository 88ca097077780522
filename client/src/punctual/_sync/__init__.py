# Generated from _async/__init__.py by client/generate_sync.py: change that file.
"""The asynchronous client. `client/generate_sync.py` writes `punctual._sync` from it."""
