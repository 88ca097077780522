"""Secrets are removed from texts in every usual encoding, and nothing else is."""

import base64
import html
import json
import quopri
import struct
import textwrap
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from scheduler.targets.redaction import HIDDEN, Forms, forms, hidden

SECRETS = [
    'sk_Live/9f&8+Zq"Wx<7\\tYkP=K2m4',
    "ab12CD34ef56ab78",
    "pässwörd-€uro geheim",
    "=41&lt;%2F\\n + =3D",
    "a&b=c d%41",
    "the \U0001f511 of 17",
]


def b64(text: str, encoding: str = "utf-8") -> str:
    return base64.b64encode(text.encode(encoding)).decode()


def escaped(text: str) -> str:
    """As JSON, without its quotes."""
    return json.dumps(text)[1:-1]


def units(text: str, form: str) -> str:
    """Each half of a character beyond the first 65,536 has its own escape."""
    return "".join(form.format(unit) for (unit,) in struct.iter_unpack("<H", text.encode("utf-16-le")))


ENCODINGS: dict[str, Callable[[str], str]] = {
    # the review's table
    "plain": str,
    "base64 of a header": lambda secret: b64(f"Bearer {secret}"),
    "base64 after one byte": lambda secret: b64(f"x{secret}yz"),
    "base64 after two bytes": lambda secret: b64(f"xy{secret}z"),
    "json_encode of PHP": lambda secret: escaped(secret).replace("/", "\\/"),
    "encoding/json of Go": lambda secret: escaped(secret).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003E"),
    "percent in lower case": lambda secret: quote(secret, safe="").replace("%2F", "%2f").replace("%C3", "%c3").replace("%3D", "%3d"),
    "HTML": html.escape,
    "HTML with decimal references": lambda secret: secret.replace("&", "&#38;").replace('"', "&#34;").replace("<", "&#060;"),
    "JSON in JSON": lambda secret: escaped(escaped(secret)),
    "percent twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "hexadecimal": lambda secret: secret.encode().hex(),
    "hexadecimal in upper case": lambda secret: secret.encode().hex().upper(),
    "upper case": lambda secret: "".join(each.upper() if each.isascii() else each for each in secret),
    "lower case": lambda secret: "".join(each.lower() if each.isascii() else each for each in secret),
    "without its first characters": lambda secret: secret[5:],
    # and more
    "percent": quote,
    "a form": quote_plus,
    "each byte in percent": lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
    "JSON in JSON in JSON": lambda secret: escaped(escaped(escaped(secret))),
    "JSON in a form": lambda secret: quote_plus(escaped(secret)),
    "HTML twice": lambda secret: html.escape(html.escape(secret)),
    "HTML with hexadecimal references": lambda secret: "".join(f"&#x{ord(each):X};" for each in secret),
    "JSON with all escaped": lambda secret: units(secret, "\\u{:04x}"),
    "JavaScript": lambda secret: "".join(f"\\u{{{ord(each):x}}}" for each in secret),
    "escape() of JavaScript": lambda secret: units(secret, "%u{:04X}"),
    "repr of bytes": lambda secret: repr(secret.encode())[2:-1],
    "octal": lambda secret: "".join(f"\\{byte:03o}" for byte in secret.encode()),
    "quoted-printable": lambda secret: quopri.encodestring(secret.encode(), quotetabs=True).decode(),
    "quoted-printable, wrapped": lambda secret: secret.replace("=", "=3D")[:9] + "=\r\n" + secret.replace("=", "=3D")[9:],
    "UTF-16": lambda secret: secret.encode("utf-16-le").decode("utf-8", "replace") if secret.isascii() else secret,
    "reversed": lambda secret: secret[::-1],
    "base64url": lambda secret: base64.urlsafe_b64encode(f"ab{secret}".encode()).decode().rstrip("="),
    "base64 of UTF-16": lambda secret: b64(f"Bearer {secret}", "utf-16-le"),
    "base64 of JSON": lambda secret: b64(json.dumps({"token": secret})),
    "base64 of percent": lambda secret: b64("token=" + quote(secret, safe="")),
    "base64 of HTML": lambda secret: b64("<b>" + html.escape(secret)),
    "base64 twice": lambda secret: b64("Authorization: " + b64(f"ann:{secret}")),
    "base64 in lines": lambda secret: "\n".join(textwrap.wrap(b64(f"Bearer {secret}"), 16)),
    "base64 in lines in JSON": lambda secret: "\\r\\n".join(textwrap.wrap(b64(f"Bearer {secret}"), 16)),
    "base64 in percent": lambda secret: quote(b64(f"Bearer {secret}"), safe=""),
    "hexadecimal in groups": lambda secret: secret.encode().hex(" "),
}


