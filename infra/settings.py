"""What differs between the stages. Every difference is a setting; nothing in `infra` asks for a stage by name."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from scheduler.model import Lane


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

    api_rate: int = 200  # requests per second, all routes together
    api_burst: int = 400
    login_rate: int = 10  # of each of the routes that take a password or a refresh token
    login_burst: int = 20

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
    allow_private_http=True,  # the sample receiver listens on loopback
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
        "dynamodb:PartiQLUpdate": Renamed("dynamodb:BatchExecuteStatement", anywhere=True),  # it sees no table in a statement
        "dynamodb:PartiQLInsert": Renamed("dynamodb:BatchExecuteStatement", anywhere=True),
        "dynamodb:PartiQLDelete": Renamed("dynamodb:BatchExecuteStatement", anywhere=True),
    },
)

STAGES = {settings.stage: settings for settings in (LOCAL, DEV, PROD)}


def settings_for(stage: str, *, operator_email: str | None = None) -> Settings:
    """The settings of a stage. Raises ValueError naming the stages there are."""
    if stage not in STAGES:
        raise ValueError(f"there is no stage {stage!r}; choose one of {', '.join(STAGES)}, as in `cdk synth -c stage=dev`")
    return replace(STAGES[stage], operator_email=operator_email)
