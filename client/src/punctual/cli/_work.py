"""The work of a job or a task, from a command line: `http POST https://…`, `log MESSAGE`, `target NAME` or a type with a payload."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli._app import Refused

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
TYPES = ("http", "log", "target", "lambda", "ecs", "email", "eventbridge", "sns", "sqs", "stepfunctions", "aws")  # the first words of WORK
FORMS = "[http] [METHOD] URL, log MESSAGE, target NAME, or TYPE with --payload"

Words = Annotated[list[str], Argument(metavar="WORK...", help=f"The work: {FORMS}.")]
Header = Annotated[
    list[str] | None, Option("--header", "-H", metavar="'NAME: VALUE'", help="Of http: a header of the request; repeat it for several.")
]
Data = Annotated[
    str | None, Option("--data", "-d", metavar="TEXT", help="Of http: the body, JSON or text; @FILE reads a file, @- the standard input.")
]
Payload = Annotated[str | None, Option("--payload", metavar="JSON", help="The payload as JSON; @FILE and @- as for --data.")]
SigningSecret = Annotated[
    str | None, Option("--signing-secret", metavar="NAME", help="Of http: the name of the secret that signs the request.")
]
JobTags = Annotated[list[str] | None, Option("--tag", "-t", metavar="TAG", help="A label to find it by; repeat it for several.")]
MaxAttempts = Annotated[int | None, Option("--max-attempts", metavar="N", help="Make at most N attempts (default 3).")]
Timeout = Annotated[str | None, Option("--timeout", metavar="DURATION", help="Stop an attempt after this long (default 5m).")]
OrderingKey = Annotated[str | None, Option("--ordering-key", metavar="KEY", help="Start after the earlier jobs of this key.")]
OnFailure = Annotated[
    str | None, Option("--on-failure", metavar="RULE", help="After a failure, jobs of the same ordering key continue or pause.")
]
Fields = Annotated[
    list[str] | None,
    Option("--field", "-f", metavar="NAME=JSON", help="Any other field of the API, such as retry='{\"base_seconds\": 5}'."),
]


def work(
    arguments: Sequence[str],
    headers: Sequence[str] | None,
    data: str | None,
    payload: str | None,
    signing_secret: str | None = None,
) -> dict[str, Any]:
    """Return `type` or `target`, and `payload`. Raises Refused if the words and options do not fit together."""
    kind, *rest = ("http", *arguments) if _is_call(arguments) else arguments
    more = options.object_of("--payload", payload) if payload is not None else {}
    of_http = {"--header": headers or None, "--data": data, "--signing-secret": signing_secret}
    if kind != "http" and (wrong := [option for option, value in of_http.items() if value is not None]):
        raise Refused(f"is for http only, not for {kind}", field=wrong[0], hint="Use --payload.")
    if kind == "http":
        return {"type": kind, "payload": more | _http(rest, headers, data, more) | options.present(signing_secret=signing_secret)}
    if kind == "log" and not (payload and not rest):
        return {"type": kind, "payload": more | {"message": _only(rest, "MESSAGE", "log")}}
    if kind == "target":
        return {"target": _only(rest, "NAME", "target"), "payload": more}
    if rest:
        raise Refused(
            f"{rest[0]!r} is one word too many: the payload of {kind} is given by --payload", field="WORK", hint=f"WORK is {FORMS}."
        )
    if payload is None:
        raise Refused(
            f"is needed for a job of the type {kind}", field="--payload", hint=f"WORK is {FORMS}. Types and payloads: punctual types"
        )
    return {"type": kind, "payload": more}


def check_name(name: str, arguments: Sequence[str], payload: str | None) -> None:
    """Raise Refused if the name of a task is the first word of its work, as in `http POST URL`."""
    is_call = _is_call(arguments) or arguments[0].upper() in METHODS
    begins = name in TYPES and arguments[0] not in TYPES and (is_call or payload is None)
    if begins or (name.upper() in METHODS and len(arguments) == 1 and _is_call(arguments)):
        raise Refused(
            f"is missing: {name!r} begins the work",
            field="NAME",
            hint=f"As in: punctual tasks create 'Nightly report' {shlex.join((name, *arguments))}",
        )


def _is_call(arguments: Sequence[str]) -> bool:
    """Whether the work is a URL, or a method and a URL, without the word http."""
    return arguments[-1].startswith(("http://", "https://")) and (len(arguments) == 1 or (len(arguments) == 2 and arguments[0] in METHODS))


def _http(arguments: Sequence[str], headers: Sequence[str] | None, data: str | None, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the payload that the words and options give. A URL and a method that they lack are those of `payload`."""
    method, *rest = arguments if arguments and arguments[0].upper() in METHODS else ("", *arguments)
    found: dict[str, Any] = {} if not method and "method" in payload else {"method": method.upper() or "POST"}
    if rest or "url" not in payload:
        url = _only(rest, "URL", "http")
        if not url.startswith(("http://", "https://")):
            raise Refused(f"must begin with https:// or http://, not {url!r}", field="URL", hint=f"Methods are {', '.join(METHODS)}.")
        found["url"] = url
    if headers:
        found["headers"] = dict(options.pairs("--header", headers, ":"))
    if data is not None:
        found["body"] = body(options.text_of("--data", data))
    return found


def body(text: str) -> Any:
    """Return the body of a request: the object or list of a JSON text, else the text as it is."""
    found = words.value(text)
    return found if isinstance(found, dict | list) else text


def _only(arguments: Sequence[str], name: str, kind: str) -> str:
    if len(arguments) != 1:
        what = "is missing" if not arguments else f"is one word: put it between quotes, not {' '.join(arguments)}"
        raise Refused(f"{what}", field=name, hint=f"As in: {kind} {name}")
    return arguments[0]


def common(
    tags: Sequence[str] | None,
    max_attempts: int | None,
    timeout: str | None,
    ordering_key: str | None,
    on_failure: str | None,
    fields: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the fields of the API that these options set. Raises Refused."""
    found = options.present(
        tags=list(tags or ()),
        max_attempts=max_attempts,
        timeout_seconds=None if timeout is None else whole_seconds("--timeout", timeout),
        ordering_key=ordering_key,
        on_failure=on_failure,
    )
    return found | {name: words.value(value) for name, value in options.pairs("--field", fields, "=").items()}


def whole_seconds(option: str, text: str) -> int:
    """Return the duration of an option in seconds. Raises Refused."""
    seconds = options.checked(option, words.duration, text).total_seconds()
    if seconds != int(seconds):
        raise Refused("must be whole seconds", field=option)
    return int(seconds)


def description(type: str, target: str | None, payload: Any) -> str:
    """Return in a few words what a job or a task runs."""
    if target:
        return f"target {target}"
    if type == "http":
        method = payload.get("method") or ("GET" if payload.get("body") is None else "POST")
        return f"{method} {payload.get('url', '')}"
    if type == "log":
        return str(payload.get("message", ""))
    return type