def forms_of(secret: str) -> Forms:
    return forms([secret])


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_secret_is_removed_in_this_encoding(encoding: str, secret: str) -> None:
    if encoding == "without its first characters" and len(secret) < 24:
        return  # less than half of it, or too little to be no chance
    coded = ENCODINGS[encoding](secret)
    text = hidden(f'before <{coded}> "after"', forms_of(secret))
    assert text.startswith("before <") and text.endswith('> "after"') and text.count(HIDDEN) == 1
    left = text.removeprefix("before <").removesuffix('> "after"').replace(HIDDEN, "")
    if encoding.startswith("base64"):  # it keeps the text around the secret
        assert len(left) <= len(coded) - len(b64(secret)) + 5
    else:
        assert left.strip("\0") == ""


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "encoding", ["plain", "base64 of a header", "percent in lower case", "HTML", "JSON in JSON", "hexadecimal", "octal", "base64 in lines"]
)
def test_a_secret_that_a_text_ends_in_is_removed_in_this_encoding(encoding: str, secret: str) -> None:
    coded = ENCODINGS[encoding](secret)
    for size in range(len(coded) * 4 // 5, len(coded)):
        left = hidden("before " + coded[:size], forms_of(secret)).removeprefix("before ").replace(HIDDEN, "")
        assert len(left) <= (12 if "base64" in encoding else 4), left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing here",
        '{"id": 1, "path": "C:\\\\new\\\\table", "text": "a &amp; b &unknown; 100% %zz \\q =3D"}',
        "ünïcode \u2028 \ud800 text",
        "Zq" * 500,
    ],
)
@pytest.mark.parametrize("secret", SECRETS)
def test_other_texts_stay_as_they_are(text: str, secret: str) -> None:
    assert hidden(text, forms_of(secret)) == text


def test_all_secrets_of_a_job_are_removed() -> None:
    found = forms(["first-secret", "second-secret", "first-secret-and-more"])
    assert hidden("a first-secret b second-secret c first-secret-and-more d", found) == "a [secret] b [secret] c [secret] d"


def test_a_fragment_is_removed_only_if_it_is_half_of_the_secret() -> None:
    secret = "https://example.com/hooks/T0123456789/abcdefghijklmn"
    assert hidden("see https://example.com/help", forms_of(secret)) == "see https://example.com/help"
    assert hidden("at /hooks/T0123456789/abcdefghijklm!", forms_of(secret)) == "at [secret]!"


def test_a_fragment_may_end_within_a_character() -> None:
    assert hidden("«è" + "é" * 15 + "è»", forms_of("é" * 20)).replace("\ufffd", "") == "«è[secret]»"


@pytest.mark.long
@pytest.mark.parametrize("piece", ["\\", "%25", "&amp;", "\\u005c", "%", "=3D", "a", " \t", "sk_Liv", "c2tfTGl2", "\\x5c%", "&#38;"])
def test_a_hostile_megabyte_takes_a_bounded_time(piece: str) -> None:
    """At most as long as a hundred million additions: a number of seconds would be a bound on the machine."""
    text, found = (piece * 1_048_576)[:1_048_576], forms(SECRETS)
    began = time.process_time()
    hidden(text, found)
    assert time.process_time() - began < 50 * two_million_additions_s()


def two_million_additions_s() -> float:
    began, total = time.process_time(), 0
    for number in range(2_000_000):
        total += number
    return time.process_time() - began
