"""Routes of named targets: administrators change them, all users read them."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest import etags
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.parameters import AnyLimit, Cursor, part
from lambdas.rest.resolver import CONDITIONAL, Router, answers
from lambdas.rest.shapes import Answer
from lambdas.rest.target_models import EXAMPLES, DeletedTargetShape, TargetEdit, TargetRequest, TargetShape, TargetsShape
from scheduler.accounts.access import Need
from scheduler.admission import key_limits
from scheduler.model.limiter import NOBODY
from scheduler.model.named_target import NamedTarget
from scheduler.targets import service as verbs

router = Router()


@router.get(
    "/api/v1/targets",
    summary="List named targets",
    tags=["targets"],
    responses=answers(200, Answer[TargetsShape], errors=(400, 401, 503)),
)
@needs(Need.JOBS_READ, owned=False)
def list_targets(limit: AnyLimit = None, cursor: Cursor = None) -> Response[str]:
    return answer(TargetsShape.of(part(_runtime.api().targets.all(), limit, cursor), whole=router.caller.may(Need.ADMINISTER)))


@router.get(
    "/api/v1/targets/<name>",
    summary="Get a named target",
    tags=["targets"],
    responses=answers(200, Answer[TargetShape], errors=(401, 404, 503)),
)
@needs(Need.JOBS_READ, owned=False)
def get_target(name: str) -> Response[str]:
    return _target(verbs.find(name, targets=_runtime.api().targets))


@router.post(
    "/api/v1/targets",
    summary="Register a named target",
    description="Administrators only.",
    tags=["targets"],
    responses=answers(201, Answer[TargetShape], errors=(400, 401, 403, 409, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="target.create")
def create_target(body: Annotated[TargetRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    ports = _runtime.api()
    _claim_key(body.name, body)
    made = verbs.register(body.name, body.kind, body.fields, by=router.caller.id, targets=ports.targets, now=ports.clock.now())
    _changed("registered", made)
    return answer(TargetShape.of(made, whole=router.caller.may(Need.ADMINISTER)), 201, {"Location": f"/api/v1/targets/{made.name}"})


@router.put(
    "/api/v1/targets/<name>",
    summary="Replace a named target",
    description=(
        "Administrators only. "
        "Jobs that start more than a second later use the new settings, without an edit of any task. The kind cannot change."
    ),
    tags=["targets"],
    openapi_extensions=CONDITIONAL,
    responses=answers(200, Answer[TargetShape], errors=(400, 401, 403, 404, 409, 412, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="target.change")
def replace_target(name: str, body: Annotated[TargetEdit, Body()]) -> Response[str]:
    ports = _runtime.api()
    _claim_key(name, body)
    made = verbs.edit(
        *(name, body.kind, body.fields),
        by=router.caller.id,
        targets=ports.targets,
        now=ports.clock.now(),
        version=body.version,
        check=lambda target: etags.check(router.event, etags.of_target(target)),
    )
    _changed("replaced", made)
    return _target(made)


def _claim_key(name: str, body: TargetEdit) -> None:
    """Store the limit of the target's key. Raises Conflict if the key has another one."""
    ports = _runtime.api()
    if body.limit is not None:
        now = ports.clock.now()
        key_limits.check(key_limits.Claim(NOBODY, body.limit.record, f"target {name}", now), ports, now)


def _target(target: NamedTarget) -> Response[str]:
    return answer(TargetShape.of(target, whole=router.caller.may(Need.ADMINISTER)), headers=etags.header(etags.of_target(target)))


@router.delete(
    "/api/v1/targets/<name>",
    summary="Delete a named target",
    description="Administrators only. Jobs and runs that name it fail when they start.",
    tags=["targets"],
    responses=answers(200, Answer[DeletedTargetShape], errors=(401, 403, 404, 503)),
)
@needs(Need.ADMINISTER, action="target.delete")
def delete_target(name: str) -> Response[str]:
    gone = verbs.delete(name, targets=_runtime.api().targets)
    _changed("deleted", gone)
    return answer(DeletedTargetShape.from_record(gone))


def _changed(what: str, target: NamedTarget) -> None:
    _runtime.api().named.forget(target.name)
    logger.info("named target", extra={"target": target.name, "change": what, "version": target.version, "by": router.caller.id})
