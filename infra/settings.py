"""What differs between the stages. Every difference is a setting; nothing in `infra` asks for a stage by name."""

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from scheduler import arns
from scheduler.model import Lane

MOST_ALLOWED = 2_000  # characters of all allowed ARNs: an environment has 4 KB for everything
SAMPLE = "punctual-sample"  # how what `infra/samples.py` makes is called


class Renamed(NamedTuple):
    """An IAM action under another name; `anywhere`: enforced on no particular resource."""

    action: str
    anywhere: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One stage. The defaults are those of `dev`."""

    stage: str
    operator_email: str | None = None  # gets every alarm; from `-c operator_email=...`

    shards: int = 16  # slots per minute; may grow from deploy to deploy, never shrink
    units: int = 1  # dispatchers per minute
    hold_ms: int = 5_000  # how long before its instant an executor may claim a job and wait with it
    lead_ms: int = 500  # how far ahead of its instant a job leaves while nothing was measured yet
    concurrency: Mapping[Lane, int] = field(  # executors of a lane at once (MaximumConcurrency)
        default_factory=lambda: {Lane.ONE_TIME: 50, Lane.RECURRING: 50, Lane.RETRY: 20}
    )
    memory_mb: Mapping[str, int] = field(  # CPU grows with it: 1,769 MB is one whole core
        default_factory=lambda: {"api": 512, "tick": 512, "plan": 512, "redrive": 512, "dispatch": 512, "execute": 512, "bury": 256}
    )
    retention_days: int = 30  # of jobs that ended well
    failure_retention_days: int = 90  # of failed and killed ones
    allow_private_http: bool = False  # `http` jobs may call private and loopback addresses
    allowed_targets: Sequence[str] = ()  # ARNs, `*` within their parts, that jobs may reach; from `-c allowed_targets=...`
    email_sender: str = ""  # whom `email` jobs come from, an address that SES knows; from `-c email_sender=...`
    sample_targets: bool = False  # a second stack with something of each kind to reach

    api_rate: int = 200  # requests per second, all routes together
    api_burst: int = 400
    login_rate: int = 10  # of each of the routes that take a password or a refresh token
    login_burst: int = 20
    report_rate: int = 100  # of each of the routes by which workers report
    report_burst: int = 200
    api_at_endpoint: bool = False  # the API is reached under the address of the local AWS
    endpoint_port: int | None = None  # where that listens; from `-c endpoint_port=...`

    log_level: str = "INFO"
    log_retention: RetentionDays = RetentionDays.ONE_WEEK
    protected: bool = False  # tables, users and the stack itself cannot be deleted by accident

    architecture: str = "arm64"  # cheaper per millisecond than x86_64 at the same speed
    host_packages: bool = False  # bundle no dependencies: the interpreter that runs the functions has them
    tracing: bool = True  # X-Ray
    tls_only: bool = True  # queues and topics refuse plain HTTP
    access_logs: bool = True  # of the HTTP API
    nag: bool = True  # a cdk-nag finding fails the synth
    renamed_actions: Mapping[str, Renamed] = field(default_factory=dict)  # by AWS's name: what the stage enforces under its own

    @property
    def removal_policy(self) -> RemovalPolicy:
        return RemovalPolicy.RETAIN if self.protected else RemovalPolicy.DESTROY


DEV = Settings(stage="dev")

PROD = Settings(
    stage="prod",
    concurrency={Lane.ONE_TIME: 1_000, Lane.RECURRING: 500, Lane.RETRY: 200},
    memory_mb={"api": 512, "tick": 512, "plan": 512, "redrive": 512, "dispatch": 1_769, "execute": 1_024, "bury": 256},
    api_rate=2_000,
    api_burst=4_000,
    login_rate=50,
    login_burst=100,
    report_rate=1_000,
    report_burst=2_000,
    log_retention=RetentionDays.THREE_MONTHS,
    protected=True,
)

# The whole list of what is not as on AWS, and why.
LOCAL = replace(
    DEV,
    stage="local",
    shards=2,  # one process answers every query: more shards are more calls and no more speed
    # Each executor is a process of about 50 MB; a thousand jobs of one instant come in up to 115 batches.
    concurrency={Lane.ONE_TIME: 130, Lane.RECURRING: 20, Lane.RETRY: 20},
    api_at_endpoint=True,  # its own host name, <id>.execute-api.localhost, resolves on few machines
    endpoint_port=4566,
    allow_private_http=True,  # the sample receiver listens on loopback
    allowed_targets=tuple(  # the samples, in the only region and account there are
        f"arn:aws:{service}:us-east-1:000000000000:{name}"
        for service, name in (
            ("lambda", f"function:{SAMPLE}"),
            ("sqs", f"{SAMPLE}-queue"),
            ("sns", SAMPLE),
            ("events", f"event-bus/{SAMPLE}"),
            ("states", f"stateMachine:{SAMPLE}"),
        )
    ),
    email_sender="punctual@example.com",
    sample_targets=True,  # `make run` has something of each kind to try
    log_retention=RetentionDays.ONE_DAY,
    architecture="arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64",  # functions run on the host itself
    host_packages=True,  # the functions run in the interpreter of the local AWS
    tracing=False,  # there is no X-Ray daemon
    tls_only=False,  # it speaks plain HTTP
    access_logs=False,  # it writes none
    nag=False,  # the findings of `dev` say it all; and the differences above would be findings
    renamed_actions={  # it enforces a batch call by the call's name, AWS by the name of the single one
        "sqs:SendMessage": Renamed("sqs:SendMessageBatch"),
        "sqs:ChangeMessageVisibility": Renamed("sqs:ChangeMessageVisibilityBatch"),
        "sns:Publish": Renamed("sns:PublishBatch"),
        "ses:SendEmail": Renamed("ses:SendEmail", anywhere=True),  # it sees no identity in a call
        "dynamodb:PartiQLUpdate": Renamed("dynamodb:BatchExecuteStatement", anywhere=True),  # it sees no table in a statement
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
    endpoint_port: str | None = None,
) -> Settings:
    """The settings of a stage; `allowed_targets` has blanks or commas between its ARNs.

    Raises ValueError naming the stages there are, or the ARN that is none.
    """
    if stage not in STAGES:
        raise ValueError(f"there is no stage {stage!r}; choose one of {', '.join(STAGES)}, as in `cdk synth -c stage=dev`")
    chosen = STAGES[stage]
    allowed = (
        chosen.allowed_targets
        if allowed_targets is None
        else [arns.check_pattern(arn) for arn in re.split(r"[\s,]+", allowed_targets) if arn]
    )
    if len(" ".join(allowed)) > MOST_ALLOWED:
        raise ValueError(f"allowed_targets are longer than {MOST_ALLOWED} characters: name several at once with `*`")
    sender = chosen.email_sender if email_sender is None else email_sender
    port = chosen.endpoint_port if endpoint_port is None else int(endpoint_port)
    return replace(chosen, operator_email=operator_email, allowed_targets=tuple(allowed), email_sender=sender, endpoint_port=port)
