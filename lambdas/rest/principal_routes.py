"""Routes of AWS principals, for administrators."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas.rest.access import needs
from lambdas.rest.acting_models import PrincipalChange, PrincipalRequest, PrincipalShape, PrincipalsShape
from lambdas.rest.envelope import answer
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts import api_keys, principals
from scheduler.accounts.access import Need
from scheduler.model.account import Principal

router = Router()


@router.get(
    "/api/v1/principals",
    summary="List AWS principals",
    description="Operators and administrators only, by ARN.",
    tags=["principals"],
    responses=answers(200, Answer[PrincipalsShape], errors=(400, 401, 403, 503)),
)
@needs(Need.OVERSEE)
def list_principals() -> Response[str]:
    return answer(PrincipalsShape.of(sorted(_runtime.api().owners.principals(), key=lambda each: each.arn)))


@router.post(
    "/api/v1/principals",
    summary="Let an AWS role act for an owner",
    description="Administrators only.",
    tags=["principals"],
    responses=answers(201, Answer[PrincipalShape], errors=(400, 401, 403, 409, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="principal.create")
def create_principal(body: Annotated[PrincipalRequest, Body()]) -> Response[str]:
    scopes = api_keys.expand(body.scopes)
    made = principals.create(body.arn, body.owner, scopes, body.unique_id, router.caller.id, _runtime.api())
    return _shown(made, 201, {"Location": f"/api/v1/principals/{made.id}"})


@router.get(
    "/api/v1/principals/<principal_id>",
    summary="Get an AWS principal",
    description="Operators and administrators only.",
    tags=["principals"],
    responses=answers(200, Answer[PrincipalShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.OVERSEE)
def get_principal(principal_id: str) -> Response[str]:
    return answer(PrincipalShape.of(principals.find(principal_id, _runtime.api())))


@router.patch(
    "/api/v1/principals/<principal_id>",
    summary="Change an AWS principal",
    description="Administrators only. Applies within 30 seconds.",
    tags=["principals"],
    responses=answers(200, Answer[PrincipalShape], errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="principal.change")
def update_principal(principal_id: str, body: Annotated[PrincipalChange, Body()]) -> Response[str]:
    scopes = api_keys.expand(body.scopes) if "scopes" in body.model_fields_set else None
    return _shown(principals.change(principal_id, body.owner or None, scopes, body.unique_id or None, _runtime.api()))


@router.delete(
    "/api/v1/principals/<principal_id>",
    summary="Stop an AWS role from acting",
    description="Administrators only. The API refuses the role within 30 seconds.",
    tags=["principals"],
    responses=answers(200, Answer[PrincipalShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.ADMINISTER, action="principal.delete")
def delete_principal(principal_id: str) -> Response[str]:
    return _shown(principals.delete(principal_id, _runtime.api()))


def _shown(principal: Principal, status: int = 200, headers: dict[str, str] | None = None) -> Response[str]:
    _runtime.api().callers.forget_principals()
    return answer(PrincipalShape.of(principal), status, headers)
