"""The options of a deployment, which its operators set in `stages/<stage>.toml`. A file with an error is refused as a whole."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from infra.account import LEAST_ACCOUNT
from infra.parameters import LIVE
from lambdas._settings import DOMAIN, HOST
from scheduler.model.declaration import ENTRY
from scheduler.model.intake import PRINCIPALS
from scheduler.targets import arns, denied_actions, private_network, registry, service_models

FOLDER = Path(__file__).resolve().parent.parent / "stages"
EXAMPLE = FOLDER / "example.toml"
MOST_TEXT = 1_670  # characters of the options that are in the environment of functions, which is limited to 4 KB
SIGN_ON = 420  # ... of which single sign-on takes these for addresses, its client and the names of its fields
LEAST_UNITS, MOST_UNITS = 25, 40_000  # of a table with provisioned capacity: five times its least capacity, and AWS's default quota
MOST_QUEUES = 5  # the function reads their names and URLs from its environment, which is limited to 4 KB
MOST_TEMPLATES, LONGEST_TEMPLATE = 20, 31  # entries, and characters of a name: the function reads them from its environment
MOST_ACCOUNTS = 20  # entries: the inline policy of an executor's role has at most 10,240 characters
MOST_LOCKED_DAYS = 3_650  # nobody can undo a longer one that was a mistake; AWS allows 36,500
MOST_RECORDED = 4_096  # characters of all options together: https://docs.aws.amazon.com/general/latest/gr/ssm.html (standard parameters)

_EMAIL = r"[^@\s]+@[^@\s]+\.[^@\s]+"
_KEY = r"^\s*\[{{0,2}}\s*[\"']?{}[\"']?\s*[\]=.]"  # an option, or the head of its table
_ELEMENT = r"(?<![\w.:*/-]){}(?![\w.:*/-])"  # of a list
_ACCOUNT = r"[0-9]{12}"
# Only AWS may sign these tokens: the API believes their subject, which is the ARN of a role.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_providers_outbound_token_claims.html
_ISSUER = r"https://[a-z0-9-]{1,63}\.tokens\.sts\.global\.api\.aws"
MOST_ISSUERS = 9  # API Gateway allows an API ten authorizers, of which one is for people
FREE = "ssm:"  # begins the name of a parameter of Systems Manager, which costs nothing
_PROVIDER = r"[a-z][a-z0-9-]{2,31}"
_PAGE = r"https://[^\s/?#]+|http://([^\s/?#]+\.)?localhost(:\d+)?"
_OF_JOBS = (
    "allowed_targets",
    "allowed_actions",
    "accounts",
    "email_domains",
    "http_hosts",
    "network",
)  # in the environment of all functions that check or run jobs
_IN_API, _IN_INTAKE = (*_OF_JOBS, "aws_issuers", "sso"), (*_OF_JOBS, "intake")
_QUEUE = r"(?=.{1,31}$)[a-z](?:-?[a-z0-9])*"
_OWNER = r"[A-Za-z0-9-]{1,64}"
_RESOURCE = r"\*|arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9*-]*:[0-9*]*:\S+"
_SECRET = r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+|[A-Za-z0-9/_+=.@-]{1,512}"
_ROLE = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+"
_ACTION = r"([a-z0-9-]+):([A-Za-z0-9]+)"
_RULES = {  # by pydantic's error type
    "bool_type": "must be true or false",
    "enum": 'must be "none", "chosen" or "all"',
    "literal_error": 'must be "dev" or "prod"',
    "int_type": "must be a whole number",
    "string_type": "must be a text in quotes",
    "tuple_type": 'must be a list of texts, such as ["a", "b"]',
    "dict_type": "must be a table, such as [{name}]",
    "model_type": "must be a table: begin it with [{name}]",
    "tables_type": "must be tables: begin each with [[{name}]]",
    "missing": "is missing",
}


class OptionsError(ValueError):
    """An error in a file of options. The message has the file, the line if one is known, the option and the rule."""


def _email(text: str) -> str:
    if re.fullmatch(_EMAIL, text) is None:
        raise ValueError("must be an e-mail address")
    return text


def _target(text: str) -> str:
    arns.check_pattern(text, [resource.service for resource in registry.resources()])
    if arns.service(text) == "ecs" and not text.split(":", 5)[5].startswith(("cluster/", "task-definition/")):
        raise ValueError(f"{text!r} names neither clusters (cluster/...) nor task definitions (task-definition/...)")
    return text


def _host(text: str) -> str:
    if re.fullmatch(HOST, text) is None:
        raise ValueError(f"{text!r} is no host name; such as hooks.example.com or *.example.com")
    return text


@dataclass(frozen=True)
class Stays:
    """In the annotation of an option: the value that it keeps once a stage was deployed with it. Other options may be changed back."""

    value: Any
    because: str


class Events(StrEnum):
    """The jobs whose ends are put on the stage's event bus."""

    NONE = "none"  # no job: there is no bus
    CHOSEN = "chosen"  # the jobs with `events`
    ALL = "all"  # every job of every user


