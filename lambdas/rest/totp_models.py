"""Shapes of the second factor."""

from lambdas.rest.models import OneTimeCode, Request
from lambdas.rest.shapes import Json, Shape
from lambdas.rest.user_models import Password


class SecondFactorStart(Request):
    """Your password, again: a token alone must not change how you sign in."""

    current_password: Password


class SecondFactorCode(SecondFactorStart):
    """Your password and a present code."""

    code: OneTimeCode


class TotpShape(Shape):
    possible: bool
    """False: you sign in by single sign-on alone, and your identity provider asks for further factors."""
    enabled: bool

    @classmethod
    def of(cls, possible: bool, enabled: bool) -> Json:
        return cls.from_record(None, possible=possible, enabled=enabled)


class BegunShape(Shape):
    """The secret that a program for one-time codes needs. It is shown once."""

    secret: str
    """In base32, for typing."""
    uri: str
    """The content of a QR code."""

    @classmethod
    def of(cls, secret: str, uri: str) -> Json:
        return cls.from_record(None, secret=secret, uri=uri)
