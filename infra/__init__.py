"""Punctual's AWS resources. `stack.py` is the diagram; one file per verb holds its function, its trigger and its grants."""
