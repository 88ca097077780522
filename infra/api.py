"""api: the HTTPS API. All routes except health, login, refresh, docs, reports of workers and pings require the authorizer."""

import json

from aws_cdk import Acknowledgment, ArnFormat, Duration, Stack, Validations
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_ssm as ssm
from aws_cdk.aws_apigatewayv2_authorizers import HttpJwtAuthorizer, HttpUserPoolAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from infra.accounts import Accounts
from infra.function import (
    JOB_RESOURCES,
    Foundation,
    Function,
    allow,
    change_jobs,
    change_tasks,
    list_jobs,
    read_callback_secret,
    step_in,
    step_out,
)
from infra.settings import Settings

BASE = "/api/v1"
GET, POST, ANY = apigateway.HttpMethod.GET, apigateway.HttpMethod.POST, apigateway.HttpMethod.ANY
LOGIN_ROUTES = [(POST, f"{BASE}/auth/{verb}") for verb in ("login", "challenge", "refresh", "sso")]
REPORT_ROUTES = [(POST, f"{BASE}/jobs/{{job_id}}/{verb}") for verb in ("heartbeat", "complete", "fail")]  # with a token of their own
REVOKE_ROUTE = (POST, f"{BASE}/keys/revoke")  # with the key itself
PING_ROUTES = [(method, f"{BASE}/ping/{{token}}{rest}") for rest in ("", "/{signal}") for method in (GET, POST)]  # likewise
HEALTH_ROUTE = (GET, f"{BASE}/health")
# For monitors: each request with a token takes a check of its signature.
HEALTH = {"ThrottlingRateLimit": 10, "ThrottlingBurstLimit": 20}
OPEN_ROUTES = [
    HEALTH_ROUTE,
    *LOGIN_ROUTES,
    REVOKE_ROUTE,
    (GET, f"{BASE}/auth/sso"),
    *REPORT_ROUTES,
    *PING_ROUTES,
    (GET, f"{BASE}/openapi.json"),
    (GET, f"{BASE}/docs"),
]
IDENTITY = [  # actions of Cognito
    f"cognito-idp:{call}"
    for call in (
        "AdminCreateUser",
        "AdminDeleteUser",  # also removes a user whose first password broke the policy
        "AdminDisableUser",
        "AdminEnableUser",
        "AdminGetUser",  # whether the account has a second factor
        "AdminInitiateAuth",  # sign-in: no public call does this
        "AdminRespondToAuthChallenge",
        "AdminSetUserMFAPreference",
        "AdminSetUserPassword",
        "AdminUserGlobalSignOut",
    )
]
CATCH_ALL = f"{BASE}/{{proxy+}}"
BY_KEY = f"{BASE}/key/{{proxy+}}"
WRITES = [POST, apigateway.HttpMethod.PUT, apigateway.HttpMethod.PATCH, apigateway.HttpMethod.DELETE]

# Each writing method by its name, too: AWS does not say whether `ANY` of a longer path is before a method of `CATCH_ALL`.
OF_PROGRAMS = [*WRITES, ANY]

# Never the query string, a header or a body: these can contain tokens and payloads.
ACCESS_LOG_FIELDS = {
    "requestId": "$context.requestId",
    "ip": "$context.identity.sourceIp",
    "time": "$context.requestTime",
    "route": "$context.routeKey",
    "path": "$context.path",
    "status": "$context.status",
    "latencyMs": "$context.responseLatency",
    "bytes": "$context.responseLength",
    "user": "$context.authorizer.claims.sub",
    "error": "$context.error.message",
    "refused": "$context.authorizer.error",  # why an authorizer refused a token: no function sees such a request
}


def by_role(account: str) -> str:
    """Return the path of all requests with tokens of the account's roles."""
    return f"{BASE}/aws/{account}/{{proxy+}}"


