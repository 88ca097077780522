"""fetch: calls the URLs of `http` jobs. An attacker who takes it over gets a role that may only write its log, and no other addresses."""

from dataclasses import replace

from constructs import Construct

from infra.function import Foundation, Function
from infra.lanes import EXECUTE_TIMEOUT
from lambdas._settings import Settings as Environment
from scheduler.model.rules import Rules


class Fetch(Construct):
    """The function. Only executors and notify may invoke it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        settings = foundation.settings
        self.function = Function(
            self,
            "fetch",
            foundation,
            Environment(
                stage=settings.stage,
                rules=Rules(allow_private_http=settings.rules.allow_private_http, deployment=foundation.deployment),
                reach=replace(settings.reach, arns=(), sender="", actions=(), accounts=(), stage=""),
            ),
            grants=[],
            timeout=EXECUTE_TIMEOUT,
            traced=False,  # tracing would add X-Ray to its role
        )
