"""Punctual's AWS resources. `stack.py` is the diagram; one file per verb holds its function, its trigger and its grants."""

import os

# aws_cdk reads these when it is imported. Each command would print a box of warnings on a machine with Node 20.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
os.environ.setdefault("JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION", "1")
