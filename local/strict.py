"""The calls that AWS refuses and MiniStack accepts, as far as this project makes them. Each rule is beside the link to AWS's text.

MiniStack itself refuses items over 400 KB, keys and expressions that are too long, reserved words in updates, conditions and projections,
unused names and values, more than 25 statements, 100 keys or 100 writes of a transaction, and SQS batches of more than ten or 1 MiB.
Templates are checked by `tests/infra/test_limits.py`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

Fields = Mapping[str, Any]

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
ATTRIBUTES = 10  # of a message
DELAY_S = 900
VISIBILITY_S = 43_200
GROUP = r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}"
# https://docs.aws.amazon.com/sns/latest/api/API_PublishBatch.html
PUBLISHED = 262_144  # bytes of all messages of a call
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
SUBJECT = 100  # characters
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
PAYLOAD, ASYNC_PAYLOAD = 6 * 1_048_576, 1_048_576  # bytes
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementRequest.html
STATEMENT = 8_192  # characters
# The forms of statements, as far as this project uses them. Clauses are repeated, never joined by commas: the syntax of AWS repeats the
# clause with its path, and its first example repeats SET; PartiQL's own grammar has one path in a REMOVE. Amazon's library for Swift
# (github.com/amzn/smoke-dynamodb) repeats both.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.statements.html
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.delete.html
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-functions.missing.html
_PATH = r'"\w+"(?:\."\w+")*'
_TABLE = r'"[\w.-]+"'
_TERM = rf"{_PATH}(?:(?:=|<>|<=|>=|<|>)\?| IS (?:NOT )?MISSING)"
_WHERE = rf"WHERE {_TERM}(?: AND {_TERM})*"
FORMS = (
    rf"UPDATE {_TABLE}(?: SET {_PATH}=\?| REMOVE {_PATH})+ {_WHERE}(?: RETURNING ALL NEW \*)?",
    rf"INSERT INTO {_TABLE} VALUE {{'\w+':\?(?:,'\w+':\?)*}}",
    rf"DELETE FROM {_TABLE} {_WHERE}",
)
# https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_AdminSetUserPassword.html
PASSWORD = r"\S{1,256}"

_WORDS = frozenset(  # of PartiQL itself, and functions of expressions
    "UPDATE SET REMOVE WHERE AND OR NOT IS MISSING RETURNING ALL NEW OLD INSERT INTO VALUE DELETE FROM BETWEEN IN CONTAINS SIZE".split()
)


class Refusal(NamedTuple):
    """An error as AWS answers it."""

    code: str
    message: str


def message(request: Fields, *, fifo: bool) -> Refusal | None:
    """A SendMessage of SQS, or one entry of a batch."""
    delay, group = int(request.get("DelaySeconds") or 0), request.get("MessageGroupId")
    if len(request.get("MessageAttributes") or ()) > ATTRIBUTES:
        return _invalid(f"more than {ATTRIBUTES} message attributes")
    if not 0 <= delay <= DELAY_S:
        return _invalid(f"DelaySeconds must be >= 0 and <= {DELAY_S}, not {delay}")
    if group is not None and re.fullmatch(GROUP, group) is None:
        return _invalid("MessageGroupId must be 1 to 128 letters, digits or punctuation marks")
    if not fifo and request.get("MessageDeduplicationId") is not None:
        return _invalid("MessageDeduplicationId is not valid for this queue type")
    return None


def _invalid(message: str) -> Refusal:
    return Refusal("InvalidParameterValue", message)


def visibility(request: Fields) -> Refusal | None:
    """A ChangeMessageVisibility of SQS, or one entry of a batch."""
    if not 0 <= int(request.get("VisibilityTimeout") or 0) <= VISIBILITY_S:
        return _invalid(f"VisibilityTimeout must be >= 0 and <= {VISIBILITY_S}")
    return None


def published(entries: Sequence[Fields]) -> Refusal | None:
    """A PublishBatch of SNS, with the fields as MiniStack names them."""
    if any(len(entry["subject"] or "") > SUBJECT for entry in entries):
        return Refusal("InvalidParameter", "Invalid parameter: Subject")
    if sum(map(_size, entries)) > PUBLISHED:
        return Refusal("BatchRequestTooLong", f"The length of all the messages put together is more than the limit of {PUBLISHED} bytes")
    return None


def _size(entry: Fields) -> int:
    """The bytes of a message and of the names, types and values of its attributes."""
    attributes = ["".join([name, *map(str, value.values())]) for name, value in entry["message_attributes"].items()]
    return sum(len(text.encode()) for text in (entry["message"] or "", *attributes))


def invocation(size: int, *, asynchronous: bool) -> Refusal | None:
    """An Invoke of Lambda with a payload of this many bytes."""
    limit = ASYNC_PAYLOAD if asynchronous else PAYLOAD
    return Refusal("RequestTooLargeException", f"Request must be smaller than {limit} bytes") if size > limit else None


def query(request: Fields, reserved: Collection[str]) -> Refusal | None:
    """A Query or Scan of DynamoDB."""
    for name in ("KeyConditionExpression", "FilterExpression"):
        for word in _reserved(re.sub(r"[#:][A-Za-z0-9_]+", " ", request.get(name) or ""), reserved):
            return Refusal("ValidationException", f"Invalid {name}: Attribute name is a reserved keyword; reserved keyword: {word}")
    return None


@lru_cache(1_000)  # values are parameters, so that the texts are few
def statement(text: str, reserved: frozenset[str]) -> Refusal | None:
    """One statement of BatchExecuteStatement. AWS answers with an error in its place; here the whole call is refused."""
    if len(text) > STATEMENT:
        return Refusal("ValidationException", f"a statement has at most {STATEMENT} characters")
    for word in _reserved(re.sub(r"\"[^\"]*\"|'[^']*'", " ", text), reserved):
        return Refusal("ValidationException", f"Statement wasn't well formed, can't be processed: Unexpected keyword {word}")
    if not any(re.fullmatch(form, text.rstrip()) for form in FORMS):
        return Refusal("ValidationException", f"Statement wasn't well formed: AWS documents no such form: {text}")
    return None


def batch(statements: Sequence[Fields], reserved: frozenset[str]) -> Refusal | None:
    """A BatchExecuteStatement, whose statements write different items."""
    refused = next(filter(None, (statement(each.get("Statement", ""), reserved) for each in statements)), None)
    if refused is None and len(set(map(_written, statements))) < len(statements):
        return Refusal("ValidationException", "Provided list of item keys contains duplicates")
    return refused


def _written(request: Fields) -> tuple[str, ...]:
    """The table and the key that a statement writes."""
    text, values = request["Statement"], [next(iter(value.values())) for value in request.get("Parameters") or ()]
    table = text.split('"')[1]
    if text.startswith("INSERT"):
        item = dict(zip(re.findall(r"'(\w+)':", text), values, strict=False))
        return table, item["pk"], item["sk"]
    first = text[: text.index(" WHERE ")].count("?")
    return table, *values[first : first + 2]


def _reserved(text: str, reserved: Collection[str]) -> Iterator[str]:
    """The reserved words that an expression uses as names: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html"""
    return (word for word in re.findall(r"[A-Za-z_]\w*", text) if word.upper() in reserved and word.upper() not in _WORDS)


def password(text: str) -> Refusal | None:
    """A password of a call of Cognito."""
    return Refusal("InvalidParameterException", f"a password matches {PASSWORD}") if re.fullmatch(PASSWORD, text) is None else None
