"""Request bodies: JSON objects of a bounded size, or an error that names the broken rule."""

import base64
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from lambdas.rest.envelope import SHOWN_FIELD, MalformedJson, UnsupportedMediaType
from scheduler.model.errors import Invalid, TooLarge

LIMIT = 262_144  # bytes that fit into a job's item besides its history
UTF_8 = ("utf-8", "utf8", "us-ascii")  # JSON is UTF-8 (RFC 8259); ASCII is a part of it
# Bytes of a batch. API Gateway wraps the body as a JSON string, in which a quote takes two bytes and any other letter at most three times
# its own. Three times this number and the headers fit into the 6 MB of an invocation, so each batch gets our answer.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
LARGE = 2_048_000

MEDIA_TYPES = ("application/json", "application/merge-patch+json")


def read(event: Mapping[str, Any], limit: int = LIMIT) -> dict[str, Any]:
    """The body of an API Gateway event (format 2.0), at most `limit` bytes; {} for an empty body. Raises Invalid."""
    raw = _bytes(event)
    if len(raw) > limit:
        raise TooLarge(f"the body has {len(raw):,} bytes; at most {limit:,} ({limit // 1024:,} KB) are accepted")
    if not raw.strip():
        return {}
    media_type = next((value for name, value in event.get("headers", {}).items() if name.lower() == "content-type"), "application/json")
    kind, *options = (part.strip().lower() for part in media_type.split(";"))
    charsets = [option.partition("=")[2].strip(' "') for option in options if option.partition("=")[0].strip() == "charset"]
    if kind not in MEDIA_TYPES or any(charset not in UTF_8 for charset in charsets):
        raise UnsupportedMediaType()
    return parse(raw)


def parse(raw: bytes) -> dict[str, Any]:
    """The JSON object in a text. Raises Invalid."""
    value = _parsed(raw)
    if not isinstance(value, dict):
        raise Invalid.field("body", "must be a JSON object")
    return value


def _bytes(event: Mapping[str, Any]) -> bytes:
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body)
    except ValueError:  # binascii.Error, or a text that is not ASCII
        raise MalformedJson() from None


def _parsed(raw: bytes) -> Any:
    """The value of a JSON text. Refuses NaN, infinite numbers and lone surrogates, which Python's parser accepts and the table does not.

    Refuses fields that are given twice, since parsers differ in which one they use.
    """
    try:
        value = json.loads(raw.decode(), parse_constant=_no_number, object_pairs_hook=_object)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except json.JSONDecodeError as error:
        raise MalformedJson(f"the body is not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}") from None
    except UnicodeError:
        raise MalformedJson("the body is not UTF-8 text") from None
    except RecursionError:
        raise MalformedJson("the body is nested too deeply") from None
    except ValueError:
        raise MalformedJson("the body contains a number that is not valid JSON or is too large") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise Invalid.field(twice[:SHOWN_FIELD] or '""', "is given twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)
