"""The settings of the stages. Every difference between stages is a setting; no other module of `infra` checks a stage's name."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from infra import names
from infra.account import CALLS, LEAST_MAPPING, pollers, share
from infra.options import AllowedAction, Events, Network, Options, OtherAccount, SignOn, TemplateAccess, Traces
from infra.parameters import API_ID, CONSOLE_URL, ORIGIN_SECRET, parameter
from scheduler.insight.scaling import EXECUTORS_EACH, LEAST, MOST
from scheduler.model.job import Lane
from scheduler.model.rules import BATCH, Rules
from scheduler.targets.base import Reach

SAMPLE = "punctual-sample"  # the name of the resources in `infra/samples.py`


EXECUTOR_JOBS = 256  # jobs that an executor can start at once: one in each of its threads (`lambdas/_pool.py`)


OPERATING = 5  # operations may take a fifth of the steps of the engine ...
MOST_OPERATING = 10  # ... but at most this number


class Renamed(NamedTuple):
    """An IAM action under another name; `anywhere`: enforced without a particular resource."""

    action: str
    anywhere: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One stage. The defaults are those of `dev`."""

    stage: str
    base: str = "dev"  # the record below whose values it has
    options: Mapping[str, Any] = field(default_factory=dict)  # the options that `stages/<stage>.toml` sets, by name
    operator_email: str | None = None  # gets the alarms of the class page
    ticket_email: str | None = None  # gets those of the class ticket

    rules: Rules = field(default_factory=Rules)  # of the functions; `deployed` adds the rules that follow from other settings
    reach: Reach = field(default_factory=Reach)  # the AWS resources and web hosts of jobs
    concurrency: Mapping[Lane, int] = field(  # maximum executors of a lane (MaximumConcurrency)
        default_factory=lambda: {Lane.ONE_TIME: 50, Lane.RECURRING: 50, Lane.RETRY: 20}
    )
    allowed_actions: Sequence[AllowedAction] = ()  # the operations that `aws` jobs may call
    accounts: Sequence[OtherAccount] = ()  # other AWS accounts in which jobs call targets by a role
    account_concurrency: int = 0  # concurrent executions that AWS allows the account; 0: unknown (`account.py`)
    reserved: Mapping[str, int] = field(default_factory=dict)  # reserved concurrent executions, by verb
    steps: int = 1_000  # concurrent steps of the engine; the most that AWS accepts: without a number, the local AWS would carry out five
    notices: int = 5  # concurrent invocations of notify; further notices wait in the queue
    batching_s: int = 30  # seconds for which Lambda collects changes into one batch for project: notices and counters wait as long
    memory_mb: Mapping[str, int] = field(  # CPU grows with memory: 1,769 MB is one whole core
        default_factory=lambda: {
            "api": 512,
            "tick": 512,
            "plan": 512,
            "worker": 512,
            "execute": 512,
            "bury": 256,
            "fetch": 256,
            "project": 512,
            "notify": 512,
            "announce": 256,
            "intake": 512,
            "declare": 512,
            "conclude": 1_024,  # the end of a job waits for its cold start
            "scale": 512,
            "provision": 512,
            "tokens": 128,
        }
    )
    archive: bool = True  # expired jobs are archived in S3, where Athena reads them
    archive_days: int = 400  # days until the archive deletes them
    http_apart: bool = True  # `fetch`, whose role has no grants, calls URLs instead of the executors
    network: Network | None = None  # the private network, in which `fetch-private` calls private targets
    sample_targets: bool = False  # deploy a second stack with one resource of each kind that jobs can reach

    sso: SignOn | None = None  # single sign-on
    aws_issuers: Mapping[str, str] = field(default_factory=dict)  # by account; `{port}` is that of the local AWS

    api_rate: int = 200  # requests per second, over all routes
    api_burst: int = 400
    write_rate: int = 100  # of each writing method of signed-in users; a flood of writes leaves capacity for reads
    write_burst: int = 200
    key_rate: int = 100  # of each method of programs: with an API key, and of each AWS account
    key_burst: int = 200
    login_rate: int = 10  # of each route that receives a password or a refresh token
    login_burst: int = 20
    report_rate: int = 100  # of each route to which workers report
    report_burst: int = 200
    api_at_endpoint: bool = False  # the API is reached at the address of the local AWS
    endpoint_port: int | None = None  # the port of the local AWS; from `-c endpoint_port=...`

    provisioned_writes: int = 0  # most write units a second of the jobs table; 0: on demand
    container_roles: Sequence[str] = ()  # the roles that containers of `ecs` jobs may get
    intake: Mapping[str, str] = field(default_factory=dict)  # the owner of each intake queue, or "principals", by the name of the queue
    intakes: int = 10  # concurrent invocations of intake for each queue; further messages wait
    templates: Sequence[TemplateAccess] = ()  # the owners for whom stacks of CloudFormation declare tasks
    events: Events = Events.NONE  # the ends of these jobs are put on an event bus
    customer_key: bool = False  # tables, queues, topics, buckets, logs and secret under a KMS key of this stage
    audit_lock_days: int = 0  # for which a bucket locks a copy of each audit entry; 0: there is no copy
    console: bool = True  # the web console behind CloudFront, in a stack of its own
    waf: bool = False  # a web ACL in front of the console and the API
    log_level: str = "INFO"
    log_retention: RetentionDays = RetentionDays.ONE_WEEK
    protected: bool = False  # tables, users and the stack itself cannot be deleted by accident

    architecture: str = "arm64"  # cheaper per millisecond than x86_64 at the same speed
    host_packages: bool = False  # bundle no dependencies: the interpreter that runs the functions has them
    origin_secret_version: int = 1  # of the parameter with the origin secret, 0: there is none; from `-c origin_secret_version=...`
    bytecode_optional: bool = False  # bundle even if nothing can compile for AWS; from `-c bytecode_optional=true`
    tracing: bool = False  # X-Ray
    traces: Traces | None = None  # spans of jobs are exported to this collector
    tls_only: bool = True  # queues and topics refuse plain HTTP
    access_logs: bool = True  # of the HTTP API
    saved_queries: bool = True  # of CloudWatch Logs Insights
    nag: bool = True  # a cdk-nag finding fails the synth
    renamed_actions: Mapping[str, Renamed] = field(default_factory=dict)  # by AWS's action name: the action that the stage enforces instead

    def __post_init__(self) -> None:
        """Raises ValueError for a number of pollers that AWS would refuse, or for pollers of a lane that never keeps any ready."""
        for lane, most in self.rules.most_pollers.items():
            if lane is Lane.RETRY or not LEAST <= most <= MOST:
                raise ValueError(f"most_pollers: the one-time and the recurring lane take {LEAST} to {MOST}, not {lane} {most}")

    @property
    def stack(self) -> str:
        """The name of the stage's stack; those of its further stacks begin with it."""
        return f"punctual-{self.stage}"

    @property
    def console_stack(self) -> str:
        return f"{self.stack}-console"

    @property
    def origin_secret(self) -> str:
        """The secret by which the API recognizes CloudFront: a reference that CloudFormation resolves."""
        return self._origin_secret(self.origin_secret_version)

    @property
    def origin_secrets(self) -> str:
        """The secrets that the API accepts, separated by blanks: also the one before, which CloudFront sends until it is deployed."""
        versions = range(max(self.origin_secret_version - 1, 1), self.origin_secret_version + 1)  # none if there is no secret
        return " ".join(map(self._origin_secret, versions))

    def _origin_secret(self, version: int) -> str:
        return f"{{{{resolve:ssm:{parameter(self.stage, ORIGIN_SECRET)}:{version}}}}}"

    @property
    def api_id(self) -> str:
        """The name of the parameter with the API's id."""
        return parameter(self.stage, API_ID)

    @property
    def console_address(self) -> str:
        """The name of the parameter with the console's URL."""
        return parameter(self.stage, CONSOLE_URL)

    @property
    def issuers(self) -> Mapping[str, str]:
        """The issuers of role tokens by account."""
        return {account: issuer.replace("{port}", str(self.endpoint_port)) for account, issuer in self.aws_issuers.items()}

    @property
    def secret_prefix(self) -> str:
        """The prefix of the names of secrets that jobs may use; the owner's id follows."""
        return f"punctual/{self.stage}/"

    @property
    def archive_database(self) -> str:
        """Athena's database of archived jobs; empty: there is no archive."""
        return f"punctual_{self.stage.replace('-', '_')}" if self.archive else ""

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
        """The rules, completed by the numbers of executors and calls and the windows that follow from the other settings."""
        first, pollers = (Lane.ONE_TIME, Lane.RECURRING), self.rules.most_pollers
        return replace(
            self.rules,
            events=self.events is not Events.NONE,
            all_events=self.events is Events.ALL,
            traces=self.traces is not None,
            trace_ratio=1.0 if self.traces is None else self.traces.ratio,
            intake=bool(self.intake),
            calls_at_once=self._calls_at_once,
            calls=self._calls,
            steps=self.steps,
            operating=min(max(self.steps // OPERATING, 1), MOST_OPERATING),
            executors=sum(max(self.concurrency[lane], EXECUTORS_EACH * pollers.get(lane, 0)) for lane in first),
            concurrency={lane: self.concurrency[lane] for lane in pollers},
            windows={lane: self.concurrency[lane] * BATCH[lane] for lane in Lane},
            crowds={lane: self.concurrency[lane] * EXECUTOR_JOBS for lane in first},
        )

    @property
    def _calls_at_once(self) -> int:
        """The most calls of `fetch` of one executor. A reservation limits them all; without one, they must leave room for the engine."""
        return self.rules.calls_at_once if self.account_concurrency or not self.http_apart else CALLS

    @property
    def _calls(self) -> int:
        """The most calls of `fetch` by all executors; 0: they call URLs themselves."""
        if not self.http_apart:
            return 0
        return self.reserved.get("fetch", self._calls_at_once * sum(self.concurrency.values()))

    @property
    def removal_policy(self) -> RemovalPolicy:
        """Of what holds data: a protected stage keeps it, except what a deployment created that then failed and was rolled back."""
        return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if self.protected else RemovalPolicy.DESTROY

    @property
    def guarded_removal_policy(self) -> RemovalPolicy:
        """Of tables and the user pool, which AWS does not delete while their deletion protection is on, and of the key.

        A rollback that had to delete them would fail itself; without the key, what was stored under it could not be read.
        """
        return RemovalPolicy.RETAIN if self.protected else RemovalPolicy.DESTROY


DEV = Settings(stage="dev")

PROD = Settings(
    stage="prod",
    base="prod",
    # The pollers for the executors that `concurrency` allows. Retries are spread over time, so their lane keeps none ready.
    rules=Rules(lag_canary=True, most_pollers={Lane.ONE_TIME: 100, Lane.RECURRING: 50}),
    concurrency={Lane.ONE_TIME: 1_000, Lane.RECURRING: 500, Lane.RETRY: 200},
    memory_mb={**DEV.memory_mb, "plan": 1_024, "worker": 1_769, "execute": 768, "project": 1_024},
    api_rate=2_000,
    api_burst=4_000,
    write_rate=1_000,
    write_burst=2_000,
    key_rate=1_000,
    key_burst=2_000,
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
    base="local",
    rules=Rules(
        ready_executors=12,  # the number that `make run` starts: each is a process, which takes a third of a second of processor to start
        shards=2,  # one process answers every query: more shards are more calls and no more speed
        direct_burst=50,  # the local AWS runs about 250 jobs a second: one user may put a fraction of that before the jobs of others
        direct_rate=25,
        lead_ms=500,  # its executors are warm: a longer lead would only let more of them wait
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
                ("ecs", f"cluster/{SAMPLE}"),
                ("ecs", f"task-definition/{SAMPLE}"),
            )
        ),
    ),
    concurrency={Lane.ONE_TIME: 40, Lane.RECURRING: 20, Lane.RETRY: 20},  # each executor is a process of about 50 MB
    api_at_endpoint=True,  # its own host name, <id>.execute-api.localhost, resolves on few machines
    batching_s=1,  # users of the local stage expect to see results soon
    archive=False,  # the local AWS reports no TTL deletions to streams, and refuses saved queries of Athena
    events=Events.CHOSEN,  # for trying them with `make run`
    intake={"jobs": "principals"},  # likewise
    endpoint_port=4566,
    # Each call in progress would need a process of its own, and the drills that kill executors expect the calls in executors.
    http_apart=False,  # tests/system/test_secrets.py switches it on
    aws_issuers={"000000000000": "http://127.0.0.1:{port}/issuer-000000000000"},  # its only account, whose issuer it serves itself
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

# The options that are no settings of the stage itself.
OF_REACH = {
    "allowed_targets": "arns",
    "email_sender": "sender",
    "plain_http": "plain_http",
    "http_hosts": "hosts",
    "email_domains": "mail_domains",
}
OF_RULES = ("raw_http",)


def settings_for(
    stage: str,
    options: Options | None = None,
    *,
    endpoint_port: int | None = None,
    bytecode_optional: bool = False,
    origin_secret_version: int = 1,
) -> Settings:
    """The settings of a stage, with the options of this deployment. Raises ValueError for a wrong name or base, with the rule.

    `endpoint_port`, `bytecode_optional` and `origin_secret_version` come from the tools that deploy: no operator chooses them.
    """
    values = options.model_dump(exclude_unset=True) if options else {}
    chosen = bare(stage, values.pop("base", None))
    reach = {field: values.pop(name) for name, field in OF_REACH.items() if name in values}
    rules = {name: values.pop(name) for name in OF_RULES if name in values}
    if options is not None and "sso" in values:
        values["sso"] = options.sso  # the record, not its fields
    if options is not None and "traces" in values:
        values["traces"] = options.traces  # likewise
    if options is not None and "allowed_actions" in values:
        values["allowed_actions"] = options.allowed_actions  # likewise
        reach["actions"] = tuple(each.written for each in options.allowed_actions)
    if options is not None and options.network is not None:
        values["network"], reach["network"] = options.network, options.network.allow
    if options is not None and options.accounts:
        values["accounts"] = options.accounts  # likewise
        reach |= {"accounts": tuple(each.written for each in options.accounts), "stage": stage}
    if options is not None and options.templates:
        values["templates"] = options.templates  # likewise
    account = values.pop("account_concurrency", 0)
    made = replace(
        chosen,
        **values,
        options=options.chosen if options else {},
        rules=replace(chosen.rules, **rules),
        reach=replace(chosen.reach, **reach),
        endpoint_port=chosen.endpoint_port if endpoint_port is None else endpoint_port,
        bytecode_optional=bytecode_optional,
        origin_secret_version=origin_secret_version,
    )
    return within(made, account)


def bare(stage: str, base: str | None = None) -> Settings:
    """The settings of a stage without options: those of its base, under its name. Raises ValueError for a wrong name or base."""
    names.check(stage)
    if stage == LOCAL.stage and base is not None:
        raise ValueError(f"base: {stage} has settings of its own")
    if base is None and stage not in STAGES:
        raise ValueError(
            f'stages/{stage}.toml: base is missing: a stage other than local, dev and prod needs base = "dev" or base = "prod", '
            "whose settings it has"
        )
    return replace(STAGES[base or stage], stage=stage)


def within(settings: Settings, account: int) -> Settings:
    """Return the settings of a stage in an account that allows `account` executions at once; 0: unknown, which limits nothing."""
    if not account:
        return settings
    part = share(account, settings.concurrency, http_apart=settings.http_apart, private=settings.network is not None)
    ready = min(settings.rules.ready_executors, part.concurrency[Lane.ONE_TIME], part.concurrency[Lane.RECURRING])
    most_pollers = pollers(settings.rules.most_pollers, part.concurrency)
    return replace(
        settings,
        account_concurrency=account,
        reserved=part.reserved,
        concurrency=part.concurrency,
        steps=part.steps,
        notices=LEAST_MAPPING if part.is_small else settings.notices,
        intakes=LEAST_MAPPING if part.is_small else settings.intakes,
        http_apart=settings.http_apart and not part.is_small,
        rules=replace(settings.rules, ready_executors=ready, most_pollers=most_pollers),
    )
