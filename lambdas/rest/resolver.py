"""The HTTP resolver: Powertools' own, with our envelope, our reading of bodies, and an OpenAPI document that matches both."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.models import HTTPBearer, OpenAPI
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import ValidationError

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest import access, document, door, envelope, etags, idempotency, models, parameters, request_body
from lambdas.rest.access import Route
from lambdas.rest.endpoint import Endpoint
from lambdas.rest.paths import BASE
from lambdas.rest.resolution import Stage, payload_of
from lambdas.rest.shapes import ErrorAnswer, GatewayAnswer
from scheduler.accounts.access import Caller, Need, need_of_foreign
from scheduler.model import ids, own_keys
from scheduler.model.errors import Invalid, NotFound, SchedulerError
from scheduler.model.job import JobKey, TaskKey
from scheduler.targets import registry

REPORTED: dict[str, Any] = {"security": [{"callback": []}]}  # a route that needs an attempt's token
KEYED: dict[str, Any] = {"x-keyed": True}  # marks a route that takes an idempotency key; the document shows the header instead
KEY_PARAMETER = {
    "name": idempotency.HEADER,
    "in": "header",
    "description": "Makes a repeated request safe: for 24 hours the same key and body return the original answer. Another body gets 409.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
KEYED_PUT: dict[str, Any] = {"x-keyed": "put"}  # marks a put that takes one
PUT_KEY_PARAMETER = {
    **KEY_PARAMETER,
    "description": "Makes a repeated request safe: with the same key and body it returns the job that it made or changed, as it is now.",
}
CONDITIONAL: dict[str, Any] = {"x-conditional": True}  # marks a route that takes If-Match
MATCH_PARAMETER = {
    "name": etags.IF_MATCH,
    "in": "header",
    "description": "The `ETag` of the answer that you read. If the object was changed since, the request is refused with 412.",
    "schema": {"type": "string", "minLength": 1},
}
OWNER_PARAMETER = {"name": "owner", "in": "query", "schema": {"type": "string", "pattern": f"^{access.OWNER_ID}$"}}
BY_KEY = re.compile(rf"{BASE}/(jobs|tasks)/by-key/")
REFERENCE = "#/components/schemas/{model}"
SAFE = {  # headers of every answer
    "Strict-Transport-Security": "max-age=63072000; includeSubDomains",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",  # of the docs page, which has scripts
}
NOT_OURS = ("HTTPValidationError", "ValidationError", "ResponseValidationError")  # shapes of Powertools' own answers


def stage(owner: str) -> Stage:
    """The targets and resources that requests may name in the stage that this function serves; see `Stage.of`."""
    return Stage.of(_runtime.api(), owner)


def resolved(body: models.Request, owner: str) -> None:
    """Check what a valid request names. Raises Invalid, as for its shape."""
    try:
        body.resolve(stage(owner))
    except ValidationError as error:
        raise envelope.body_violations(error) from None


class Router(APIGatewayHttpRouter):
    """The routes of a module, and what they read of the request that they answer."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def event(self) -> access.Event:
        """The request as API Gateway sent it."""
        return self.current_event.raw_event

    @property
    def caller(self) -> Caller:
        return access.caller_of(self.event)

    @property
    def owner(self) -> str:
        """The id of the owner whose objects the request is about."""
        return access.owner_of(self.event)

    @property
    def bearer(self) -> str | None:
        """The bearer token, not yet verified; None without one."""
        return access.bearer(self.event)

    def job(self, job_id: str) -> JobKey:
        """The key of the caller's job with that id, never of another user's. Raises NotFound for a text that cannot be an id."""
        if not ids.is_job_id(job_id):
            raise NotFound("there is no such job")
        return JobKey(self.owner, job_id)

    def task(self, task_id: str) -> TaskKey:
        """The key of the caller's task with that id, as `job`."""
        if not ids.is_job_id(task_id):
            raise NotFound("there is no such task")
        return TaskKey(self.owner, task_id)


