"""A cluster of containers and its task definitions, for tests on a local stack."""

import secrets
from typing import Any


def cluster(ecs: Any) -> str:
    """Create a cluster with a name of its own. Returns its ARN."""
    return str(ecs.create_cluster(clusterName=f"tests-{secrets.token_hex(4)}")["cluster"]["clusterArn"])


def task_definition(ecs: Any, name: str = "report", **variables: str) -> str:
    """Register a task definition with one container, whose environment says what its tasks do (`local/containers.py`). Returns its ARN."""
    container = {"name": name, "image": "example", "environment": [{"name": each, "value": value} for each, value in variables.items()]}
    made = ecs.register_task_definition(family=f"{name}-{secrets.token_hex(4)}", containerDefinitions=[container])
    return str(made["taskDefinition"]["taskDefinitionArn"])
