"""The CDK app: the stacks of the stage that `-c stage=...` names (`dev` when it names none), with the options in `stages/<stage>.toml`."""

import sys

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra import options
from infra.console import ConsoleStack
from infra.samples import SamplesStack
from infra.settings import settings_for
from infra.stack import PunctualStack

app = cdk.App()
stage, port, bare = (app.node.try_get_context(name) for name in ("stage", "endpoint_port", "bytecode_optional"))
try:
    chosen = options.of_deployment(stage or "dev", app.node.try_get_context)
    settings = settings_for(stage or "dev", chosen, endpoint_port=port and int(port), bytecode_optional=bare == "true")
except ValueError as error:
    sys.exit(str(error))
stack = PunctualStack(app, settings)
if settings.console:
    ConsoleStack(app, settings).add_stack_dependency(stack)
if settings.sample_targets:
    SamplesStack(app, settings)
if settings.nag:
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
