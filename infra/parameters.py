"""Names that a stage's stacks, its functions and the deployment tools share: parameters in Systems Manager, and the functions' alias."""

OPTIONS = "options"  # the options of the last deployment, as JSON
API_ID = "api-id"  # where the console finds the API
ORIGIN_SECRET = "cloudfront-secret"  # by which the API recognizes CloudFront; `make deploy` creates it, before the stacks
CONSOLE_URL = "console-url"  # the console's stack creates it, after the functions

LIVE = "live"  # the alias by which everything calls a function


def export(stage: str, template: str) -> str:
    """Return the name under which a stage exports the provider of an entry of its option `templates`."""
    return f"punctual-{stage}-templates-{template}"


def parameter(stage: str, name: str) -> str:
    """Return the full name of a stage's parameter."""
    return f"/punctual/{stage}/{name}"