class Api(Construct):
    """The function behind all routes, and the HTTP API in front of it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, accounts: Accounts, notices: sqs.Queue) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "api",
            foundation,
            foundation.environment(
                *JOB_RESOURCES,
                "ledger_table",
                "work_queue_url",
                "users_table",
                "counters_table",
                "outputs_bucket",
                "callback_secret",
                reach=foundation.settings.reach,
                audit_table=storage.audit.table_name,
                notices_queue_url=notices.queue_url,
                **accounts.environment(foundation.settings),
                audit_lock_bucket="" if storage.audit_lock is None else storage.audit_lock.bucket_name,
                archive_database=foundation.settings.archive_database,
                **self._issuers(foundation.settings),
                **self._origin_secret(foundation.settings),
            ),
            grants=[
                allow(storage.jobs.table_arn, "dynamodb:GetItem"),
                *list_jobs(foundation),
                allow(storage.due_index_arn, "dynamodb:Query"),  # the status: jobs that are due and wait
                change_jobs(foundation),
                *change_tasks(foundation),
                *step_out(foundation),  # a cancelled job may have another one waiting
                step_in(foundation),
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query"),  # lag, receipts, lanes, breakers, backlogs
                allow(storage.ledger.table_arn, "dynamodb:PutItem"),  # lanes paused and resumed, and a single receipt
                allow(storage.ledger.table_arn, "dynamodb:PartiQLInsert", "dynamodb:UpdateItem", "dynamodb:PartiQLUpdate"),  # receipts
                allow(storage.ledger.table_arn, "dynamodb:BatchGetItem"),  # ... that another request has replaced
                allow(storage.ledger.table_arn, "dynamodb:DeleteItem"),  # an aborted operation moves to the ended ones; a breaker is closed
                allow(storage.outputs.arn_for_objects("*"), "s3:GetObject"),
                allow(storage.outputs.bucket_arn, "s3:ListBucket"),  # without it S3 answers "denied" for expired objects
                allow(storage.counters.table_arn, "dynamodb:Query"),  # summaries
                allow([*lanes.arns, lanes.work.queue_arn], "sqs:SendMessage"),  # the work of the overflow, operations and resumed lanes
                allow(notices.queue_arn, "sqs:SendMessage"),  # tests of receivers
                read_callback_secret(foundation),
                allow(storage.users.table_arn, "dynamodb:BatchGetItem", "dynamodb:UpdateItem"),  # weights, quotas, tallies
                allow(storage.users.table_arn, "dynamodb:GetItem", "dynamodb:Query"),  # disabled owners; owners with their teams
                # Persons, teams, members, invitations, API keys and principals are made and deleted in transactions.
                allow(storage.users.table_arn, "dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"),
                allow(storage.audit.table_arn, "dynamodb:PutItem", "dynamodb:Query"),  # no function may delete entries
                *storage.lock_audit(self),
                allow(storage.by_month_index_arn, "dynamodb:Query"),
                # Sign-in, and administrators' operations on users. Refresh and sign-out take no grant, but the app client's secret.
                allow(accounts.pool.user_pool_arn, *IDENTITY),
            ],
            timeout=Duration.seconds(29),  # the gateway answers 503 after 30
        )
        storage.acknowledge_outputs(self)
        self.http = apigateway.HttpApi(self, "Http", api_name=Stack.of(self).stack_name, create_default_stage=False)
        if foundation.settings.console:
            ssm.StringParameter(self, "Id", parameter_name=foundation.settings.api_id, string_value=self.http.api_id)
        self.accounts = tuple(foundation.settings.issuers)  # the AWS accounts whose roles may use it
        self._stage = self._default_stage(foundation.settings)
        self._routes(accounts, foundation.settings)
        self._throttle(foundation.settings)
        self.access_logs = self._log_access(foundation) if foundation.settings.access_logs else None

    @staticmethod
    def _issuers(settings: Settings) -> dict[str, str]:
        """The issuers of role tokens. Without one there is no variable: the environment of a function has 4 KB."""
        issuers = " ".join(f"{account}={issuer}" for account, issuer in settings.issuers.items())
        return {"aws_issuers": issuers} if issuers else {}

    @staticmethod
    def _origin_secret(settings: Settings) -> dict[str, str]:
        """The secret that CloudFront sends with each request of the console: only then the API believes the viewer's address."""
        return {"origin_secret": settings.origin_secrets} if settings.console else {}

    def _default_stage(self, settings: Settings) -> apigateway.HttpStage:
        return apigateway.HttpStage(
            self,
            "Stage",
            http_api=self.http,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigateway.ThrottleSettings(rate_limit=settings.api_rate, burst_limit=settings.api_burst),
        )

    def _log_access(self, foundation: Foundation) -> logs.LogGroup:
        settings, key = foundation.settings, foundation.encryption.key
        group = logs.LogGroup(
            self, "AccessLogs", encryption_key=key, retention=settings.log_retention, removal_policy=settings.removal_policy
        )
        arn = Stack.of(self).format_arn(
            service="logs", resource="log-group", resource_name=group.log_group_name, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        self._raw_stage.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=arn, format=json.dumps(ACCESS_LOG_FIELDS)
        )
        return group

    def _routes(self, accounts: Accounts, settings: Settings) -> None:
        # One permission for the whole API instead of one per route: the function is behind all of them.
        to_function = HttpLambdaIntegration("Function", self.function.live, scope_permission_to_route=False)
        signed_in = HttpUserPoolAuthorizer("SignedIn", accounts.pool, user_pool_clients=accounts.clients)
        for method, path in OPEN_ROUTES:
            for route in self.http.add_routes(path=path, methods=[method], integration=to_function):
                Validations.of(route).acknowledge(
                    Acknowledgment(
                        id="AwsSolutions-APIG4", reason="open on purpose: health, sign-in, reports and pings with tokens of their own, docs"
                    )
                )
                self._stage.node.add_dependency(route)  # a stage cannot throttle a route that is not there yet
        for route in self.http.add_routes(path=BY_KEY, methods=OF_PROGRAMS, integration=to_function):
            Validations.of(route).acknowledge(
                Acknowledgment(id="AwsSolutions-APIG4", reason="the function checks the API key, so that a revoked key ends within seconds")
            )
            self._stage.node.add_dependency(route)
        for account, issuer in settings.issuers.items():
            of_account = HttpJwtAuthorizer(f"Account{account}", issuer, jwt_audience=[self.address(settings)])
            for route in self.http.add_routes(path=by_role(account), methods=OF_PROGRAMS, integration=to_function, authorizer=of_account):
                self._stage.node.add_dependency(route)
        for route in self.http.add_routes(path=CATCH_ALL, methods=WRITES, integration=to_function, authorizer=signed_in):
            self._stage.node.add_dependency(route)
        # Unknown routes reach the function as well, so that their 404 has our envelope.
        self.http.add_routes(path=CATCH_ALL, methods=[ANY], integration=to_function, authorizer=signed_in)

    def url(self, settings: Settings) -> str:
        """The URL of the API for workers that report on jobs."""
        return self._below("{endpoint}") if settings.api_at_endpoint else self.http.api_endpoint

    def address(self, settings: Settings) -> str:
        """The URL of the API for clients, which is also the audience of role tokens: that of another stage has another one."""
        return self._below(f"http://127.0.0.1:{settings.endpoint_port}") if settings.api_at_endpoint else self.http.api_endpoint

    def _below(self, endpoint: str) -> str:
        return f"{endpoint}/_aws/execute-api/{self.http.api_id}/$default"

    def _throttle(self, settings: Settings) -> None:
        """Limit the open routes and the writing routes below the whole API: a flood of either must leave capacity for signed-in readers."""
        logins = {"ThrottlingRateLimit": settings.login_rate, "ThrottlingBurstLimit": settings.login_burst}
        reports = {"ThrottlingRateLimit": settings.report_rate, "ThrottlingBurstLimit": settings.report_burst}
        writes = {"ThrottlingRateLimit": settings.write_rate, "ThrottlingBurstLimit": settings.write_burst}
        limits = dict.fromkeys([*LOGIN_ROUTES, REVOKE_ROUTE], logins) | {HEALTH_ROUTE: HEALTH}
        limits |= dict.fromkeys([*REPORT_ROUTES, *PING_ROUTES], reports)
        limits |= dict.fromkeys([(method, CATCH_ALL) for method in WRITES], writes)
        programs = {"ThrottlingRateLimit": settings.key_rate, "ThrottlingBurstLimit": settings.key_burst}
        paths = [BY_KEY, *map(by_role, settings.issuers)]
        limits |= {(method, path): programs for path in paths for method in OF_PROGRAMS}
        self._raw_stage.route_settings = {f"{method.value} {path}": limit for (method, path), limit in limits.items()}

    @property
    def _raw_stage(self) -> apigateway.CfnStage:
        """The stage as a CloudFormation resource, which has settings that the construct lacks."""
        stage = self._stage.node.default_child
        assert isinstance(stage, apigateway.CfnStage)
        return stage
