"""The settings of the stages. Every difference between stages is a setting; no other module of `infra` checks a stage's name."""

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from lambdas._settings import HOST
from scheduler.accounts.access import Scope
from scheduler.insight.scaling import EXECUTORS_EACH, LEAST, MOST
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.targets import arns, registry
from scheduler.targets.base import Reach

MOST_ALLOWED = 2_000  # characters of all allowed ARNs and hosts together: a function's environment is limited to 4 KB
LEAST_UNITS, MOST_UNITS = 25, 40_000  # of a table with provisioned capacity: five times its least capacity, and AWS's default quota
SAMPLE = "punctual-sample"  # the name of the resources in `infra/samples.py`


BATCH = {Lane.ONE_TIME: 10, Lane.RECURRING: 10, Lane.RETRY: 1}  # a retry runs alone: a job that kills its executor affects no other job


HELD = 256  # jobs that an executor can start at once: one in each of its threads (`lambdas/_pool.py`)


class Renamed(NamedTuple):
    """An IAM action under another name; `anywhere`: enforced without a particular resource."""

    action: str
    anywhere: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One stage. The defaults are those of `dev`."""

    stage: str
    operator_email: str | None = None  # gets every alarm; from `-c operator_email=...`

    rules: Rules = field(default_factory=Rules)  # of the functions; `deployed` adds the rules that follow from other settings
    reach: Reach = field(default_factory=Reach)  # the AWS resources and web hosts of jobs; from `-c allowed_targets=...` and others
    concurrency: Mapping[Lane, int] = field(  # executors of a lane at once (MaximumConcurrency)
        default_factory=lambda: {Lane.ONE_TIME: 50, Lane.RECURRING: 50, Lane.RETRY: 20}
    )
    batching_s: int = 30  # seconds for which Lambda collects changes into one batch for project: notices and counters come as much later
    memory_mb: Mapping[str, int] = field(  # CPU grows with memory: 1,769 MB is one whole core
        default_factory=lambda: {
            "api": 512,
            "tick": 512,
            "plan": 512,
            "dispatch": 512,
            "execute": 512,
            "bury": 256,
            "fetch": 256,
            "project": 512,
            "notify": 512,
            "scale": 512,
            "provision": 512,
        }
    )
    archive: bool = True  # expired jobs are archived in S3, where Athena reads them
    archive_days: int = 400  # days until the archive deletes them
    http_apart: bool = True  # `fetch`, whose role has no grants, calls URLs instead of the executors
    sample_targets: bool = False  # deploy a second stack with one resource of each kind that jobs can reach

    self_sign_up: bool = False  # anyone may sign up as a user; from `-c self_sign_up=true`
    machine_clients: Mapping[str, Sequence[str]] = field(default_factory=dict)  # scopes by name; from `-c machine_clients=...`

    api_rate: int = 200  # requests per second, all routes together
    api_burst: int = 400
    write_rate: int = 100  # of each writing method of signed-in users; a flood of writes leaves capacity for reads
    write_burst: int = 200
    login_rate: int = 10  # of each route that takes a password or a refresh token
    login_burst: int = 20
    report_rate: int = 100  # of each route to which workers report
    report_burst: int = 200
    api_at_endpoint: bool = False  # the API is reached at the address of the local AWS
    endpoint_port: int | None = None  # the port of the local AWS; from `-c endpoint_port=...`

    provisioned_writes: int = 0  # most write units a second of the jobs table; 0: on demand; from `-c provisioned_writes=...`
    customer_key: bool = False  # tables, queues, topics, outputs and secret under a KMS key of this stage; from `-c customer_key=true`
    waf: bool = False  # a web ACL in front of the console and the API; from `-c waf=true`
    log_level: str = "INFO"
    log_retention: RetentionDays = RetentionDays.ONE_WEEK
    protected: bool = False  # tables, users and the stack itself cannot be deleted by accident

    architecture: str = "arm64"  # cheaper per millisecond than x86_64 at the same speed
    host_packages: bool = False  # bundle no dependencies: the interpreter that runs the functions has them
    bytecode_optional: bool = False  # bundle even if nothing can compile for AWS; from `-c bytecode_optional=true`
    tracing: bool = False  # X-Ray; from `-c tracing=true`
    tls_only: bool = True  # queues and topics refuse plain HTTP
    access_logs: bool = True  # of the HTTP API
    saved_queries: bool = True  # of CloudWatch Logs Insights
    nag: bool = True  # a cdk-nag finding fails the synth
    renamed_actions: Mapping[str, Renamed] = field(default_factory=dict)  # by AWS's action name: the action that the stage enforces instead

    def __post_init__(self) -> None:
        """Raises ValueError for pollers that AWS would refuse, or those of a lane that never keeps any ready."""
        for lane, most in self.rules.most_pollers.items():
            if lane is Lane.RETRY or not LEAST <= most <= MOST:
                raise ValueError(f"most_pollers: the one-time and the recurring lane take {LEAST} to {MOST}, not {lane} {most}")

    @property
    def secret_prefix(self) -> str:
        """The prefix of the names of secrets that jobs may use; the owner's id follows."""
        return f"punctual/{self.stage}/"

    @property
    def archive_database(self) -> str:
        """Athena's database of archived jobs; empty: there is no archive."""
        return f"punctual_{self.stage}" if self.archive else ""

    @property
    def allowed_targets(self) -> Sequence[str]:
        """The ARNs that jobs may reach; their parts may contain `*`."""
        return self.reach.arns

    @property
    def email_sender(self) -> str:
        """The sender address of `email` jobs, verified in SES. Empty: they cannot be sent."""
        return self.reach.sender

    @property
    def deployed(self) -> Rules:
        """The rules, completed by the number of executors and the windows that follow from the other settings."""
        first, pollers = (Lane.ONE_TIME, Lane.RECURRING), self.rules.most_pollers
        return replace(
            self.rules,
            executors=sum(max(self.concurrency[lane], EXECUTORS_EACH * pollers.get(lane, 0)) for lane in first),
            concurrency={lane: self.concurrency[lane] for lane in pollers},
            windows={lane: self.concurrency[lane] * BATCH[lane] for lane in first},
            crowds={lane: self.concurrency[lane] * HELD for lane in first},
        )

    @property
    def removal_policy(self) -> RemovalPolicy:
        return RemovalPolicy.RETAIN if self.protected else RemovalPolicy.DESTROY


