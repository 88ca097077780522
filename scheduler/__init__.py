"""Everything Punctual decides, without AWS.

Pure modules, one idea each (`lifecycle`, `slots`, `retry`, ...), stand at the top; `services` carries their decisions
out through `ports`; `memory` implements the ports for tests and simulation; `targets` holds one task type a file.
Only `scheduler.aws` may import boto3, and nothing here may import it: `tests/test_architecture.py` holds the arrows.
"""
