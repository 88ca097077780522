"""Routes of sign-in beyond the password: single sign-on, and the second factor."""

import os
import re
from typing import Annotated
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas.rest import access
from lambdas.rest.access import needs
from lambdas.rest.client_address import client_address
from lambdas.rest.envelope import answer
from lambdas.rest.models import ChallengeReply, SessionShape, SignOnCode, SignOnPageShape, SignOnShape
from lambdas.rest.resolver import Router, answers
from lambdas.rest.session_answers import signed_in
from lambdas.rest.shapes import Answer
from lambdas.rest.totp_models import BegunShape, SecondFactorCode, SecondFactorStart, TotpShape
from scheduler.accounts import login, people, second_factor, sso, user_admin
from scheduler.accounts.access import Need
from scheduler.model.errors import NotFound

SCOPES = "openid profile email"

router = Router()


@router.get(
    "/api/v1/auth/sso",
    summary="Get the ways to sign in",
    description="Open: a sign-in page needs it before anybody has signed in.",
    tags=["auth"],
    responses=answers(200, Answer[SignOnPageShape], errors=(503,)),
)
@needs(Need.OPEN)
def get_sign_on() -> Response[str]:
    option = _option()
    if option is None:
        return answer(SignOnPageShape.from_record(None, sso=None, passwords=True))
    pages = option.url.replace("{endpoint}", os.environ.get("AWS_ENDPOINT_URL", ""))
    query = {"client_id": option.client_id, "response_type": "code", "scope": SCOPES, "identity_provider": option.provider}
    out = {"client_id": option.client_id, "logout_uri": option.sign_out_url}
    shown = SignOnShape.from_record(
        option,
        authorize_url=f"{pages}/oauth2/authorize?{urlencode(query)}",
        sign_out_url=f"{pages}/logout?{urlencode(out)}",
        loopback_ports=list(sso.LOOPBACK_PORTS),
    )
    return answer(SignOnPageShape.from_record(None, sso=shown, passwords=option.passwords))


@router.post(
    "/api/v1/auth/sso",
    summary="Complete a single sign-on",
    description=(
        "Send the code that the browser brought back from the identity provider. The role by groups is computed again. "
        "The session ends after eight hours at most."
    ),
    tags=["auth"],
    responses=answers(200, Answer[SessionShape], errors=(400, 401, 404, 413, 415, 503)),
)
@needs(Need.OPEN)
def complete_sign_on(body: Annotated[SignOnCode, Body()]) -> Response[str]:
    ports, option = _runtime.api(), _option()
    if option is None:
        raise NotFound("this stage has no single sign-on")
    session = sso.sign_in(option, body.code, body.verifier, body.redirect_uri, ports)
    return signed_in(session, ports.clock.now(), cookie=body.cookie)


@router.post(
    "/api/v1/auth/challenge",
    summary="Complete a sign-in by a code",
    description="Send the code of the second factor. A code is accepted once; wrong ones are counted like wrong passwords.",
    tags=["auth"],
    responses=answers(200, Answer[SessionShape], errors=(400, 401, 413, 415, 429, 503)),
)
@needs(Need.OPEN)
def answer_challenge(body: Annotated[ChallengeReply, Body()]) -> Response[str]:
    ports = _runtime.api()
    address = client_address(router.event, ports.settings.get("origin_secret"))
    session = login.answer(login.read(body.session), body.code, address, ports)
    return signed_in(session, ports.clock.now(), cookie=body.cookie)


@router.get(
    "/api/v1/auth/totp",
    summary="Get your second factor",
    tags=["auth"],
    responses=answers(200, Answer[TotpShape], errors=(400, 401, 403, 503)),
)
@needs(Need.PERSON)
def get_second_factor() -> Response[str]:
    ports = _runtime.api()
    account = people.account_of(router.caller.id, ports)
    return answer(TotpShape.of(account is not None, account is not None and ports.identity.has_totp(account)))


@router.post(
    "/api/v1/auth/totp",
    summary="Begin a second factor",
    description="Returns a new secret for a program that shows one-time codes. It applies once you have confirmed it with a code.",
    tags=["auth"],
    responses=answers(200, Answer[BegunShape], errors=(400, 401, 403, 409, 413, 415, 429, 503)),
)
@needs(Need.PERSON, action="user.totp-begin")
def begin_second_factor(body: Annotated[SecondFactorStart, Body()]) -> Response[str]:
    caller = router.caller
    secret, uri = second_factor.begin(caller.id, caller.name, body.current_password, _runtime.api())
    return answer(BegunShape.of(secret, uri))


@router.put(
    "/api/v1/auth/totp",
    summary="Switch your second factor on",
    description="From now on, each sign-in with your password needs a code. Other sessions go on.",
    tags=["auth"],
    responses=answers(200, Answer[TotpShape], errors=(400, 401, 403, 409, 413, 415, 429, 503)),
)
@needs(Need.PERSON, action="user.totp-on")
def confirm_second_factor(body: Annotated[SecondFactorCode, Body()]) -> Response[str]:
    caller = router.caller
    second_factor.confirm(caller.id, caller.name, body.current_password, body.code, _runtime.api())
    return answer(TotpShape.of(True, True))


@router.post(
    "/api/v1/auth/totp/disable",
    summary="Switch your second factor off",
    description="Idempotent. If you have lost your program for codes, an administrator can reset the second factor.",
    tags=["auth"],
    responses=answers(200, Answer[TotpShape], errors=(400, 401, 403, 409, 413, 415, 429, 503)),
)
@needs(Need.PERSON, action="user.totp-off")
def remove_second_factor(body: Annotated[SecondFactorCode, Body()]) -> Response[str]:
    caller = router.caller
    second_factor.remove(caller.id, caller.name, body.current_password, body.code, _runtime.api())
    return answer(TotpShape.of(True, False))


@router.delete(
    "/api/v1/users/<user_id>/totp",
    summary="Reset the second factor of a user",
    description="Administrators only. The user signs in with the password alone until they begin a new second factor. Idempotent.",
    tags=["users"],
    responses=answers(200, Answer[TotpShape], errors=(400, 401, 403, 404, 409, 503)),
)
@needs(Need.ADMINISTER, action="user.totp-reset")
def reset_second_factor(user_id: str) -> Response[str]:
    if re.fullmatch(access.OWNER_ID, user_id) is None:
        raise NotFound("there is no such user")
    ports = _runtime.api()
    second_factor.reset(user_admin.find(user_id, ports).id, ports)
    return answer(TotpShape.of(True, False))


def _option() -> sso.Sso | None:
    return sso.of_setting(_runtime.api().settings.get("sso"))
