"""Options of the deployed stage that the next deployment would reset."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from infra.options import Options, lasting
from infra.parameters import OPTIONS, parameter
from infra.settings import STAGES, bare


def recorded(ssm: Any, stage: str) -> dict[str, Any]:
    """Return the options of the last deployment; none if the stage is not deployed."""
    try:
        found = json.loads(ssm.get_parameter(Name=parameter(stage, OPTIONS))["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        return {}
    return found if isinstance(found, dict) else {}


def taken_back(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each option that `after` leaves out, and for each element of a list or a table that it lacks.

    An option that the file sets to another value, or to its default, is a decision: it is not reported.
    """
    return list(_sentences(before, after))


def unprotected(stage: str, before: Mapping[str, Any], after: Options) -> list[str]:
    """Return a sentence if the stage is deployed as protected, and `after` would end that by its base."""
    recorded = before.get("base", None if stage in STAGES else after.base)  # without a record nothing is known of another stage
    if not bare(stage, recorded).protected or bare(stage, after.base).protected:
        return []
    return [f"{stage} is protected as prod is: its data outlives its stack, and logs are kept for three months. This would end"]


def forbidden(before: Mapping[str, Any], after: Options) -> list[str]:
    """Return a sentence for each option whose value must stay as it was deployed, and that `after` changes or leaves out."""
    return [
        f"{name} cannot be changed back: {stays.because}. Write {name} = {json.dumps(stays.value)} to the file."
        for name, stays in lasting().items()
        if before.get(name) == stays.value != getattr(after, name)
    ]


def _sentences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name, value in before.items():
        if name not in after:
            if value != _default(name):
                yield f"{name} is {json.dumps(value)} in the deployed stage, and absent from the file"
        elif isinstance(value, list | dict) and (gone := [each for each in value if each not in after[name]]):
            yield f"{name} no longer has {', '.join(gone)}"


def _default(name: str) -> Any:
    """The default as JSON knows it; None for an option of another version."""
    return Options().model_dump(mode="json").get(name)
