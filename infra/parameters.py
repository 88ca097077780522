"""The parameters of a stage in Systems Manager: values that its stacks, its functions and the deployment tools exchange."""

OPTIONS = "options"  # the options of the last deployment, as JSON
ORIGIN_SECRET = "origin-secret"  # the UUID of the stack, by which the API recognizes CloudFront
CONSOLE_URL = "console-url"  # the console's stack creates it, after the functions


def parameter(stage: str, name: str) -> str:
    """Return the full name of a stage's parameter."""
    return f"/punctual/{stage}/{name}"