DEV = Settings(stage="dev")

PROD = Settings(
    stage="prod",
    # The executors that `concurrency` allows, but at once. Retries are spread over time: their lane keeps no pollers ready.
    rules=Rules(lag_canary=True, most_pollers={Lane.ONE_TIME: 100, Lane.RECURRING: 50}),
    concurrency={Lane.ONE_TIME: 1_000, Lane.RECURRING: 500, Lane.RETRY: 200},
    memory_mb={**DEV.memory_mb, "dispatch": 1_769, "execute": 1_024, "project": 1_024},
    api_rate=2_000,
    api_burst=4_000,
    write_rate=1_000,
    write_burst=2_000,
    login_rate=50,
    login_burst=100,
    report_rate=1_000,
    report_burst=2_000,
    log_retention=RetentionDays.THREE_MONTHS,
    protected=True,
)

# All differences from AWS, with their reasons.
LOCAL = replace(
    DEV,
    stage="local",
    rules=Rules(
        ready_executors=12,  # as many as `make run` starts: each is a process, which takes a third of a second of processor to start
        shards=2,  # one process answers every query: more shards are more calls and no more speed
        direct_burst=50,  # the local AWS runs about 250 jobs a second: one user may put a fraction of that before the jobs of others
        direct_rate=25,
        lead_ms=500,  # its executors are warm: a longer lead would only keep more of them waiting
        allow_private_http=True,  # the sample receiver listens on loopback
        one_shard=True,
    ),
    reach=Reach(
        plain_http=True,  # the sample receiver has no certificate
        sender="punctual@example.com",
        arns=tuple(  # the samples, in the only region and account of the local AWS
            f"arn:aws:{service}:us-east-1:000000000000:{name}"
            for service, name in (
                ("lambda", f"function:{SAMPLE}"),
                ("sqs", f"{SAMPLE}-queue"),
                ("sns", SAMPLE),
                ("events", f"event-bus/{SAMPLE}"),
                ("states", f"stateMachine:{SAMPLE}"),
            )
        ),
    ),
    concurrency={Lane.ONE_TIME: 40, Lane.RECURRING: 20, Lane.RETRY: 20},  # each executor is a process of about 50 MB
    api_at_endpoint=True,  # its own host name, <id>.execute-api.localhost, resolves on few machines
    batching_s=1,  # users of the local stage expect to see the results of their actions soon
    archive=False,  # the local AWS reports no TTL deletions to streams, and refuses saved queries of Athena
    endpoint_port=4566,
    # Each call in progress would need a process of its own, and the drills that kill executors expect the calls in executors.
    http_apart=False,  # tests/system/test_secrets.py switches it on
    machine_clients={"sample": ("jobs:read", "jobs:write"), "sample-admin": ("admin",)},  # for trying them with `make run`
    sample_targets=True,  # for trying each kind with `make run`
    log_retention=RetentionDays.ONE_DAY,
    architecture="arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64",  # functions run on the host itself
    host_packages=True,  # the functions run in the interpreter of the local AWS
    tls_only=False,  # the local AWS speaks plain HTTP
    access_logs=False,  # the local AWS writes none
    saved_queries=False,  # the local AWS refuses them
    nag=False,  # checking `dev` is enough, and the differences above would be findings
    renamed_actions={  # the local AWS enforces a batch call under its own name, AWS under the name of the single call
        "sqs:SendMessage": Renamed("sqs:SendMessageBatch"),
        "sqs:ChangeMessageVisibility": Renamed("sqs:ChangeMessageVisibilityBatch"),
        "sns:Publish": Renamed("sns:PublishBatch"),
        "ses:SendEmail": Renamed("ses:SendEmail", anywhere=True),  # the local AWS finds no identity in a call
        "dynamodb:PartiQLUpdate": Renamed("dynamodb:BatchExecuteStatement", anywhere=True),  # the local AWS finds no table in a statement
        "dynamodb:PartiQLInsert": Renamed("dynamodb:BatchExecuteStatement", anywhere=True),
        "dynamodb:PartiQLDelete": Renamed("dynamodb:BatchExecuteStatement", anywhere=True),
    },
)

