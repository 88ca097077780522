"""The CDK's bootstrap of an account and region. The CDK finds it by the parameter that has its version, whatever its stack is called."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from local.failure import Trouble
from local.home import REPOSITORY

QUALIFIER = "@aws-cdk/core:bootstrapQualifier"  # in the context of the CDK
DEFAULT = "hnb659fds"
NEEDED = 6  # https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html (versions); the synthesized assembly asks for it
PLACES = (REPOSITORY / "cdk.json", Path.home() / ".cdk.json")  # the first that names a qualifier applies


def qualifier(places: Iterable[Path] = PLACES) -> str:
    """Return the qualifier in the context of the CDK, or its default."""
    contexts = [json.loads(place.read_text()).get("context", {}) for place in places if place.exists()]
    return next((str(each[QUALIFIER]) for each in contexts if QUALIFIER in each), DEFAULT)


def check(ssm: Any, place: str, named: str) -> None:
    """Raise Trouble, with the command, if `place` is not bootstrapped under the qualifier `named`, or by too old a version."""
    parameter = f"/cdk-bootstrap/{named}/version"
    command = f"node_modules/.bin/cdk bootstrap {place}"
    if named != DEFAULT:
        command += f" --qualifier {named} --toolkit-stack-name CDKToolkit-{named}"
    try:
        version = int(ssm.get_parameter(Name=parameter, WithDecryption=True)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        raise Trouble(
            f"The CDK is not bootstrapped here: there is no parameter {parameter}. Once per account and region: {command}\n"
            f'If your organization uses another qualifier, write "{QUALIFIER}": "…" to the context in cdk.json.'
        ) from None
    if version < NEEDED:
        raise Trouble(f"The CDK's bootstrap here has version {version}; the stacks need {NEEDED} or newer. Renew it: {command}")
