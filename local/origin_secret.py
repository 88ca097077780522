"""The secret by which the API recognizes requests that come through CloudFront: a parameter that both stacks read when they are deployed.

It is no template's: CloudFormation cannot draw a random value that two resources know, for nothing. It only decides whose address is
believed, so whoever may read parameters of the account may know it. To replace it, delete the parameter, and deploy.
"""

import secrets
from typing import Any


def ensure(ssm: Any, name: str) -> bool:
    """Create the parameter if it is missing. Returns True if it is new. Idempotent."""
    try:
        ssm.put_parameter(
            Name=name,
            Value=secrets.token_urlsafe(32),
            Type="String",
            Description="Punctual: CloudFront sends it, and the API then believes the viewer's address",
        )
    except ssm.exceptions.ParameterAlreadyExists:
        return False
    return True
