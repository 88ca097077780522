"""Routes of users: the caller's account and password; for administrators, all users."""

import re
from dataclasses import replace
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas.rest import access, refresh_cookie
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.parameters import Limit, position
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer, Json
from lambdas.rest.user_models import (
    AccountPageShape,
    AccountShape,
    ChangedShape,
    IdentitiesShape,
    IdentityRequest,
    MeShape,
    PasswordChange,
    PasswordRequest,
    SignedOutShape,
    SignOut,
    UserChange,
    UserRequest,
)
from scheduler.accounts import sso, teams, user_admin
from scheduler.accounts.access import Need
from scheduler.accounts.sessions import change_password, end_all
from scheduler.model.account import COGNITO, Profile, Quotas, Subject
from scheduler.model.errors import Invalid, NotFound
from scheduler.sharing.fair_queue import DEFAULT_WEIGHT

router = Router()


@router.get(
    "/api/v1/me",
    summary="Get the caller",
    tags=["users"],
    responses=answers(200, Answer[MeShape], errors=(400, 401, 403, 503)),
)
@needs(Need.SIGNED_IN)
def get_me() -> Response[str]:
    ports, caller = _runtime.api(), router.caller
    record = ports.quotas.record(caller.owner)
    mine = teams.of_caller(record.memberships, ports) if caller.scopes is None else []
    weight = DEFAULT_WEIGHT if record.profile.weight is None else record.profile.weight
    return answer(MeShape.of(caller, mine, weight, ports.quotas.allowed(record.profile)))


@router.post(
    "/api/v1/auth/password",
    summary="Change your password",
    description="Ends all your sessions within 30 seconds. The answer has the tokens of a new session.",
    tags=["auth"],
    responses=answers(200, Answer[ChangedShape], errors=(400, 401, 403, 409, 413, 415, 429, 503)),
)
@needs(Need.PERSON, action="user.password")
def change_my_password(body: Annotated[PasswordChange, Body()]) -> Response[str]:
    ports, caller = _runtime.api(), router.caller
    session = change_password(caller.id, caller.name, body.current_password, body.new_password, ports)
    ports.quotas.forget(caller.id)
    if session is None or refresh_cookie.read(router.event) is None:
        return answer(ChangedShape.of(session))
    return answer(ChangedShape.of(replace(session, refresh_token=None)), cookies=[refresh_cookie.holding(session.refresh_token or "")])


@router.post(
    "/api/v1/auth/logout",
    summary="End all your sessions, or one",
    description=(
        "Refresh tokens stop working at once, access tokens within 30 seconds, on every device. "
        "A program that signs in with the same name must sign in again. Idempotent. "
        "With `everywhere` false, only the session of the refresh token in the body or the cookie ends. Its access token stays valid."
    ),
    tags=["auth"],
    responses=answers(200, Answer[SignedOutShape], errors=(400, 401, 403, 413, 415, 503)),
)
@needs(Need.PERSON, action="user.sign-out")
def logout(body: Annotated[SignOut, Body()]) -> Response[str]:
    ports, id = _runtime.api(), router.caller.id
    if body.everywhere:
        end_all(id, ports)
        ports.quotas.forget(id)
    else:
        token = body.refresh_token or refresh_cookie.read(router.event)
        if token is None:
            raise Invalid.field("refresh_token", "is required if everywhere is false and no cookie carries it")
        ports.identity.revoke(token)
    return answer(SignedOutShape.of(), cookies=[refresh_cookie.holding("")])


