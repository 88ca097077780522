"""A cluster of containers and its task definitions, for tests on a local AWS."""

import secrets
from typing import Any


def cluster(ecs: Any) -> str:
    """Create a cluster with a name of its own. Returns its ARN."""
    return str(ecs.create_cluster(clusterName=f"tests-{secrets.token_hex(4)}")["cluster"]["clusterArn"])


def task_definition(ecs: Any, name: str = "report", variables: dict[str, str] | None = None, **fields: Any) -> str:
    """Register a task definition of its own with one container. Returns its ARN.

    `variables`: the environment of the container, which says what its tasks do (`local/containers.py`). `fields`: of the request.
    """
    environment = [{"name": each, "value": value} for each, value in (variables or {}).items()]
    containers = [{"name": name, "image": "example", "environment": environment}]
    made = ecs.register_task_definition(family=f"{name}-{secrets.token_hex(4)}", containerDefinitions=containers, **fields)
    return str(made["taskDefinition"]["taskDefinitionArn"])
