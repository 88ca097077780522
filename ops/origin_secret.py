"""The origin secret of a stage, by which its API recognizes CloudFront: created when it is missing, and replaced by `make rotate`.

It is a parameter of Systems Manager, which costs nothing. Templates refer to one of its versions, so a new version is a change of them.
"""

import secrets
from typing import Any

from infra.parameters import ORIGIN_SECRET, parameter


def ensure(ssm: Any, stage: str) -> int:
    """Return the version of the stage's secret; creates the secret if there is none."""
    name = parameter(stage, ORIGIN_SECRET)
    try:
        return int(ssm.get_parameter(Name=name)["Parameter"]["Version"])
    except ssm.exceptions.ParameterNotFound:
        return int(ssm.put_parameter(Name=name, Value=_new(), Type="String")["Version"])


def rotate(ssm: Any, stage: str) -> int:
    """Replace the secret; returns its version. The API accepts this version and the one before: CloudFront sends that one for minutes."""
    ensure(ssm, stage)
    return int(ssm.put_parameter(Name=parameter(stage, ORIGIN_SECRET), Value=_new(), Type="String", Overwrite=True)["Version"])


def delete(ssm: Any, stage: str) -> None:
    """Delete the secret, if there is one."""
    ssm.delete_parameters(Names=[parameter(stage, ORIGIN_SECRET)])


def _new() -> str:
    return secrets.token_hex(32)