class Resolver(APIGatewayHttpResolver):
    """Routes requests. Every answer, an error too, is in the envelope. Only the paths in `large` take large bodies."""

    def __init__(self, title: str, description: str, large: Collection[str] = ()) -> None:
        super().__init__()
        self._large = large
        self.endpoints: list[Endpoint] = []
        self.configure_openapi(
            title=title,
            version="1",
            description=description,
            security_schemes={
                "bearer": HTTPBearer(bearerFormat="JWT", description="The `token` of `POST /api/v1/auth/login`."),
                "callback": HTTPBearer(description="The token that the target received with the job. It is valid for one attempt."),
            },
            security=[{"bearer": []}],
        )
        self.exception_handler(SchedulerError)(self._refused)
        self.exception_handler(NotFoundError)(lambda error: self._refused(self._no_route()))
        self.exception_handler(Exception)(self._refused)

    def route(self, rule: str, method: Any, *options: Any, **more: Any) -> Callable[[Route], Route]:
        """Powertools' own. It also adds the rule of the route, and Powertools calls the function by `_checked`."""
        register = super().route(rule, method, *options, **more)
        (verb,) = (method,) if isinstance(method, str) else method

        def registered(function: Route) -> Route:
            endpoint = Endpoint(verb, rule, function)
            access.register(verb, rule, function)
            self.endpoints.append(endpoint)
            register(self._checked(endpoint))
            return function

        return registered

    def _checked(self, endpoint: Endpoint) -> Callable[..., Any]:
        """The function of a route for Powertools, which passes the values of the path. It validates the request itself.

        It checks the caller before the request: a stranger must not learn what a valid request would be.
        """

        @wraps(endpoint.function)
        def checked(**found: str) -> Any:
            event = self.current_event.raw_event
            rule = access.admit(event, endpoint.method, endpoint.path, found)
            arguments = endpoint.arguments(event, found, request_body.LARGE if endpoint.path in self._large else request_body.LIMIT)
            if rule.need is not Need.OPEN:
                parameters.known(event, {"owner", *endpoint.queries})
            for each in arguments.values():
                if isinstance(each, models.Request):
                    resolved(each, access.owner_of(event) if rule.owned else "")  # before the request counts against a quota
            body = request_body.read(event) if rule.action is not None and endpoint.body else {}
            return access.passed(event, rule, arguments, body, lambda: endpoint.function(**arguments))

        return checked

    def resolve(self, event: Any, context: Any) -> dict[str, Any]:
        """The answer, with the headers that restrict what a browser does with it."""
        answered = super().resolve(door.by_clear_name(door.by_credential(event)), context)
        page = str(answered["headers"].get("Content-Type", "")).startswith("text/html")
        answered["headers"] |= SAFE | ({} if page else {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"})
        return answered

    def get_openapi_schema(self, **options: Any) -> OpenAPI:
        """The document as a model, for the page that Powertools makes of it."""
        return OpenAPI.model_validate(self.openapi_document(**options))

    def get_openapi_json_schema(self, **options: Any) -> str:
        return json.dumps(self.openapi_document(**options), ensure_ascii=False, separators=(",", ":"))

    def openapi_document(self, **options: Any) -> dict[str, Any]:
        """The OpenAPI document of all routes, under their promised names too."""
        derived: dict[str, Any] = super().get_openapi_schema(**options).model_dump(mode="json", by_alias=True, exclude_none=True)
        endpoints = {(each.method.lower(), each.template): each for each in self.endpoints}
        for name, path in derived["paths"].items():
            for method, operation in path.items():
                operation["operationId"] = document.operation_id(endpoints[method, name].function.__name__)
                _ruled(operation, method, name)
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _one_or_several(parameter["schema"])
                    if parameter.get("required") is False:  # the default
                        del parameter["required"]
                if keyed := operation.pop("x-keyed", False):
                    operation.setdefault("parameters", []).append(PUT_KEY_PARAMETER if keyed == "put" else KEY_PARAMETER)
                if operation.pop("x-conditional", False):
                    operation.setdefault("parameters", []).append(MATCH_PARAMETER)
                if "requestBody" in operation:
                    # A patch always has a body. Another request may have none if none of its fields is needed.
                    operation["requestBody"]["required"] = method == "patch" or not endpoints[method, name].accepts({})
        derived["paths"] = _with_promised_names(derived["paths"])
        schemas = {name: schema for name, schema in derived["components"]["schemas"].items() if name not in NOT_OURS}
        derived["components"]["schemas"] = _with_payloads(schemas)
        return document.published(derived, types=registry.names(), choices=_works())

    def _refused(self, error: Exception) -> Response[str]:
        request = str(self.current_event.raw_event["requestContext"]["requestId"])  # the access log of API Gateway has it too
        refusal = envelope.refusal(error if isinstance(error, SchedulerError) else SchedulerError(), request)
        if refusal.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.exception("unexpected error")
        elif refusal.status_code > HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.warning("request refused with status 503: %s", error)
        return refusal

    def _no_route(self) -> SchedulerError:
        path = self.current_event.path
        taken = {each.method for each in self.endpoints if each.fits(path)}
        if (name := door.clear_name_of_removed(self.current_event.http_method, path)) is not None:
            return NotFound(f"there is no such path: use {name}")
        allowed = sorted(taken | door.methods(path))
        if allowed:
            return envelope.MethodNotAllowed(allowed)
        if BY_KEY.match(path):  # a key with a character that no route accepts
            return Invalid.field("key", own_keys.RULE)
        return NotFound("there is no such path")


def _one_or_several(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter that takes several values: it takes one too."""
    return {"anyOf": [schema["items"], schema]} if schema.get("type") == "array" else schema


def _with_promised_names(paths: dict[str, Any]) -> dict[str, Any]:
    """The paths with the operations under their promised names too, where they are marked as deprecated."""
    for name, clear in door.PROMISED.items():
        (method, path), (verb, clear_path) = door.in_words(name), door.in_words(clear)
        operation = paths[clear_path][verb.lower()]
        described = " ".join(filter(None, [operation.get("description"), f"The clear name of this route is `{clear}`."]))
        deprecated = {"operationId": operation["operationId"] + document.DEPRECATED, "deprecated": True, "description": described}
        paths.setdefault(path, {})[method.lower()] = operation | deprecated
    return paths


def _ruled(operation: dict[str, Any], method: str, path: str) -> None:
    """Add to an operation what the rule of its route implies: the token, the parameter `owner`, the statuses of refusals."""
    rule = access.RULES[f"{method.upper()} {path.removeprefix(BASE).replace('{', '<').replace('}', '>')}"]
    if rule.need is Need.OPEN:
        operation.setdefault("security", [])
    if rule.owned:
        role = "operators" if need_of_foreign(rule.need) is Need.OVERSEE else "administrators"
        others = f"; of another owner, for {role}" if rule.foreign else ""
        operation.setdefault("parameters", []).append(OWNER_PARAMETER | {"description": f"the id of a team of yours{others}"})
    codes = [403] if rule.need is not Need.OPEN else []
    codes += [429] if rule.creates or path in (f"{BASE}/auth/login", f"{BASE}/jobs/batch") else []
    codes += [400] if rule.need is not Need.OPEN else []  # a parameter `owner`
    codes += [503] if rule.action else []
    for code in codes:
        operation["responses"].setdefault(str(code), operation["responses"]["500"] | {"description": HTTPStatus(code).phrase})
    if rule.need is not Need.OPEN:
        shapes = [{"$ref": f"#/components/schemas/{shape.__name__}"} for shape in (ErrorAnswer, GatewayAnswer)]
        unauthorized = {"description": HTTPStatus(401).phrase, "content": {"application/json": {"schema": {"anyOf": shapes}}}}
        operation["responses"]["401"] = unauthorized


def _with_payloads(schemas: dict[str, Any]) -> dict[str, Any]:
    """The components with one payload schema per task type. Requests refer to them, and a batch refers to the schema of its items."""
    payloads = {f"{name.title()}Payload": payload_of(name).json_schema(ref_template=REFERENCE) for name in registry.names()}
    for name in schemas.keys() & _works():
        fields = schemas[name]["properties"]
        fields["payload"] |= {"anyOf": [{"$ref": f"#/components/schemas/{payload}"} for payload in payloads] + [{"type": "null"}]}
        fields["type"] |= {"anyOf": [{"type": "string", "enum": registry.names()}, {"type": "null"}]}
    edit = schemas["TaskEdit"]
    schemas["TaskPatch"]["properties"] = {name: _nullable(field) for name, field in edit["properties"].items()}
    schemas["BatchRequest"]["properties"]["jobs"]["items"] = {"$ref": "#/components/schemas/BatchItem"}
    item = models.BatchItem.model_json_schema(ref_template=REFERENCE)
    parts: dict[str, Any] = {"GatewayAnswer": GatewayAnswer.model_json_schema()}
    for each in (item, *payloads.values()):
        parts |= each.pop("$defs", {})
    return parts | schemas | payloads | {"BatchItem": item | {"properties": item["properties"] | schemas["JobRequest"]["properties"]}}


def _works(kind: type[models.Request] = models.WorkRequest) -> list[str]:
    """The names of all requests whose `payload` depends on their `type`."""
    return sorted({each.__name__ for each in kind.__subclasses__()}.union(*(_works(each) for each in kind.__subclasses__())))


def _nullable(field: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field in a merge patch, in which null takes the field away."""
    described = {name: value for name, value in field.items() if name in ("title", "description")}
    return described | {"anyOf": [{name: value for name, value in field.items() if name not in (*described, "default")}, {"type": "null"}]}


def answers(status: int, model: Any, *others: int, errors: Sequence[int] = ()) -> dict[int, Any]:
    """The answers of a route, for the document: the model with `status` or one of the `others`, and errors; any route may answer 500."""
    shapes = dict.fromkeys((status, *others), model) | dict.fromkeys((*errors, 500), ErrorAnswer)
    return {
        code: {"description": HTTPStatus(code).phrase, "content": {"application/json": {"model": shape}}} for code, shape in shapes.items()
    }
