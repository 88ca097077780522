"""Call-back tokens: the attempts that they authorize, and texts that are refused."""

import base64
import json

import pytest

from scheduler.callbacks import tokens
from scheduler.callbacks.tokens import AttemptKey, NotSigned
from scheduler.model.errors import Unauthorized
from scheduler.model.job import JobKey
from tests.conftest import NOW

TICKET = AttemptKey(JobKey("anna-märz", "01JOB"), 3)
TOKEN = tokens.sign(TICKET, NOW + 60_000, b"key")
ISSUED = (  # by hmac and base64 alone, for TICKET, the key b"key" and the end 1900000000: running jobs have such tokens
    "v1.WyJhbm5hLW3DpHJ6IiwiMDFKT0IiLDMsMTkwMDAwMDAwMF0.ctRK8qouk2j_mBeRv6o4Z2SaLvNENUrJo5FyaD2sMzY"
)


def test_a_token_authorizes_its_attempt() -> None:
    assert tokens.read(TOKEN, [b"key"], NOW) == TICKET


def test_a_token_fits_into_a_header_and_a_url() -> None:
    assert TOKEN.startswith("v1.") and set(TOKEN) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def test_the_key_before_a_rotation_is_valid_and_a_foreign_one_never() -> None:
    assert tokens.read(TOKEN, [b"newer", b"key"], NOW) == TICKET
    with pytest.raises(NotSigned):
        tokens.read(TOKEN, [b"newer", b"newest"], NOW)


def test_tokens_of_running_jobs_are_read() -> None:
    assert tokens.sign(TICKET, 1_900_000_000_999, b"key") == ISSUED
    assert tokens.read(ISSUED, [b"key"], 1_900_000_000_000) == TICKET


def test_a_token_expires() -> None:
    assert tokens.read(TOKEN, [b"key"], NOW + 60_000) == TICKET
    with pytest.raises(Unauthorized, match="expired"):
        tokens.read(TOKEN, [b"key"], NOW + 61_000)


def forged(**changes: object) -> str:
    version, content, mac = TOKEN.split(".")
    fields = json.loads(base64.urlsafe_b64decode(content + "=="))
    other = json.dumps([changes.get("owner", fields[0]), fields[1], changes.get("fence", fields[2]), fields[3]], separators=(",", ":"))
    return f"{changes.get('version', version)}.{base64.urlsafe_b64encode(other.encode()).decode().rstrip('=')}.{mac}"


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "v1..",
        "nonsense",
        TOKEN[:-1],
        TOKEN + "A",
        TOKEN + "!",
        TOKEN + "=",
        TOKEN[:-1] + chr(ord(TOKEN[-1]) + 1),  # decodes to the same MAC
        "v1.!" + TOKEN.removeprefix("v1."),
        TOKEN.replace("v1.", "v2."),
        TOKEN.rpartition(".")[0] + ".",
        "ü" + TOKEN,
        "A" * 5_000,
        forged(fence=4),
        forged(owner="bob"),
        forged(version="v0"),
    ],
)
def test_a_changed_token_is_refused(token: str) -> None:
    with pytest.raises(NotSigned):
        tokens.read(token, [b"key"], NOW)


def test_a_signed_token_of_another_version_is_refused() -> None:
    """A key may be in use longer than a format."""
    with pytest.raises(NotSigned):
        tokens.read(tokens._signer([b"key"]).sign("v2.W10").decode(), [b"key"], NOW)
