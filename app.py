"""The CDK app: one stack for the stage that `-c stage=...` names (`dev` when it names none)."""

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra.samples import SamplesStack
from infra.settings import OPTIONS, settings_for
from infra.stack import PunctualStack

app = cdk.App()
context = {name: app.node.try_get_context(name) for name in OPTIONS}
settings = settings_for(app.node.try_get_context("stage") or "dev", **context)
PunctualStack(app, settings)
if settings.sample_targets:
    SamplesStack(app, settings)
if settings.nag:
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