STAGES = {settings.stage: settings for settings in (LOCAL, DEV, PROD)}


def settings_for(
    stage: str,
    *,
    operator_email: str | None = None,
    allowed_targets: str | None = None,
    email_sender: str | None = None,
    machine_clients: str | None = None,
    self_sign_up: str | None = None,
    raw_http: str | None = None,
    http_hosts: str | None = None,
    plain_http: str | None = None,
    customer_key: str | None = None,
    waf: str | None = None,
    tracing: str | None = None,
    bytecode_optional: str | None = None,
    provisioned_writes: str | None = None,
    endpoint_port: str | None = None,
) -> Settings:
    """The settings of a stage, with the options of this deployment.

    `allowed_targets` and `http_hosts` are separated by blanks or commas, `machine_clients` is `ci=jobs:read+jobs:write ...`, and
    `self_sign_up`, `raw_http`, `plain_http`, `customer_key`, `waf`, `tracing` and `bytecode_optional` are true or false,
    `provisioned_writes` is a number.
    Raises ValueError with the list of stages, or with the error in an option.
    """
    if stage not in STAGES:
        raise ValueError(f"there is no stage {stage!r}; choose one of {', '.join(STAGES)}, as in `cdk synth -c stage=dev`")
    chosen = STAGES[stage]
    reach = chosen.reach
    services = [resource.service for resource in registry.resources()]
    allowed = (
        reach.arns
        if allowed_targets is None
        else [arns.check_pattern(arn, services) for arn in re.split(r"[\s,]+", allowed_targets) if arn]
    )
    hosts = reach.hosts if http_hosts is None else _hosts(http_hosts)
    if len(" ".join([*allowed, *hosts])) > MOST_ALLOWED:
        raise ValueError(f"allowed_targets and http_hosts are longer than {MOST_ALLOWED} characters: name several at once with `*`")
    return replace(
        chosen,
        operator_email=operator_email,
        rules=replace(chosen.rules, raw_http=_flag("raw_http", raw_http, chosen.rules.raw_http)),
        reach=Reach(
            tuple(allowed),
            reach.sender if email_sender is None else email_sender,
            _flag("plain_http", plain_http, reach.plain_http),
            hosts,
        ),
        machine_clients=chosen.machine_clients if machine_clients is None else _machine_clients(machine_clients),
        self_sign_up=_flag("self_sign_up", self_sign_up, chosen.self_sign_up),
        customer_key=_flag("customer_key", customer_key, chosen.customer_key),
        waf=_flag("waf", waf, chosen.waf),
        tracing=_flag("tracing", tracing, chosen.tracing),
        bytecode_optional=_flag("bytecode_optional", bytecode_optional, chosen.bytecode_optional),
        provisioned_writes=chosen.provisioned_writes if provisioned_writes is None else _units(provisioned_writes),
        endpoint_port=chosen.endpoint_port if endpoint_port is None else int(endpoint_port),
    )


