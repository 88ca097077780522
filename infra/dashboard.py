"""One dashboard, in the order of three questions: is it healthy, is it on time, is there enough capacity; then details."""

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms import LAG_SECONDS, LATE_MS, AlarmClass, Operators, table_metric
from infra.lanes import Lanes
from infra.storage import Storage
from scheduler.insight import metrics

ROW = 24  # columns
PERCENTILES = ("p50", "p99")
FLOW = (
    "filter message in ['project', 'dispatch'] | "
    "stats sum(jobs_created) as created, sum(jobs_pulled) as pulled, sum(jobs_processed) as processed by bin(1m)"
)


class Dashboard(Construct):
    """The widgets show only metrics that a function or AWS emits, 50 at most: CloudWatch charges for a larger dashboard."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        operators: Operators,
        lanes: Lanes,
        storage: Storage,
        http: apigateway.HttpApi,
        functions: Mapping[str, lambda_.Function],
        executors: int,
    ) -> None:
        """Create it. `executors`: the maximum number of executors for first attempts."""
        super().__init__(scope, id)
        board = cloudwatch.Dashboard(self, "Board", default_interval=Duration.hours(3), period_override=cloudwatch.PeriodOverride.AUTO)
        board.add_widgets(*_healthy(operators, http))
        board.add_widgets(*_on_time(operators, lanes))
        board.add_widgets(*_holding(operators, lanes, storage, executors, functions))
        board.add_widgets(*_api(http))
        board.add_widgets(*_functions(functions))


def _healthy(operators: Operators, http: apigateway.HttpApi) -> list[cloudwatch.IWidget]:
    pages = [alarm for kind, alarm in operators.alarms if kind is AlarmClass.PAGE]
    others = [alarm for kind, alarm in operators.alarms if kind is not AlarmClass.PAGE]
    lag = operators.own_metric(metrics.OLDEST_OPEN_MINUTE, "tick", "Maximum")
    return [
        _title("Is it healthy?"),
        cloudwatch.AlarmStatusWidget(title="Pages: an operator must act now", alarms=pages, width=16, height=5),
        cloudwatch.AlarmStatusWidget(title="Tickets, and signals to functions", alarms=others, width=8, height=5),
        _graph(
            "Oldest open minute, lag of plan and of alerts (s)",
            [
                lag,
                operators.own_metric(metrics.PLAN_LAG, "tick", "Maximum"),
                operators.own_metric(metrics.ALERT_LAG, "worker", "Maximum"),
            ],
            limit=LAG_SECONDS,
        ),
        _graph(
            "Dead letters, buried jobs, unreadable items, lost spans",
            [
                operators.own_metric(metrics.DEAD, "project", "Sum"),
                operators.own_metric(metrics.BURIED, "bury", "Sum"),
                operators.own_metric(metrics.UNREADABLE, "storage", "Sum"),
                operators.own_metric(metrics.SPANS_LOST, "announce", "Sum"),
            ],
        ),
        _graph(
            "Notices: sent, given up",
            [operators.own_metric(metrics.SENT, "notify", "Sum")],
            right=[operators.own_metric(metrics.UNDELIVERED, "notify", "Sum")],
        ),
        _graph("API errors", [http.metric_server_error(statistic="Sum"), http.metric_client_error(statistic="Sum")]),
    ]


def _on_time(operators: Operators, lanes: Lanes) -> list[cloudwatch.IWidget]:
    delays = [operators.own_metric(metrics.START_DELAY, "project", each) for each in PERCENTILES]
    latencies = [operators.own_metric(metrics.LATENCY, "project", each) for each in PERCENTILES]
    overhead = operators.own_metric(metrics.OVERHEAD, "project", "p99")
    ages = [queue.metric_approximate_age_of_oldest_message(label=str(lane)) for lane, queue in lanes.queues.items()]
    return [
        _title("Is it on time?"),
        _graph("Start delay (ms)", [*delays, operators.own_metric(metrics.CANARY_DELAY, "project", "Maximum")], limit=LATE_MS),
        _graph("Job latency: end minus scheduled time (ms)", [*latencies, overhead]),
        _graph("Oldest message of each lane (s)", ages),
    ]


def _holding(
    operators: Operators, lanes: Lanes, storage: Storage, executors: int, functions: Mapping[str, lambda_.Function]
) -> list[cloudwatch.IWidget]:
    required = operators.own_metric(metrics.REQUIRED, "scale", "Maximum")
    depths = [queue.metric_approximate_number_of_messages_visible(label=str(lane)) for lane, queue in lanes.queues.items()]
    depths.append(lanes.work.metric_approximate_number_of_messages_visible(label="work"))
    used = [table_metric(storage.jobs.table_name, f"Consumed{kind}CapacityUnits", "Sum") for kind in ("Read", "Write")]
    throttled = [table_metric(storage.jobs.table_name, f"{kind}ThrottleEvents", "Sum") for kind in ("Read", "Write")]
    return [
        _title("Is there enough capacity?"),
        _graph("Executors required in the next ten minutes", [required], limit=executors, named="available"),
        cloudwatch.LogQueryWidget(  # plain counts are no metrics, which would cost 30 cents a month each
            title="Jobs per minute: created, pulled, processed",
            log_group_names=[functions[name].log_group.log_group_name for name in ("project", "worker")],
            query_string=FLOW,
            view=cloudwatch.LogQueryVisualizationType.LINE,
            width=8,
            height=6,
        ),
        _graph("Waiting messages", depths),
        _graph("Jobs table: capacity units, throttles", used, right=throttled),
    ]


def _api(http: apigateway.HttpApi) -> list[cloudwatch.IWidget]:
    return [
        _title("The API"),
        _graph("Requests per minute", [http.metric_count(statistic="Sum")]),
        _graph("Latency (ms)", [http.metric_latency(statistic=each) for each in ("p95", "p99")]),
    ]


def _functions(functions: Mapping[str, lambda_.Function]) -> list[cloudwatch.IWidget]:
    errors = [function.metric_errors(statistic="Sum", label=verb) for verb, function in functions.items()]
    account = cloudwatch.Metric(namespace="AWS/Lambda", metric_name="Throttles", statistic="Sum", label="throttled calls in the account")
    return [_title("The functions"), _graph("Errors", errors), _graph("Throttles", [account])]


def _title(text: str) -> cloudwatch.TextWidget:
    return cloudwatch.TextWidget(markdown=f"## {text}", width=ROW, height=1)


def _graph(
    title: str,
    left: Sequence[cloudwatch.IMetric],
    *,
    right: Sequence[cloudwatch.IMetric] = (),
    limit: float | None = None,
    named: str = "alarm",
) -> cloudwatch.GraphWidget:
    lines = [cloudwatch.HorizontalAnnotation(value=limit, label=named, color=cloudwatch.Color.RED)] if limit is not None else []
    return cloudwatch.GraphWidget(
        title=title, left=list(left), right=list(right), left_annotations=lines, width=8, height=6, period=Duration.minutes(1)
    )
