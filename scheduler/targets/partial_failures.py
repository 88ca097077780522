"""The operations of AWS whose answer may list failures although the call succeeded, and the field of the answer that lists or counts them.

Each operation has a page, `source`, which says so.
"""

from collections.abc import Mapping
from typing import Any

_DOCS = "https://docs.aws.amazon.com/"
_PAGES = {  # of the operations of a service
    "autoscaling": "autoscaling/ec2/APIReference/API_{}.html",
    "batch": "batch/latest/APIReference/API_{}.html",
    "cloudwatch": "AmazonCloudWatch/latest/APIReference/API_{}.html",
    "dynamodb": "amazondynamodb/latest/APIReference/API_{}.html",
    "ec2": "AWSEC2/latest/APIReference/API_{}.html",
    "ecr": "AmazonECR/latest/APIReference/API_{}.html",
    "ecs": "AmazonECS/latest/APIReference/API_{}.html",
    "events": "eventbridge/latest/APIReference/API_{}.html",
    "firehose": "firehose/latest/APIReference/API_{}.html",
    "glue": "glue/latest/webapi/API_{}.html",
    "kinesis": "kinesis/latest/APIReference/API_{}.html",
    "lambda": "lambda/latest/api/API_{}.html",
    "logs": "AmazonCloudWatchLogs/latest/APIReference/API_{}.html",
    "redshift": "redshift/latest/APIReference/API_{}.html",
    "resource-groups": "ARG/latest/APIReference/API_{}.html",
    "resourcegroupstaggingapi": "resourcegroupstagging/latest/APIReference/API_{}.html",
    "s3": "AmazonS3/latest/API/API_{}.html",
    "securityhub": "securityhub/1.0/APIReference/API_{}.html",
    "sns": "sns/latest/api/API_{}.html",
    "sqs": "AWSSimpleQueueService/latest/APIReference/API_{}.html",
    "ssm": "systems-manager/latest/APIReference/API_{}.html",
    "stepfunctions": "step-functions/latest/apireference/API_{}.html",
}
FIELDS: Mapping[str, Mapping[str, str]] = {  # the field of the answer, by operation
    "autoscaling": {
        "BatchDeleteScheduledAction": "FailedScheduledActions",
        "BatchPutScheduledUpdateGroupAction": "FailedScheduledUpdateGroupActions",
    },
    "batch": {"CancelJobs": "errors", "TerminateJobs": "errors"},
    "cloudwatch": {"DeleteInsightRules": "Failures", "DisableInsightRules": "Failures", "EnableInsightRules": "Failures"},
    "dynamodb": {"BatchGetItem": "UnprocessedKeys", "BatchWriteItem": "UnprocessedItems"},
    "ec2": {
        "CancelSpotFleetRequests": "UnsuccessfulFleetRequests",
        "CreateFleet": "Errors",
        "CreateFlowLogs": "Unsuccessful",
        "DeleteFleets": "UnsuccessfulFleetDeletions",
        "DeleteFlowLogs": "Unsuccessful",
        "DeleteLaunchTemplateVersions": "UnsuccessfullyDeletedLaunchTemplateVersions",
        "DeleteVpcEndpoints": "Unsuccessful",
        "ModifyInstanceCreditSpecification": "UnsuccessfulInstanceCreditSpecifications",
    },
    "ecr": {"BatchDeleteImage": "failures"},
    "ecs": {
        "DeleteTaskDefinitions": "failures",
        "RunTask": "failures",
        "StartTask": "failures",
        "UpdateContainerInstancesState": "failures",
        "UpdateTaskProtection": "failures",
    },
    "events": {"PutEvents": "FailedEntryCount", "PutTargets": "FailedEntryCount", "RemoveTargets": "FailedEntryCount"},
    "firehose": {"PutRecordBatch": "FailedPutCount"},
    "glue": {
        "BatchCreatePartition": "Errors",
        "BatchDeleteConnection": "Errors",
        "BatchDeletePartition": "Errors",
        "BatchDeleteTable": "Errors",
        "BatchDeleteTableVersion": "Errors",
        "BatchStopJobRun": "Errors",
        "BatchUpdatePartition": "Errors",
    },
    "kinesis": {"PutRecords": "FailedRecordCount"},
    "lambda": {"Invoke": "FunctionError"},
    "logs": {"PutLogEvents": "rejectedLogEventsInfo"},
    "redshift": {"BatchDeleteClusterSnapshots": "Errors", "BatchModifyClusterSnapshots": "Errors"},
    "resource-groups": {"GroupResources": "Failed", "UngroupResources": "Failed"},
    "resourcegroupstaggingapi": {"TagResources": "FailedResourcesMap", "UntagResources": "FailedResourcesMap"},
    "s3": {"DeleteObjects": "Errors"},
    "securityhub": {"BatchImportFindings": "FailedCount", "BatchUpdateFindings": "UnprocessedFindings"},
    "sns": {"PublishBatch": "Failed"},
    "sqs": {"ChangeMessageVisibilityBatch": "Failed", "DeleteMessageBatch": "Failed", "SendMessageBatch": "Failed"},
    "ssm": {"CreateAssociationBatch": "Failed", "DeleteParameters": "InvalidParameters"},
    "stepfunctions": {"StartSyncExecution": "error"},
}


def found(service: str, operation: str, answer: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The field of an answer that reports failures, and its value; None: nothing has failed."""
    name = FIELDS.get(service, {}).get(operation)
    return None if name is None or not answer.get(name) else (name, answer[name])


def source(service: str, operation: str) -> str:
    return _DOCS + _PAGES[service].format(operation)