@router.post(
    "/api/v1/users",
    summary="Create a user",
    description="Administrators only.",
    tags=["users"],
    responses=answers(201, Answer[AccountShape], errors=(400, 401, 403, 409, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="user.create")
def create_user(body: Annotated[UserRequest, Body()]) -> Response[str]:
    quotas = body.quotas.quotas if body.quotas else Quotas()
    ports = _runtime.api()
    made = user_admin.create(body.username, body.password, body.role, body.job_weight, quotas, ports)
    return _user(made, 201, {"Location": f"/api/v1/users/{made.id}"})


@router.get(
    "/api/v1/users",
    summary="List users",
    description="Operators and administrators only, by id.",
    tags=["users"],
    responses=answers(200, Answer[AccountPageShape], errors=(400, 401, 403, 503)),
)
@needs(Need.OVERSEE)
def list_users(
    limit: Limit = 20,
    cursor: Annotated[str | None, Query(min_length=1, max_length=4_096, description="the `cursor` of the previous page")] = None,
) -> Response[str]:
    ports = _runtime.api()
    found, following = user_admin.page(position(cursor, access.OWNER_ID), limit, ports)
    return answer(AccountPageShape.of(map(_shown, found), following))


@router.get(
    "/api/v1/users/<user_id>",
    summary="Get a user",
    description="Operators and administrators only.",
    tags=["users"],
    responses=answers(200, Answer[AccountShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.OVERSEE)
def get_user(user_id: str) -> Response[str]:
    return _user(user_admin.find(_id(user_id), _runtime.api()))


@router.patch(
    "/api/v1/users/<user_id>",
    summary="Change a user's role, weight or quotas",
    description=(
        "Administrators only. A role and quotas apply within 30 seconds, a weight within a minute. A lower role ends all sessions."
    ),
    tags=["users"],
    responses=answers(200, Answer[AccountShape], errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="user.change")
def update_user(user_id: str, body: Annotated[UserChange, Body()]) -> Response[str]:
    return _user(user_admin.change(_id(user_id), body.changes, router.caller.id, _runtime.api()))


@router.post(
    "/api/v1/users/<user_id>/disable",
    summary="Disable a user",
    description=(
        "Administrators only. The user's tokens stop working within 30 seconds, and no job of the user starts after a minute: "
        "the jobs wait until you enable the user. Idempotent."
    ),
    tags=["users"],
    responses=answers(200, Answer[AccountShape], errors=(400, 401, 403, 404, 409, 503)),
)
@needs(Need.ADMINISTER, action="user.disable")
def disable_user(user_id: str) -> Response[str]:
    return _user(user_admin.disable(_id(user_id), router.caller.id, _runtime.api()))


@router.post(
    "/api/v1/users/<user_id>/enable",
    summary="Enable a user again",
    description="Administrators only. Idempotent.",
    tags=["users"],
    responses=answers(200, Answer[AccountShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.ADMINISTER, action="user.enable")
def enable_user(user_id: str) -> Response[str]:
    return _user(user_admin.enable(_id(user_id), _runtime.api()))


@router.delete(
    "/api/v1/users/<user_id>",
    summary="Delete a user",
    description=(
        "Administrators only. The user can no longer sign in. After a minute no job of the user starts: "
        "each job is cancelled when it is due, and no task gets further runs."
    ),
    tags=["users"],
    responses=answers(200, Answer[AccountShape], errors=(400, 401, 403, 404, 409, 503)),
)
@needs(Need.ADMINISTER, action="user.delete")
def delete_user(user_id: str) -> Response[str]:
    return _user(user_admin.delete(_id(user_id), router.caller.id, _runtime.api()))


@router.get(
    "/api/v1/users/<user_id>/identities",
    summary="List the identities of a user",
    description="The subjects of the identity provider as which the user signs in. Operators and administrators only.",
    tags=["users"],
    responses=answers(200, Answer[IdentitiesShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.OVERSEE)
def list_identities(user_id: str) -> Response[str]:
    return _identities(user_admin.find(_id(user_id), _runtime.api()))


@router.put(
    "/api/v1/users/<user_id>/identities/<provider>",
    summary="Link an identity to a user",
    description=(
        "Administrators only. The user then signs in by single sign-on too, and sees the same tasks and jobs. "
        "Link it before the first single sign-on: an identity that has signed in is a person of its own (409). Idempotent."
    ),
    tags=["users"],
    responses=answers(200, Answer[IdentitiesShape], errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="user.link")
def link_identity(user_id: str, provider: str, body: Annotated[IdentityRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    return _identities(user_admin.link(_id(user_id), Subject(_provider(provider), body.subject.casefold()), ports))


@router.delete(
    "/api/v1/users/<user_id>/identities/<provider>",
    summary="Unlink an identity from a user",
    description="Administrators only. Ends all sessions of the user within 30 seconds, and takes away the role by groups.",
    tags=["users"],
    responses=answers(200, Answer[IdentitiesShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.ADMINISTER, action="user.unlink")
def unlink_identity(user_id: str, provider: str) -> Response[str]:
    ports = _runtime.api()
    return _identities(user_admin.unlink(_id(user_id), _provider(provider), ports))


@router.put(
    "/api/v1/users/<user_id>/password",
    summary="Set the password of a user",
    description="Administrators only. Ends all sessions of the user within 30 seconds.",
    tags=["users"],
    responses=answers(200, Answer[AccountShape], errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="user.password")
def set_user_password(user_id: str, body: Annotated[PasswordRequest, Body()]) -> Response[str]:
    return _user(user_admin.set_password(_id(user_id), body.password, _runtime.api()))


def _id(text: str) -> str:
    """The id of a user. Raises NotFound for a text that is no valid id."""
    if re.fullmatch(access.OWNER_ID, text) is None:
        raise NotFound("there is no such user")
    return text


def _provider(name: str) -> str:
    """The identity provider of the stage. Raises NotFound for another name: no token could name its subjects."""
    option = sso.of_setting(_runtime.api().settings.get("sso"))
    if option is None or option.provider != name:
        raise NotFound("the stage has no identity provider of this name")
    return name


def _identities(known: Profile) -> Response[str]:
    ports = _runtime.api()
    ports.quotas.forget(known.id)
    return answer(IdentitiesShape.of([each for each in ports.owners.subjects(known.id) if each.issuer != COGNITO]))


def _user(known: Profile, status: int = 200, headers: Any = None) -> Response[str]:
    _runtime.api().quotas.forget(known.id)
    return answer(_shown(known), status, headers)


def _shown(known: Profile) -> Json:
    return AccountShape.of(known, _runtime.api().quotas.allowed(known))
