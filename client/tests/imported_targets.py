"""Targets of EventBridge Scheduler, and what a task runs instead."""

from __future__ import annotations

import json
from typing import Any

ARN = "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/s"
PLACE = "eu-central-1:123456789012"
LAMBDA = f"arn:aws:lambda:{PLACE}:function:f"
QUEUE = f"arn:aws:sqs:{PLACE}:q"
URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/q"
TOPIC = f"arn:aws:sns:{PLACE}:t"
MACHINE = f"arn:aws:states:{PLACE}:stateMachine:m"
BUS = f"arn:aws:events:{PLACE}:event-bus/b"
CLUSTER = f"arn:aws:ecs:{PLACE}:cluster/jobs"
REPORT = f"arn:aws:ecs:{PLACE}:task-definition/report"
STREAM = f"arn:aws:kinesis:{PLACE}:stream/s"
PIPELINE = f"arn:aws:sagemaker:{PLACE}:pipeline/p"
TEMPLATE = f"arn:aws:inspector:{PLACE}:target/0-a/template/0-b"
AT = "{{nominal_at:date}}T{{nominal_at:time}}Z"
TIME = "<aws.scheduler.scheduled-time>"


def universal(operation: str, **parameters: Any) -> dict[str, Any]:
    return {"Arn": f"arn:aws:scheduler:::aws-sdk:{operation}", "Input": json.dumps(parameters)}


def call(service: str, action: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "aws", "payload": {"service": service, "action": action, "parameters": parameters}}


def ecs(parameters: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"Arn": CLUSTER, "EcsParameters": {"TaskDefinitionArn": REPORT, **parameters}, **fields}


def container(**fields: Any) -> dict[str, Any]:
    return {"type": "ecs", "payload": {"cluster": CLUSTER, "task_definition": REPORT, **fields, "wait": False}}