Email = Annotated[str, AfterValidator(_email)]
Targets = Annotated[tuple[Annotated[str, AfterValidator(_target)], ...], Field(strict=False)]
CustomerKey = Annotated[bool, Stays(True, "without the key, functions cannot read the messages, outputs and secrets stored under it")]


def _domain(text: str) -> str:
    if re.fullmatch(DOMAIN, text) is None:
        raise ValueError(f"{text!r} is no domain; such as example.com, *.example.com or * for any")
    return text


Domains = Annotated[tuple[Annotated[str, AfterValidator(_domain)], ...], Field(strict=False)]
Hosts = Annotated[tuple[Annotated[str, AfterValidator(_host)], ...], Field(strict=False)]


def _provider(text: str) -> str:
    if re.fullmatch(_PROVIDER, text) is None or text == "cognito":
        raise ValueError("must be 3 to 32 small letters, digits and -, begin with a letter, and not be cognito")
    return text


def _page(text: str) -> str:
    if re.fullmatch(_PAGE, text) is None:
        raise ValueError(f"{text!r} must begin with https:// and end after the host name, such as https://d111111abcdef8.cloudfront.net")
    return text


def _address(text: str) -> str:
    if re.fullmatch(r"(https://|http://(127\.0\.0\.1|localhost)[:/])\S+", text) is None:
        raise ValueError(f"{text!r} must begin with https://")
    return text


def _text(text: str) -> str:
    if not text.strip() or len(text) > 512:
        raise ValueError("must have 1 to 512 characters")
    return text


Text = Annotated[str, AfterValidator(_text)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]
Address = Annotated[str, AfterValidator(_address)]


class SignOn(BaseModel):
    """Single sign-on by an identity provider. The file names the secret of its client, which CloudFormation reads."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Text  # on the button of the sign-in page
    type: Literal["oidc", "saml"]
    console: Annotated[str, AfterValidator(_page)]  # the console's URL: where the browser comes back
    provider: Annotated[str, AfterValidator(_provider)] = "sso"  # part of every linked identity: under another name, people are new
    issuer: Address | None = None  # of `oidc`
    client_id: Text | None = None  # of `oidc`
    client_secret: Text | None = None  # of `oidc`: `ssm:` and the name of a parameter, or the name or ARN of a secret
    metadata_url: Address | None = None  # of `saml`
    scopes: Texts = ("openid", "profile", "email")  # of `oidc`
    groups_claim: Text = "groups"
    email_claim: Text = "email"
    name_claim: Text = "name"
    administrators: Texts = ()  # the groups whose members are administrators
    operators: Texts = ()
    passwords: bool = True  # false: only `break_glass` may sign in with a password
    break_glass: Texts = ()  # user names
    sign_out_url: Address | None = None  # of the identity provider; none: its session goes on

    @model_validator(mode="after")
    def _complete(self) -> Self:
        oidc, saml = ("issuer", "client_id", "client_secret"), ("metadata_url",)
        needed, foreign = (oidc, saml) if self.type == "oidc" else (saml, oidc)
        if missing := [name for name in needed if getattr(self, name) is None]:
            raise ValueError(f'the type "{self.type}" needs {", ".join(missing)}')
        if left := [name for name in foreign if getattr(self, name) is not None]:
            raise ValueError(f'{", ".join(left)} belongs to the other type, not to "{self.type}"')
        if not self.passwords and not self.break_glass:
            raise ValueError("passwords = false needs a user name in break_glass, who signs in if the identity provider cannot be reached")
        return self

    @property
    def claims(self) -> dict[str, str]:
        """The claims about a person, by what they state."""
        return {"email": self.email_claim, "name": self.name_claim}

    @property
    def length(self) -> int:
        """The characters that it takes in the environment of the API's function."""
        pages = (self.console, self.sign_out_url or self.console)
        return SIGN_ON + len(json.dumps([self.name, pages, self.administrators, self.operators, self.break_glass]))


