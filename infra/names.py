"""The names of stages: they are part of the names of stacks, parameters, secrets and Cognito's domain."""

import re

_NAME = re.compile(r"[a-z](?:-?[a-z0-9])*")
LEAST, MOST = 2, 15
_REFUSED = ("aws", "amazon", "cognito")  # in a domain of Cognito, whatever surrounds them
_STACKS = ("-console", "-samples")  # the further stacks of a stage
_EXAMPLE = "example"


def check(stage: str) -> None:
    """Raise ValueError, with the rule, if a stage cannot have this name."""
    if rule := _broken(stage):
        raise ValueError(f"stage {stage!r}: the name of a stage {rule}")


def _broken(stage: str) -> str:
    """Return the rule that the name breaks; empty if it is valid."""
    if not LEAST <= len(stage) <= MOST:
        return f"has {LEAST} to {MOST} characters, not {len(stage)}: longer names of functions and roles are cut by CloudFormation"
    if _NAME.fullmatch(stage) is None:
        return "has small letters a to z, digits and single hyphens, begins with a letter and ends with a letter or a digit"
    for word in _REFUSED:
        if word in stage:
            return f"does not contain {word}: Cognito refuses it"
    for ending in _STACKS:
        if stage.endswith(ending):
            return f"does not end with {ending}: {stage.removesuffix(ending)} has a stack of that name"
    if stage == _EXAMPLE:
        return f"is not {_EXAMPLE}: stages/{_EXAMPLE}.toml has the comments on all options"
    return ""
