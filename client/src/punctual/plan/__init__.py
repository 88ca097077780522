"""Schedules as code: files of tasks, compared with the API and applied to it.

document = read(["tasks.yaml"])
todo = plan(client, document, prune=True)
result = apply(client, todo)
"""

from punctual.plan.changes import Action, Change, Failed, Plan, Result, apply, plan, tasks
from punctual.plan.export import Entry, entries, to_json, to_yaml
from punctual.plan.read import BadFile, Document, Item, Problem, parse, read
from punctual.records import FieldChange

__all__ = [
    "Action",
    "BadFile",
    "Change",
    "Document",
    "Entry",
    "Failed",
    "FieldChange",
    "Item",
    "Plan",
    "Problem",
    "Result",
    "apply",
    "entries",
    "parse",
    "plan",
    "read",
    "tasks",
    "to_json",
    "to_yaml",
]
