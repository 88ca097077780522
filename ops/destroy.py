"""`make destroy`: delete the stacks of a stage and the content of their buckets, and report what stays and why.

A protected stage (`prod`, or one with that base) keeps its data: its tables, buckets and users outlive the stack, and the stack itself is
protected.
"""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError, WaiterError

from local.aws import Deployed
from local.failure import Trouble, exit_code
from ops import origin_secret
from ops.cloud import Stage, remedy, reported, stage_of, unprotect
from ops.confirm import confirm

VERSION = "AWS::Lambda::Version"
RETAINED = ("Retain", "RetainExceptOnCreate")
TRIES = 3  # to delete a stack whose buckets are written to
WAIT = {"Delay": 5, "MaxAttempts": 360}  # half an hour: CloudFront takes minutes


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops.destroy", description="Delete the stacks of a stage.")
    parser.add_argument("--stage", required=True)
    parser.add_argument("--only", choices=["console"], help="delete only the console's stack")
    arguments = parser.parse_args()
    stage = stage_of(arguments.stage)
    with reported():
        destroy(stage, [stage.console] if arguments.only else [stage.console, stage.stack])
    return 0


def destroy(stage: Stage, stacks: list[str]) -> None:
    """Delete these stacks, in this order. Raises Trouble if one is protected or cannot be deleted, or if the answer is no."""
    found = [each for name in stacks if (each := stage.state(name))]
    if not found:
        raise Trouble(f"There is no stack {' or '.join(stacks)} in {stage.region}.")
    if protected := [each.name for each in found if each.protected]:
        raise Trouble(_protected(protected, stage))
    if users := [line for each in found for line in imports(stage.client("cloudformation"), each)]:
        raise Trouble("\n".join(("Nothing was deleted: other stacks declare tasks by this stage. Delete these stacks first:", *users)))
    data = "Its data stays." if stage.settings.protected else "All jobs, users and files in them are lost."
    print(f"This deletes {' and '.join(each.name for each in found)} in {stage.region}. {data}")
    confirm("Delete?")
    retained = [line for each in found for line in leftover(stage.client("cloudformation"), each)]
    for each in found:
        _delete(stage, each)
        print(f"Deleted the stack {each.name}.")
    if stage.stack in stacks:
        origin_secret.delete(stage.client("ssm"), stage.name)
    for line in retained:
        print(line)
    print("The CDK's bootstrap stack stays: other applications of this account and region may use it.")


def _protected(stacks: list[str], stage: Stage) -> str:
    commands = [f"  {unprotect(name)}" for name in stacks]
    return "\n".join(
        (
            f"Nothing was deleted: {stage.name} is protected against deletion by accident. To delete it nevertheless:",
            *commands,
            f"  make destroy STAGE={stage.name}",
            "Its tables, buckets, keys and users stay even then: they hold your jobs. Delete them in the AWS console when you are sure.",
        )
    )


def buckets(cloudformation: Any, stack: str) -> list[str]:
    """The buckets that the stack deletes: others keep their content, such as the locked copies of the audit trail."""
    found = [each for each in _resources(cloudformation, stack) if each["ResourceType"] == "AWS::S3::Bucket"]
    if not found:
        return []  # a stack in review has no template either
    resources = cloudformation.get_template(StackName=stack)["TemplateBody"]["Resources"]
    return [
        each["PhysicalResourceId"] for each in found if resources.get(each["LogicalResourceId"], {}).get("DeletionPolicy") not in RETAINED
    ]


def empty(s3: Any, bucket: str) -> int:
    """Delete all objects of a bucket in all their versions; returns their number."""
    count = 0
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        found = [
            {"Key": each["Key"], "VersionId": each["VersionId"]} for kind in ("Versions", "DeleteMarkers") for each in page.get(kind, [])
        ]
        if found:
            if refused := s3.delete_objects(Bucket=bucket, Delete={"Objects": found, "Quiet": True}).get("Errors"):
                raise Trouble(f"The bucket {bucket} could not be emptied: {refused[0]['Code']}: {refused[0].get('Message', '')}")
            count += len(found)
    return count


def imports(cloudformation: Any, stack: Deployed) -> Iterator[str]:
    """A sentence for each stack that imports an export of this one: CloudFormation refuses to delete the exporting stack."""
    for output in cloudformation.describe_stacks(StackName=stack.name)["Stacks"][0].get("Outputs", ()):
        if "ExportName" in output:
            try:
                found = cloudformation.list_imports(ExportName=output["ExportName"])["Imports"]
            except ClientError as error:
                if "is not imported" not in str(error):
                    raise
                continue
            yield from (f"  {name} (by the export {output['ExportName']})" for name in found)


def leftover(cloudformation: Any, stack: Deployed) -> Iterator[str]:
    """A sentence for each resource that outlives its stack."""
    present = list(_resources(cloudformation, stack.name))
    if not present:
        return  # a stack in review has no template either
    template: Mapping[str, Any] = cloudformation.get_template(StackName=stack.name)["TemplateBody"]
    why = "it is empty, because no deployment of its stack ever succeeded" if stack.unmade else "it holds data that outlives its stage"
    for each in present:
        if each["ResourceType"] == VERSION:
            continue  # it is deleted with its function
        if template["Resources"].get(each["LogicalResourceId"], {}).get("DeletionPolicy") in RETAINED:
            yield f"Left {each['ResourceType']} {each['PhysicalResourceId']}: {why}."


def _resources(cloudformation: Any, stack: str) -> Iterator[dict[str, Any]]:
    """The resources of the stack that exist: a rollback or a failed deletion may have deleted some."""
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack):
        yield from (each for each in page["StackResourceSummaries"] if each["ResourceStatus"] != "DELETE_COMPLETE")


def _delete(stage: Stage, stack: Deployed) -> None:
    """Delete the stack, and before it the content of its buckets, unless the stage is protected.

    Executors and the archive may write to a bucket that was just emptied, and then its deletion fails. CloudFormation deletes them before
    the bucket, which they refer to, so the next try finds it empty.
    """
    cloudformation, tries = stage.client("cloudformation"), 1 if stage.settings.protected else TRIES
    for left in reversed(range(tries)):
        if not stage.settings.protected:
            for bucket in buckets(cloudformation, stack.name):
                print(f"Emptied the bucket {bucket}: {empty(stage.client('s3'), bucket)} objects.")
        cloudformation.delete_stack(StackName=stack.name)
        try:
            cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack.name, WaiterConfig=WAIT)
            return
        except WaiterError as error:
            now = stage.state(stack.name) or stack
            if not left or now.status != "DELETE_FAILED" or not buckets(cloudformation, stack.name):
                raise Trouble(f"The stack {now.name} is {now.status}{now.because}. {remedy(now, stage.name)}") from error


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
