"""The parameters of a stage in Systems Manager: what its stacks, its functions and the tools that deploy it tell each other."""

OPTIONS = "options"  # the options of the last deployment, as JSON
ORIGIN_SECRET = "origin-secret"  # by which the API recognizes CloudFront: the UUID of the stack
CONSOLE_URL = "console-url"  # the console's stack creates it, after the functions


def parameter(stage: str, name: str) -> str:
    """Return the full name of a stage's parameter."""
    return f"/punctual/{stage}/{name}"
