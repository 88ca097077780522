"""Deliveries of EventBridge to functions on the local AWS: asynchronous invocations, which Lambda repeats.

MiniStack starts a process for each event that meets no idle one, and loses the event if the function is throttled or fails. Here a function
handles five at once. An event that was throttled is repeated until it is too old; after an error it is repeated as often as the function's
configuration says. https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
"""

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from ministack.services import eventbridge, lambda_svc

AT_ONCE = 5
WAIT_S = 1.0  # before each repetition; on AWS a second to five minutes
RETRIES, AGE_S = 2, 21_600  # Lambda's defaults

Fields = Mapping[str, Any]

log = logging.getLogger(__name__)
_limits: defaultdict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(AT_ONCE))  # by function


def deliver(
    invoke: Callable[[], Fields],
    settings: Fields,
    limit: threading.Semaphore,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> bool:
    """Invoke a function with an event until it succeeds. Returns False if it never does. `settings`: its asynchronous configuration."""
    errors, too_old = settings.get("MaximumRetryAttempts", RETRIES) + 1, clock() + settings.get("MaximumEventAgeInSeconds", AGE_S)
    while errors > 0 and clock() <= too_old:
        with limit:
            answer = invoke()
        if not answer.get("error"):
            return True
        errors -= not answer.get("throttle")
        pause(WAIT_S)
    return False


def to_function(arn: str, payload: str) -> None:
    """Deliver an event to a function, in a thread of its own."""
    function, config, name = lambda_svc._get_func_record_for_ref(arn)
    if not function or not config:
        log.warning("an event is for an unknown function: %s", name)
        return
    record, event = lambda_svc._execution_record_for_config(function, config), json.loads(payload)
    qualifier = ":".join(arn.split(":")[7:]) or None
    settings = lambda_svc._event_invoke_config(lambda_svc._functions.get(name, function), qualifier) or {}

    def run() -> None:
        if not deliver(lambda: lambda_svc._execute_function_with_config_scope(record, event), settings, _limits[config["FunctionArn"]]):
            log.warning("an event was not delivered to %s", name)

    threading.Thread(target=run, name="delivery", daemon=True).start()


def install() -> None:
    """Let EventBridge deliver by this. Call once, before MiniStack starts."""
    eventbridge._dispatch_to_lambda = to_function