def _resource(text: str) -> str:
    if re.fullmatch(_RESOURCE, text) is None:
        raise ValueError(f"{text!r} is no ARN; such as arn:aws:s3:::reports/*, or * for any resource")
    return _foreign(text)


def _role(text: str) -> str:
    if re.fullmatch(_ROLE, text) is None:
        raise ValueError(f"{text!r} is no ARN of one role; such as arn:aws:iam::123456789012:role/reports")
    return _foreign(text)


def _foreign(text: str) -> str:
    if arns.names_own(text):
        raise ValueError(f"{text!r} names resources of the scheduler itself, which no job may reach")
    return text


def _granted(text: str) -> str:
    if re.fullmatch(_ACTION, text) is None:
        raise ValueError(f"{text!r} is no action of IAM; such as s3:GetObject, without `*`")
    return _not_denied(text)


def _not_denied(text: str) -> str:
    if (reason := denied_actions.reason(text)) is not None:
        raise ValueError(f"{text!r} is denied to all jobs: {reason}")
    return text


def _operation(text: str) -> str:
    found = re.fullmatch(_ACTION, text) or re.fullmatch(r"([a-z0-9-]+):([a-z0-9_]+)", text)
    if found is None:
        raise ValueError(f"{text!r} is no operation of a service; such as s3:CopyObject")
    try:
        operation = service_models.operation(found[1], found[2])
    except service_models.Unknown as error:
        raise ValueError(f"{text!r}: {error}") from None
    if operation.answers_with_events:
        raise ValueError(f"{text!r} answers with a stream of events, which no job can read")
    return _not_denied(text)


def _owner(text: str) -> str:
    if re.fullmatch(_OWNER, text) is None:
        raise ValueError(f"{text!r} is no id of an owner")
    return text


