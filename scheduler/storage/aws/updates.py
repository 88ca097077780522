"""A conditional write of one item, in DynamoDB's two languages: expressions for one write, PartiQL for many in a call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.storage.aws.keys import Term, Value


@dataclass(frozen=True, slots=True)
class Update:
    """Set and remove attributes of the item at `key` if all `terms` are true; otherwise DynamoDB returns the stored item.

    A path instead of a name sets a value within a map.
    """

    key: Value
    sets: Mapping[str, Any] | Mapping[tuple[str, ...], Any]
    removes: Sequence[str]
    terms: Sequence[Term]
    returning: bool = False  # DynamoDB returns the whole new item


def address(key: Mapping[str, Any]) -> tuple[str, str]:
    return key["pk"]["S"], key["sk"]["S"]


def as_call(update: Update, table: str) -> dict[str, Any]:
    """The arguments of UpdateItem. Names and values are numbered, as any name may be a reserved word."""
    names: dict[str, str] = {}
    values: dict[str, Any] = {}

    def name(part: str) -> str:
        return names.setdefault(part, f"#{len(names)}")

    def value(content: Any) -> str:
        values[f":{len(values)}"] = content
        return f":{len(values) - 1}"

    clauses = []
    if update.sets:
        clauses.append("SET " + ", ".join(f"{'.'.join(map(name, _path(key)))} = {value(content)}" for key, content in update.sets.items()))
    if update.removes:
        clauses.append("REMOVE " + ", ".join(map(name, update.removes)))
    conditions = []
    for term in update.terms:
        path = ".".join(map(name, term.path))
        if term.value is not None:
            conditions.append(f"{path} {term.test} {value(term.value)}")
        else:
            conditions.append(f"attribute_{'exists' if term.test == 'exists' else 'not_exists'}({path})")
    condition = {"ConditionExpression": " AND ".join(conditions)} if conditions else {}
    return condition | {
        "TableName": table,
        "Key": update.key,
        "UpdateExpression": " ".join(clauses),
        "ExpressionAttributeNames": {alias: part for part, alias in names.items()},
        "ExpressionAttributeValues": values,
        "ReturnValues": "ALL_NEW" if update.returning else "NONE",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def as_statement(update: Update, table: str) -> dict[str, Any]:
    """One statement of BatchExecuteStatement."""
    parameters: list[Any] = list(update.sets.values())
    words = [f'UPDATE "{table}"']
    words += [f"SET {_quoted(_path(name))}=?" for name in update.sets]
    words += [f'REMOVE "{name}"' for name in update.removes]
    words.append(_where(update.key, update.terms, parameters))
    if update.returning:
        words.append("RETURNING ALL NEW *")
    return {"Statement": " ".join(words), "Parameters": parameters, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def as_delete(key: Value, terms: Sequence[Term], table: str) -> dict[str, Any]:
    """One statement of BatchExecuteStatement that deletes an item if all terms are true. For a missing item it succeeds."""
    parameters: list[Any] = []
    return {"Statement": f'DELETE FROM "{table}" {_where(key, terms, parameters)}', "Parameters": parameters}


def as_put(item: Mapping[str, Any], condition: Mapping[str, Any], table: str) -> dict[str, Any]:
    """The action of a transaction that stores an item if the condition (arguments of PutItem) is true."""
    return {"Put": {"TableName": table, "Item": item, **condition}}


def as_update(update: Update, table: str) -> dict[str, Any]:
    """The action of a transaction that changes an item."""
    return {"Update": {name: value for name, value in as_call(update, table).items() if name != "ReturnValues"}}


def as_insert(item: Mapping[str, Any], table: str) -> dict[str, Any]:
    """One statement of BatchExecuteStatement that stores a new item; an INSERT never overwrites."""
    fields = ",".join(f"'{name}':?" for name in item)
    return {"Statement": f'INSERT INTO "{table}" VALUE {{{fields}}}', "Parameters": list(item.values())}


def _where(key: Value, terms: Sequence[Term], parameters: list[Any]) -> str:
    """The key and the condition in PartiQL; their values are appended to the parameters."""
    words = ['WHERE "pk"=? AND "sk"=?']
    parameters += [key["pk"], key["sk"]]
    for term in terms:
        path = _quoted(term.path)
        if term.value is not None:
            words.append(f"AND {path}{term.test}?")
            parameters.append(term.value)
        else:
            words.append(f"AND {path} IS {'NOT ' if term.test == 'exists' else ''}MISSING")
    return " ".join(words)


def _path(name: str | tuple[str, ...]) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else name


def _quoted(path: Sequence[str]) -> str:
    return ".".join(f'"{part}"' for part in path)