TARGETS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # Templated targets.
    ({"Arn": LAMBDA, "Input": '{"a": 1}'}, {"type": "lambda", "payload": {"function": LAMBDA, "event": {"a": 1}, "mode": "async"}}),
    (
        {"Arn": QUEUE, "Input": "text", "SqsParameters": {"MessageGroupId": "g"}},
        {"type": "sqs", "payload": {"queue": QUEUE, "body": "text", "group": "g"}},
    ),
    ({"Arn": TOPIC, "Input": "[ 1.50]"}, {"type": "sns", "payload": {"topic": TOPIC, "message": "[ 1.50]"}}),
    ({"Arn": MACHINE, "Input": "{}"}, {"type": "stepfunctions", "payload": {"state_machine": MACHINE, "input": {}}}),
    ({"Arn": f"{MACHINE}:live", "Input": "[1]"}, call("stepfunctions", "StartExecution", stateMachineArn=f"{MACHINE}:live", input="[1]")),
    (
        {"Arn": BUS, "EventBridgeParameters": {"Source": "s", "DetailType": "d"}},
        {"type": "eventbridge", "payload": {"bus": BUS, "source": "s", "detail_type": "d", "detail": {}}},
    ),
    (
        {"Arn": STREAM, "KinesisParameters": {"PartitionKey": "p"}, "Input": '{"a": "ä"}'},
        call("kinesis", "PutRecord", StreamARN=STREAM, PartitionKey="p", Data="eyJhIjogIsOkIn0="),
    ),
    (
        {"Arn": f"arn:aws:firehose:{PLACE}:deliverystream/d", "Input": "text"},
        call("firehose", "PutRecord", DeliveryStreamName="d", Record={"Data": "dGV4dA=="}),
    ),
    (
        {"Arn": PIPELINE, "SageMakerPipelineParameters": {"PipelineParameterList": [{"Name": "day", "Value": "1"}]}},
        call("sagemaker", "StartPipelineExecution", PipelineName=PIPELINE, PipelineParameters=[{"Name": "day", "Value": "1"}]),
    ),
    ({"Arn": PIPELINE}, call("sagemaker", "StartPipelineExecution", PipelineName=PIPELINE)),
    ({"Arn": TEMPLATE}, call("inspector", "StartAssessmentRun", assessmentTemplateArn=TEMPLATE)),
    (
        {
            "Arn": f"arn:aws:codebuild:{PLACE}:project/b",
            "Input": json.dumps({"environmentVariablesOverride": [{"name": "AT", "value": TIME}]}),
        },
        call("codebuild", "StartBuild", environmentVariablesOverride=[{"name": "AT", "value": AT}], projectName="b"),
    ),
    ({"Arn": f"arn:aws:codepipeline:{PLACE}:p"}, call("codepipeline", "StartPipelineExecution", name="p")),
    (ecs({}), container()),
    (
        ecs(
            {
                "CapacityProviderStrategy": [{"capacityProvider": "FARGATE_SPOT", "weight": 1}],
                "NetworkConfiguration": {
                    "awsvpcConfiguration": {"Subnets": ["subnet-1"], "SecurityGroups": ["sg-1"], "AssignPublicIp": "DISABLED"}
                },
                "PlatformVersion": "LATEST",
                "PropagateTags": "TASK_DEFINITION",
                "EnableECSManagedTags": True,
                "EnableExecuteCommand": False,
                "PlacementConstraints": [],
                "Group": "g",
                "TaskCount": 1,
                "Tags": [{"Key": "team", "Value": "data"}],
            },
            Input=json.dumps(
                {
                    "cpu": "512",
                    "containerOverrides": [
                        {
                            "name": "report",
                            "command": ["python", "r.py"],
                            "environment": [{"name": "AT", "value": TIME}],
                            "memoryReservation": 256,
                        }
                    ],
                }
            ),
        ),
        container(
            capacity_providers={"FARGATE_SPOT": 1},
            platform_version="LATEST",
            subnets=["subnet-1"],
            security_groups=["sg-1"],
            public_ip=False,
            containers=[{"name": "report", "command": ["python", "r.py"], "environment": {"AT": AT}, "memory_reservation": 256}],
            cpu="512",
            tags={"team": "data"},
            group="g",
            propagate_tags=True,
        ),
    ),
    (
        ecs({"TaskCount": 2, "PlacementConstraints": [{"type": "distinctInstance"}]}),
        call("ecs", "RunTask", cluster=CLUSTER, taskDefinition=REPORT, count=2, placementConstraints=[{"type": "distinctInstance"}]),
    ),
    # Universal targets.
    (universal("ec2:stopInstances", instanceIds=["i-1"]), call("ec2", "StopInstances", InstanceIds=["i-1"])),
    (universal("cloudwatch:disableAlarmActions", alarmNames=["a"]), call("cloudwatch", "DisableAlarmActions", AlarmNames=["a"])),
    (universal("rds:stopDBCluster", DbClusterIdentifier="c"), call("rds", "StopDBCluster", DBClusterIdentifier="c")),
    (
        universal("dynamodb:putItem", TableName="t", Item={"id": {"S": TIME}, "raw": {"B": "abc"}}),
        call("dynamodb", "PutItem", TableName="t", Item={"id": {"S": AT}, "raw": {"B": "YWJj"}}),
    ),
    (
        universal("cloudwatchlogs:createExportTask", LogGroupName="g", From=0, To=1, Destination="b"),
        call("logs", "CreateExportTask", logGroupName="g", **{"from": 0}, to=1, destination="b"),
    ),
    (
        {"Arn": "arn:aws:scheduler:::aws-sdk:guardduty:createDetector", "Input": '{"Enable": true}'},
        call("guardduty", "CreateDetector", Enable=True),
    ),
    (
        universal("lambda:invoke", FunctionName="f:live", InvocationType="Event", Payload=json.dumps({"at": TIME})),
        {"type": "lambda", "payload": {"function": f"{LAMBDA}:live", "event": {"at": AT}, "mode": "async"}},
    ),
    (universal("lambda:invoke", FunctionName=LAMBDA), {"type": "lambda", "payload": {"function": LAMBDA, "event": {}, "mode": "sync"}}),
    (
        universal("lambda:invoke", FunctionName="f", InvocationType="Event", Payload="[1]"),
        call("lambda", "Invoke", FunctionName="f", InvocationType="Event", Payload="WzFd"),
    ),
    (universal("sqs:sendMessage", QueueUrl=URL, MessageBody=TIME), {"type": "sqs", "payload": {"queue": QUEUE, "body": AT}}),
    (
        universal("sqs:sendMessage", QueueUrl=URL, MessageBody="m", DelaySeconds=5),
        call("sqs", "SendMessage", QueueUrl=URL, MessageBody="m", DelaySeconds=5),
    ),
    (
        universal("sqs:sendMessage", QueueUrl=f"{URL}.fifo", MessageBody="m"),
        call("sqs", "SendMessage", QueueUrl=f"{URL}.fifo", MessageBody="m"),
    ),
    (universal("sns:publish", TopicArn=f"{TOPIC}.fifo", Message="m"), call("sns", "Publish", TopicArn=f"{TOPIC}.fifo", Message="m")),
    (
        universal("sns:publish", TopicArn=TOPIC, Message="m", Subject="s"),
        {"type": "sns", "payload": {"topic": TOPIC, "message": "m", "subject": "s"}},
    ),
    (universal("sns:publish", PhoneNumber="+15550100", Message="m"), call("sns", "Publish", PhoneNumber="+15550100", Message="m")),
    (
        universal("sfn:startExecution", StateMachineArn=MACHINE, Input='{"a": "{{x}}"}'),
        {"type": "stepfunctions", "payload": {"state_machine": MACHINE, "input": {"a": "{{{{x}}"}}},
    ),
    (
        universal("sfn:startExecution", StateMachineArn=MACHINE, Name="<aws.scheduler.execution-id>"),
        call("stepfunctions", "StartExecution", stateMachineArn=MACHINE, name="{{job.id}}"),
    ),
    (
        universal("eventbridge:putEvents", Entries=[{"Source": "s", "DetailType": "d", "Detail": '{"a": 1}', "EventBusName": "b"}]),
        {"type": "eventbridge", "payload": {"bus": BUS, "source": "s", "detail_type": "d", "detail": {"a": 1}}},
    ),
    (
        universal("eventbridge:putEvents", Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}", "Resources": ["r"]}]),
        call("events", "PutEvents", Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}", "Resources": ["r"]}]),
    ),
    (
        universal(
            "ecs:runTask",
            Cluster="jobs",
            TaskDefinition="report",
            LaunchType="FARGATE",
            NetworkConfiguration={"AwsvpcConfiguration": {"Subnets": ["subnet-1"], "AssignPublicIp": "ENABLED"}},
            Overrides={"ContainerOverrides": [{"Name": "report", "Command": ["plan"]}]},
        ),
        container(launch_type="FARGATE", subnets=["subnet-1"], public_ip=True, containers=[{"name": "report", "command": ["plan"]}]),
    ),
    (
        universal("ecs:runTask", TaskDefinition=REPORT, Overrides={"TaskRoleArn": "arn:aws:iam::123456789012:role/r"}),
        call("ecs", "RunTask", taskDefinition=REPORT, overrides={"taskRoleArn": "arn:aws:iam::123456789012:role/r"}),
    ),
    (
        universal("ecs:runTask", TaskDefinition=REPORT, Overrides={"ContainerOverrides": [{"Command": ["plan"]}]}),
        call("ecs", "RunTask", taskDefinition=REPORT, overrides={"containerOverrides": [{"command": ["plan"]}]}),
    ),
]
REFUSED: list[tuple[dict[str, Any], str]] = [
    (universal("iam:deleteAccessKey", AccessKeyId="k"), "calls iam:deleteAccessKey, and no job may change identities"),
    (universal("ec3:stopInstances"), "calls a service that this version of botocore does not know: ec3"),
    (universal("cognito-idp:adminDisableUser"), "does not know: cognito-idp"),
    (universal("ec2:stopInstance"), "calls an operation that ec2 does not have in this version of botocore: stopInstance"),
    (
        universal("ec2:stopInstances", InstanceId=["i"]),
        "StopInstances.InstanceId in its input, which is no parameter; did you mean InstanceIds?",
    ),
    (universal("ec2:stopInstances"), "has no StopInstances.InstanceIds in its input, which is required"),
    (universal("ec2:stopInstances", InstanceIds="i"), "StopInstances.InstanceIds in its input, which must be a list"),
    (universal("ec2:stopInstances", InstanceIds=["i"], instanceIds=["j"]), "has StopInstances.InstanceIds twice"),
    (universal("dynamodb:deleteTable", TableName=5), "DeleteTable.TableName in its input, which must be a text"),
    (universal("ecs:updateService", service="s", desiredCount=True), "desiredCount in its input, which must be a whole number"),
    (universal("s3:putObject", Bucket="b", Key="k", Body="x"), "PutObject.Body in its input, a stream, which no job can send"),
    (universal("bedrockruntime:converseStream", modelId="m"), "whose answer is a stream of events"),
    ({"Arn": "arn:aws:scheduler:::aws-sdk:ec2:stopInstances", "Input": "text"}, "has StopInstances in its input, which must be an object"),
    (universal("ec2:stopInstances", InstanceIds=["<aws.scheduler.attempt-number>"]), "attempt-number> in the input of a call"),
    (
        {"Arn": STREAM, "KinesisParameters": {"PartitionKey": "p"}, "Input": TIME},
        "in what is sent as bytes, where no placeholder is replaced",
    ),
    ({"Arn": STREAM, "KinesisParameters": {"PartitionKey": "p"}}, "in what is sent as bytes, where no placeholder is replaced"),
    (ecs({}, Input="text"), "has RunTask.overrides in its input, which must be an object"),
    (
        {"Arn": f"arn:aws:codebuild:{PLACE}:project/b", "Input": '{"branch": "main"}'},
        "StartBuild.branch in its input, which is no parameter",
    ),
    ({"Arn": f"arn:aws:batch:{PLACE}:job-queue/q"}, "has a target without a type here"),
]