class AllowedAction(BaseModel):
    """An operation that `aws` jobs may call, and what the executors' roles get for it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    action: Annotated[str, AfterValidator(_operation)]  # boto3's name of the service, and the API's name of the operation
    resources: Annotated[tuple[Annotated[str, AfterValidator(_resource)], ...], Field(strict=False)]
    iam: Annotated[tuple[Annotated[str, AfterValidator(_granted)], ...], Field(strict=False)] = ()  # none: the action under its own name
    pass_roles: Annotated[tuple[Annotated[str, AfterValidator(_role)], ...], Field(strict=False)] = ()  # that the call may hand over
    owners: Annotated[tuple[Annotated[str, AfterValidator(_owner)], ...], Field(strict=False)] = ()  # the only ones; none: all

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if not self.resources:
            raise ValueError(f"{self.action} has no resources: list ARNs, or `*` for any resource")
        for granted in () if self.iam else self.granted:
            _not_denied(granted)
        return self

    @property
    def granted(self) -> Sequence[str]:
        """The actions of IAM."""
        operation = service_models.operation(*self.action.split(":"))
        return self.iam or (f"{operation.signing_name}:{operation.name}",)

    @property
    def written(self) -> str:
        """The entry as functions read it: see `Reach.actions`."""
        return " ".join((self.action, *self.owners))


def _id(kind: str, most: int) -> Any:
    """The type of an option with 1 to `most` ids of this kind."""

    def check(texts: tuple[str, ...]) -> tuple[str, ...]:
        if not 1 <= len(texts) <= most:
            raise ValueError(f"has 1 to {most} ids, not {len(texts)}")
        for text in texts:
            if re.fullmatch(rf"{kind}-[0-9a-f]{{8,17}}", text) is None:
                raise ValueError(f"{text!r} is no id; such as {kind}-0a1b2c3d4e5f67890")
        return texts

    return AfterValidator(check)


def _entry(text: str) -> str:
    return private_network.check_entry(text)


def _some(entries: tuple[str, ...]) -> tuple[str, ...]:
    if not entries:
        raise ValueError("is empty: list the hosts and ranges that private targets may reach")
    return entries


class Network(BaseModel):
    """The private network of `fetch-private`: subnets and security groups of the account. A deployment makes none of them."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    subnets: Annotated[tuple[str, ...], Field(strict=False), _id("subnet", 16)]  # Lambda's own limits, here and below
    security_groups: Annotated[tuple[str, ...], Field(strict=False), _id("sg", 5)]
    allow: Annotated[tuple[Annotated[str, AfterValidator(_entry)], ...], Field(strict=False), AfterValidator(_some)]  # for targets to list


def _template(text: str) -> str:
    if re.fullmatch(ENTRY, text) is None or len(text) > LONGEST_TEMPLATE or text == LIVE:
        raise ValueError(f"the name of a template has at most {LONGEST_TEMPLATE} small letters, digits and single -; {text!r} is not valid")
    return text


def _account(text: str) -> str:
    if re.fullmatch(_ACCOUNT, text) is None:
        raise ValueError(f"an AWS account has 12 digits; {text!r} is not valid")
    return text


class OtherAccount(BaseModel):
    """An AWS account in which jobs call targets by a role of that account."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Annotated[str, AfterValidator(_account)]
    role: Annotated[str, AfterValidator(_role)]
    owners: Annotated[tuple[Annotated[str, AfterValidator(_owner)], ...], Field(strict=False)] = ()  # the only ones; none: all others

    @model_validator(mode="after")
    def _of_this_account(self) -> Self:
        if arns.account(self.role) != self.id:
            raise ValueError(f"{self.role} is no role of the account {self.id}")
        return self

    @property
    def written(self) -> str:
        """The entry as functions read it: see `Reach.accounts`."""
        return " ".join((self.role, *self.owners))


class TemplateAccess(BaseModel):
    """An owner for whom stacks of CloudFormation may declare tasks: those whose roles may call the alias of this name."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Annotated[str, AfterValidator(_template)]
    owner: Annotated[str, AfterValidator(_owner)]
    targets: bool = False  # they may declare named targets, which belong to the whole stage

    @property
    def written(self) -> str:
        """The entry as the function reads it: see `Settings.templates` of `lambdas`."""
        return f"{self.name}={self.owner}{'=targets' if self.targets else ''}"


def _secret(text: str) -> str:
    if re.fullmatch(_SECRET, text) is None:
        raise ValueError(f"{text!r} is neither the name nor the ARN of a secret in Secrets Manager")
    return text


def _collector(text: str) -> str:
    if text == "xray":
        return text
    url = urlsplit(_address(text))
    if not url.hostname or url.username is not None or url.query or url.fragment:
        raise ValueError("must be a URL without user name, query and fragment: headers_secret names a secret with keys")
    return text


