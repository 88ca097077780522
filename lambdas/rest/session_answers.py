"""The answer to a completed sign-in, however it was made."""

from dataclasses import replace

from aws_lambda_powertools.event_handler import Response

from lambdas.rest import refresh_cookie
from lambdas.rest.envelope import answer
from lambdas.rest.models import SessionShape
from scheduler.storage.ports import Session


def signed_in(session: Session, now: int, *, cookie: bool) -> Response[str]:
    """The tokens; with `cookie`, the refresh token is in the cookie alone."""
    if not cookie:
        return answer(SessionShape.of(session, now))
    return answer(SessionShape.of(replace(session, refresh_token=""), now), cookies=[refresh_cookie.holding(session.refresh_token or "")])
