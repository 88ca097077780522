"""Routes of API keys: people make keys for themselves and for their teams."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas.rest import audit_trail
from lambdas.rest.access import needs
from lambdas.rest.acting_models import KeyRequest, KeyShape, KeysShape, NewKeyShape, RevokedShape, RevokeRequest
from lambdas.rest.envelope import answer
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts import api_keys
from scheduler.accounts.access import Caller, Need
from scheduler.model.account import ApiKey
from scheduler.model.errors import Forbidden, NotFound

router = Router()


@router.get(
    "/api/v1/keys",
    summary="List API keys",
    description="Your own keys, or with `owner` those of a team of yours. By time of creation.",
    tags=["keys"],
    responses=answers(200, Answer[KeysShape], errors=(400, 401, 403, 503)),
)
@needs(Need.PERSON, foreign=True, owned=True)
def list_keys() -> Response[str]:
    return answer(KeysShape.of(_runtime.api().owners.keys(router.owner)))


@router.post(
    "/api/v1/keys",
    summary="Make an API key",
    description=(
        "For yourself, or with `owner` for a team of yours. The answer is the only one that shows the key. "
        "The key may do what you may do, within its scopes: if you lose a right, so does the key."
    ),
    tags=["keys"],
    responses=answers(201, Answer[NewKeyShape], errors=(400, 401, 403, 409, 413, 415, 503)),
)
@needs(Need.PERSON, owned=True, action="key.create")
def create_key(body: Annotated[KeyRequest, Body()]) -> Response[str]:
    scopes = api_keys.expand(body.scopes)
    made = api_keys.make(router.owner, router.caller, body.name, scopes, body.expires_in_days, _runtime.api())
    return answer(NewKeyShape.made(made), 201, {"Location": f"/api/v1/keys/{made.key.id}"})


@router.post(
    "/api/v1/keys/revoke",
    summary="Revoke a key that you found",
    description="Needs no sign-in, only the key: everybody who finds a leaked key can make it useless. It stops working within 30 seconds.",
    tags=["keys"],
    responses=answers(200, Answer[RevokedShape], errors=(400, 404, 413, 415, 503)),
)
@needs(Need.OPEN)
def revoke_found_key(body: Annotated[RevokeRequest, Body()]) -> Response[str]:
    key = api_keys.find_leaked(body.key, _runtime.api())
    by = Caller(key.maker, key.maker, key.owner, key=key.id)  # of the sender, only the key is known
    arguments = {"key_id": key.id}
    answered: Response[str] = audit_trail.recorded(router.event, "key.revoke", by, key.owner, arguments, {}, lambda: _revoked(key))
    return answered


@router.get(
    "/api/v1/keys/<key_id>",
    summary="Get an API key",
    tags=["keys"],
    responses=answers(200, Answer[KeyShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.PERSON, foreign=True, owned=True)
def get_key(key_id: str) -> Response[str]:
    return answer(KeyShape.of(_key(key_id)))


@router.delete(
    "/api/v1/keys/<key_id>",
    summary="Revoke an API key",
    description="The key stops working within 30 seconds. In a team, its maker and the managers may revoke it.",
    tags=["keys"],
    responses=answers(200, Answer[RevokedShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.PERSON, foreign=True, owned=True, action="key.revoke")
def revoke_key(key_id: str) -> Response[str]:
    caller, key = router.caller, _key(key_id)
    if key.maker != caller.id and not caller.may(Need.MANAGE, key.owner) and not caller.may(Need.ADMINISTER):
        raise Forbidden("Only the maker of the key and the managers of the team may revoke it.")
    return _revoked(key)


def _revoked(key: ApiKey) -> Response[str]:
    ports = _runtime.api()
    api_keys.revoke(key, ports)
    ports.callers.forget_key(key.id)
    return answer(RevokedShape.of())


def _key(id: str) -> ApiKey:
    """A key of the owner of the request. Raises NotFound, also for another owner's."""
    key = api_keys.find(id, _runtime.api())
    if key.owner != router.owner:
        raise NotFound("there is no such API key")
    return key