OPTIONS = tuple(settings_for.__kwdefaults__ or ())  # the names of the options `-c name=value`


def _machine_clients(text: str) -> dict[str, tuple[str, ...]]:
    """Return the scopes of each machine client, by name. Raises ValueError for an invalid name or scope."""
    clients: dict[str, tuple[str, ...]] = {}
    for each in re.split(r"[\s,]+", text.strip()):
        name, _, scopes = each.partition("=")
        if re.fullmatch(r"[a-z][a-z0-9-]{0,30}", name) is None or name in clients:
            raise ValueError(f"a machine client has a name of its own, of at most 31 small letters, digits and -; {name!r} is not valid")
        if not scopes or set(scopes.split("+")) - set(Scope):
            raise ValueError(f"a machine client has scopes, {' or '.join(Scope)}, with + between them; {name} has {scopes!r}")
        clients[name] = tuple(dict.fromkeys(scopes.split("+")))
    return clients


def _hosts(text: str) -> tuple[str, ...]:
    hosts = tuple(host for host in re.split(r"[\s,]+", text) if host)
    for host in hosts:
        if re.fullmatch(HOST, host) is None:
            raise ValueError(f"{host!r} is no host name; such as hooks.example.com or *.example.com")
    if len(" ".join(hosts)) > MOST_ALLOWED // 2:
        raise ValueError(f"http_hosts are longer than {MOST_ALLOWED // 2} characters: name several at once with `*`")
    return hosts


def _units(text: str) -> int:
    if not text.isdecimal() or (int(text) and not LEAST_UNITS <= int(text) <= MOST_UNITS):
        raise ValueError(f"provisioned_writes must be 0 (on demand) or from {LEAST_UNITS} to {MOST_UNITS}, not {text!r}")
    return int(text)


def _flag(name: str, text: str | None, default: bool) -> bool:
    if text not in (None, "true", "false"):
        raise ValueError(f"{name} must be true or false, not {text!r}")
    return default if text is None else text == "true"
