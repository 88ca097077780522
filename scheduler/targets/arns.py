"""ARNs: their parts, and the patterns of those that jobs may reach.

A pattern is an ARN in which `*` stands for any text within one of its six parts, as in an IAM policy. So the check when a job is created
and IAM when it runs allow the same ARNs. A pattern must name the service: a single star cannot allow everything.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import unquote

PATTERN = r"arn:aws[a-z-]*:[a-z]+:[a-z0-9*-]+:[0-9*]+:[A-Za-z0-9_.:/*$-]+"
_CONSOLES = {"aws-cn": "amazonaws.cn", "aws-us-gov": "amazonaws-us-gov.com"}
_OWN = r"punctual-[A-Za-z0-9-]+-[A-Z]"  # CloudFormation names a resource after its stack and its construct: punctual-prod-ApiFunction...
_OWN_ANYWHERE = rf"{_OWN}|punctual-[a-z0-9-]+-(?:storage|archive|console)"  # names of buckets have no capitals
_QUEUE_URL = r"https://(?:sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?|([a-z0-9-]+)\.queue\.amazonaws\.com)/(\d{12})/([A-Za-z0-9_.-]+)"


def check_pattern(text: str, services: Collection[str]) -> str:
    """Return the pattern. Raises ValueError if it is no pattern, of none of the services, or names resources of the scheduler itself."""
    if re.fullmatch(PATTERN, text) is None or service(text) not in services:
        raise ValueError(f"{text!r} is no ARN of {', '.join(services)}; such as arn:aws:sqs:eu-west-1:123456789012:orders-*")
    if is_own(text):
        raise ValueError(f"{text!r} names resources of the scheduler itself, which no job may reach")
    return text


def service(arn: str) -> str:
    return _parts(arn)[2]


def region(arn: str) -> str:
    return _parts(arn)[3]


def account(arn: str) -> str:
    return _parts(arn)[4]


def console(arn: str, place: str = "") -> str:
    """The address of the AWS console in the region of the ARN, or in another one of its partition: that of a log, for example."""
    return f"https://{place or region(arn)}.console.{_CONSOLES.get(_parts(arn)[1], 'aws.amazon.com')}"


def name(arn: str) -> str:
    """The name of a resource: the last part of its ARN, without its kind. Any other text as it is."""
    return re.sub(r"^(function:|stateMachine:|event-bus/|task-definition/)", "", queue(arn).split(":", 5)[-1])


def matches(pattern: str, arn: str) -> bool:
    """Whether the pattern covers the ARN."""
    pairs = list(zip(_parts(pattern), _parts(arn), strict=False))
    return len(pairs) == 6 and all(re.fullmatch(re.escape(expected).replace(r"\*", ".*"), part) is not None for expected, part in pairs)


def is_allowed(arn: str, patterns: Iterable[str]) -> bool:
    return any(matches(pattern, arn) for pattern in patterns)


def is_own(arn: str) -> bool:
    """Whether the ARN, or a pattern, names resources of a stack of the scheduler, of any stage: a job must not reach them.

    A job that invoked the API's function could claim to come from an administrator. A pattern such as `function:*` names none of them.
    """
    return any(re.match(_OWN, name) is not None for name in re.split("[:/]", _parts(arn)[-1]))


def names_own(text: str) -> bool:
    """Whether a text that is no ARN, such as a name, a URL or a statement, names resources of the scheduler anywhere."""
    return "punctual" in (plain := unquote(text)) and re.search(_OWN_ANYWHERE, plain) is not None


def of_service(name: str, patterns: Iterable[str]) -> Sequence[str]:
    """The patterns of one service."""
    return [pattern for pattern in patterns if service(pattern) == name]


def queue(text: str) -> str:
    """The ARN of a queue that is given as ARN or as the URL that SQS shows; any other text is returned unchanged."""
    found = re.fullmatch(_QUEUE_URL, text)
    if found is None:
        return text
    modern, legacy, account, name = found.groups()
    place = modern or legacy
    return f"arn:{'aws-cn' if place.startswith('cn-') else 'aws'}:sqs:{place}:{account}:{name}"


def queue_url(arn: str) -> str:
    """The URL of a queue: SQS takes no ARN. A client of the right region ignores the host in it."""
    _, partition, _, place, account, name = _parts(arn)
    return f"https://sqs.{place}.amazonaws.com{'.cn' if partition == 'aws-cn' else ''}/{account}/{name}"


def _parts(arn: str) -> list[str]:
    return arn.split(":", 5)