class Traces(BaseModel):
    """The collector of spans, by OTLP over HTTP."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    endpoint: Annotated[str, AfterValidator(_collector)]  # "xray", or a URL that ends in /v1/traces
    headers_secret: Annotated[str, AfterValidator(_secret)] | None = None  # of a JSON object with further headers
    ratio: Annotated[float, Field(ge=0, le=1)] = 1.0  # of the traces that begin here, this part is sampled

    @model_validator(mode="after")
    def _signed(self) -> Self:
        if self.endpoint == "xray" and self.headers_secret is not None:
            raise ValueError('headers_secret must be absent beside endpoint = "xray", whose requests are signed')
        return self


class Options(BaseModel):
    """The options of one stage. An absent option leaves the stage as `infra/settings.py` describes it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    base: Literal["dev", "prod"] | None = None  # the settings of the stage; none: those of its own name
    operator_email: Email | None = None  # gets the alarms of the class page
    ticket_email: Email | None = None  # gets those of the class ticket
    allowed_targets: Targets = ()  # the ARNs that jobs may call; their parts may contain `*`
    container_roles: Annotated[tuple[Annotated[str, AfterValidator(_role)], ...], Field(strict=False)] = ()  # the roles of containers
    allowed_actions: Annotated[tuple[AllowedAction, ...], Field(strict=False)] = ()  # the operations that `aws` jobs may call
    accounts: Annotated[tuple[OtherAccount, ...], Field(strict=False)] = ()  # other AWS accounts in which jobs call targets by a role
    email_sender: Email | None = None  # of `email` jobs, verified in SES
    email_domains: Domains = ()  # of the recipients of mail; none: the domain of the sender alone
    http_hosts: Hosts = ()  # the only hosts that `http` jobs may call; none: every public one
    plain_http: bool = False  # `http` jobs may call http:// too
    raw_http: bool = True  # jobs may name a URL; false: only named targets
    aws_issuers: dict[str, str] = {}  # the issuer of tokens of each AWS account whose roles may use the API
    sso: SignOn | None = None  # single sign-on; none: people have passwords
    network: Network | None = None  # the private network of targets with `network: private`; none: there are no such targets
    customer_key: CustomerKey = False  # everything stored is encrypted under a KMS key of this stage
    account_concurrency: int = 0  # executions of Lambda at once that AWS allows the account in the region; 0: nothing is reserved
    provisioned_writes: int = 0  # most write units a second of the jobs table; 0: on demand
    events: Annotated[Events, Field(strict=False)] = Events.NONE  # the ends of these jobs are put on an event bus
    intake: dict[str, str] = {}  # the owner of each intake queue, or "principals", by the name of the queue
    templates: Annotated[tuple[TemplateAccess, ...], Field(strict=False)] = ()  # owners for whom stacks of CloudFormation declare tasks
    audit_lock_days: int = 0  # nobody can delete a copy of an audit entry before; 0: there is none
    tracing: bool = False  # X-Ray
    traces: Traces | None = None  # spans of jobs are exported by OTLP; none: they are not
    console: bool = True  # the web console behind CloudFront, a stack of its own
    waf: bool = False  # a web ACL in front of the console and the API under its host name

    @field_validator("aws_issuers")
    @classmethod
    def _issuers(cls, issuers: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        for account, issuer in issuers.items():
            if re.fullmatch(_ACCOUNT, account) is None:
                raise ValueError(f"an AWS account has 12 digits; {account!r} is not valid")
            if re.fullmatch(_ISSUER, issuer) is None:
                raise ValueError(
                    f"the issuer of {account} is https://….tokens.sts.global.api.aws, which "
                    f"`aws iam get-outbound-web-identity-federation-info` prints in that account, not {issuer!r}"
                )
        if len(set(issuers.values())) < len(issuers):
            raise ValueError("each account has an issuer of its own; two accounts here have the same")
        if len(issuers) > MOST_ISSUERS:
            raise ValueError(f"has at most {MOST_ISSUERS} accounts, each of which needs an authorizer of API Gateway, not {len(issuers)}")
        return issuers

    @field_validator("allowed_actions")
    @classmethod
    def _once(cls, entries: tuple[AllowedAction, ...]) -> tuple[AllowedAction, ...]:
        for number, entry in enumerate(entries):
            if entry.action in (each.action for each in entries[:number]):
                raise ValueError(f"has {entry.action} twice: one entry has all its resources and owners, since all jobs share one role")
        return entries

    @field_validator("accounts")
    @classmethod
    def _one_role(cls, entries: tuple[OtherAccount, ...]) -> tuple[OtherAccount, ...]:
        if len(entries) > MOST_ACCOUNTS:
            raise ValueError(f"has at most {MOST_ACCOUNTS} entries, not {len(entries)}")
        for number, entry in enumerate(entries):
            for each in (each for each in entries[:number] if each.id == entry.id):
                if shared := sorted(set(each.owners or ("all others",)) & set(entry.owners or ("all others",))):
                    raise ValueError(f"has two roles in {entry.id} for {shared[0]}: an owner has one role in an account")
        return entries

    @field_validator("intake")
    @classmethod
    def _queues(cls, queues: dict[str, str]) -> dict[str, str]:
        if len(queues) > MOST_QUEUES:
            raise ValueError(f"a stage has at most {MOST_QUEUES} intake queues, not {len(queues)}")
        for name, owner in queues.items():
            if re.fullmatch(_QUEUE, name) is None:
                raise ValueError(f"the name of an intake queue has at most 31 small letters, digits and single -; {name!r} is not valid")
            if re.fullmatch(_OWNER, owner) is None:
                raise ValueError(f'an intake queue has the id of an owner, or "{PRINCIPALS}"; {name} has {owner!r}')
        return queues

    @field_validator("templates")
    @classmethod
    def _named_once(cls, entries: tuple[TemplateAccess, ...]) -> tuple[TemplateAccess, ...]:
        if len(entries) > MOST_TEMPLATES:
            raise ValueError(f"has at most {MOST_TEMPLATES} entries, not {len(entries)}")
        for number, entry in enumerate(entries):
            if entry.name.replace("-", "") in (each.name.replace("-", "") for each in entries[:number]):
                raise ValueError(f"has {entry.name} twice: the names of two entries differ in more than a -")
        return entries

    @field_validator(*_IN_API, "intake")
    @classmethod
    def _fitting(cls, value: Any, info: ValidationInfo) -> Any:
        known = {**info.data, str(info.field_name): value}
        for names in (_IN_API, _IN_INTAKE):
            if info.field_name in names and sum(_length(known.get(name)) for name in names) > MOST_TEXT:
                together = f"{', '.join(names[:-1])} and {names[-1]} together"
                raise ValueError(f"{together} have at most {MOST_TEXT} characters: shorten texts, or name several ARNs at once with `*`")
        return value

    @field_validator("provisioned_writes")
    @classmethod
    def _units(cls, units: int) -> int:
        if units and not LEAST_UNITS <= units <= MOST_UNITS:
            raise ValueError(f"must be 0 (on demand) or from {LEAST_UNITS} to {MOST_UNITS}, not {units}")
        return units

    @field_validator("account_concurrency")
    @classmethod
    def _executions(cls, executions: int) -> int:
        if executions and executions < LEAST_ACCOUNT:
            raise ValueError(f"must be 0 (unknown) or at least {LEAST_ACCOUNT}, which new accounts have, not {executions}")
        return executions

    @field_validator("audit_lock_days")
    @classmethod
    def _days(cls, days: int) -> int:
        if not 0 <= days <= MOST_LOCKED_DAYS:
            raise ValueError(f"must be 0 (no copy) or from 1 to {MOST_LOCKED_DAYS} days, not {days}")
        return days

    @field_validator("waf")
    @classmethod
    def _in_front_of_the_console(cls, waf: bool, info: ValidationInfo) -> bool:
        if waf and info.data.get("console") is False:
            raise ValueError("needs the console: the web ACL belongs to its CloudFront distribution, and console is false")
        return waf

    @model_validator(mode="after")
    def _recorded(self) -> Self:
        if len(json.dumps(self.chosen)) > MOST_RECORDED:
            raise ValueError(f"the options are longer than {MOST_RECORDED} characters together")
        return self

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that the file sets, as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


# lists of tables
_OF_TABLES: Mapping[str, type[BaseModel]] = {"allowed_actions": AllowedAction, "accounts": OtherAccount, "templates": TemplateAccess}


def _length(value: Any) -> int:
    """The characters that an option takes in the environment of functions, with blanks between its parts."""
    match value:
        case SignOn():
            return value.length
        case Network():
            return sum(len(each) + 3 for each in value.allow)
        case dict():
            return sum(len(f"{name}={text} ") for name, text in value.items())
        case tuple():
            return sum(len(each) + 1 if isinstance(each, str) else len(each.written) + 3 for each in value)
    return 0


def lasting() -> dict[str, Stays]:
    """The options that may not be changed back, by name."""
    return {name: each for name, field in Options.model_fields.items() for each in field.metadata if isinstance(each, Stays)}


def file_of(stage: str) -> Path:
    return FOLDER / f"{stage}.toml"


def of_deployment(stage: str, context: Callable[[str], Any]) -> Options:
    """Return the options of the stage's file, or of the file that `-c options=...` names. Raises OptionsError, also for `-c <option>`."""
    path = Path(context("options") or file_of(stage))
    if context("options") and not path.exists():
        raise OptionsError(f"{path}: there is no such file")
    for name in Options.model_fields:
        if context(name) is not None:
            raise OptionsError(f"-c {name}=...: options are set in {shown(path)}, for the next deployment too; see {shown(EXAMPLE)}")
    return read(path)


def read(path: Path) -> Options:
    """Return the options in a file; none are set if there is no such file. Raises OptionsError with every error in it."""
    if not path.exists():
        return Options()
    try:
        text = path.read_text("utf-8")
        return Options.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionsError(f"{shown(path)}: this is no TOML: {error}") from error
    except ValidationError as error:
        raise OptionsError("\n".join(_sentence(path, text, each) for each in error.errors())) from error


def _sentence(path: Path, text: str, error: Mapping[str, Any]) -> str:
    place = error["loc"]
    is_of_tables = place[:1] in [(name,) for name in _OF_TABLES] and len(place) <= 2 and error["type"] in ("tuple_type", "model_type")
    rule = _RULES.get("tables_type" if is_of_tables else error["type"], "")
    if not place:
        return f"{shown(path)}: {error['msg'].removeprefix('Value error, ')}"
    name = ("an element of " if isinstance(place[-1], int) and not is_of_tables else "") + ".".join(
        part for part in place if isinstance(part, str)
    )
    if error["type"] == "extra_forbidden":
        known = _OF_TABLES.get(str(place[0]), Options).model_fields
        message = f"there is no option {name}; the options are {', '.join(known)}"
    elif error["type"] == "missing":
        message = f"{name} {rule}"
    elif rule:
        message = f"{name} {rule.format(name=name)}, not {_written(error['input'])}"
    else:
        message = f"{name}: {error['msg'].removeprefix('Value error, ')}"
    return f"{shown(path)}, line {_line(text, place, error['input'])}: {message}"


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _line(text: str, place: Sequence[Any], value: Any) -> int:
    """Return the line of an option: of the deepest key, table or element of `place` that is found below the one before it."""
    lines, found = text.splitlines(), 0
    for part, before in zip(place, ("", *place), strict=False):
        tables = [number for number, line in enumerate(lines) if re.match(rf"\s*\[\[\s*{before}\s*\]\]", line)]
        if isinstance(part, int) and part < len(tables):
            found, lines = tables[part], lines[: [*tables, len(lines)][part + 1]]
            continue
        pattern = _KEY.format(re.escape(part)) if isinstance(part, str) else _ELEMENT.format(re.escape(str(value)))
        found = next((number for number in range(found, len(lines)) if re.search(pattern, lines[number])), found)
    return found + 1


def shown(path: Path) -> str:
    """The path for people: from the root of the repository, if it is in there."""
    root = FOLDER.parent
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
