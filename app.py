"""The CDK app: the stacks of the stage that `-c stage=...` names (`dev` when it names none), with the options in `stages/<stage>.toml`."""

from infra import options  # isort: skip  # before aws_cdk, whose warnings it silences

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra.console import ConsoleStack
from infra.samples import SamplesStack
from infra.settings import settings_for
from infra.stack import PunctualStack


def build(app: cdk.App) -> cdk.App:
    """Add the stacks and their checks to the app, by its context, and return it. Exits with the error in the options, if there is one."""
    stage, port, bare, secret = map(app.node.try_get_context, ("stage", "endpoint_port", "bytecode_optional", "origin_secret_version"))
    try:
        chosen = options.of_deployment(stage or "dev", app.node.try_get_context)
        numbers = {"endpoint_port": port and int(port), "origin_secret_version": int(secret or 0)}
        settings = settings_for(stage or "dev", chosen, bytecode_optional=bare == "true", **numbers)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    stack = PunctualStack(app, settings)
    if settings.console:
        ConsoleStack(app, settings).add_stack_dependency(stack)
    if settings.sample_targets:
        SamplesStack(app, settings)
    if settings.nag:
        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app


if __name__ == "__main__":
    build(cdk.App()).synth()
