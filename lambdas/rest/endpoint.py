"""A route, and the arguments that its function takes from a request."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_origin
from urllib.parse import parse_qs

from pydantic import BaseModel, ValidationError, create_model

from lambdas.rest import envelope, request_body

SEGMENT = r"[-._~()'!*:@,;=+&$%<> \[\]{}|^\w]+"  # as Powertools matches a parameter of a path


@dataclass(frozen=True)
class Endpoint:
    """A method and a path such as `/jobs/<job_id>`. Of its function's parameters, those of the path have its names, and `body` the body."""

    method: str
    path: str
    function: Callable[..., Any]

    @cached_property
    def model(self) -> type[BaseModel]:
        """The arguments of the function. The model is made when the first request needs it: a cold start has no time for all of them."""
        parameters = inspect.signature(self.function).parameters.values()
        fields: Any = {each.name: (each.annotation, ... if each.default is each.empty else each.default) for each in parameters}
        return create_model(self.function.__name__, **fields)

    @cached_property
    def body(self) -> Any:
        """The model of its body; None: it takes none."""
        return self.model.model_fields["body"].annotation if "body" in self.model.model_fields else None

    @cached_property
    def queries(self) -> Mapping[str, bool]:
        """The parameters of its query by name, and whether they take several values."""
        fields = {name: each for name, each in self.model.model_fields.items() if name != "body" and f"<{name}>" not in self.path}
        return {each.alias or name: get_origin(each.annotation) is list for name, each in fields.items()}

    @property
    def template(self) -> str:
        """Its path as the OpenAPI document has it."""
        return self.path.replace("<", "{").replace(">", "}")

    def accepts(self, body: Mapping[str, Any]) -> bool:
        try:
            self.body.model_validate(body)
        except ValidationError:
            return False
        return True

    def fits(self, path: str) -> bool:
        return re.match(f"^{re.sub('<[a-z_]+>', lambda _: SEGMENT, self.path)}$", path) is not None

    def arguments(self, event: Mapping[str, Any], found: Mapping[str, str], largest_body: int) -> dict[str, Any]:
        """The arguments for a request with these values in its path. Raises Invalid with every broken rule."""
        query = event.get("queryStringParameters") or {}
        values: dict[str, Any] = {name: _values(event, name, several) for name, several in self.queries.items() if name in query}
        if self.body is not None:
            values["body"] = request_body.read(event, largest_body)
        try:
            return dict(self.model.model_validate({**values, **found}))
        except ValidationError as error:
            broken = [
                {**each, "loc": each["loc"] if each["loc"][0] == "body" else ("query", *each["loc"])}
                for each in error.errors(include_url=False, include_input=False)
            ]
            raise envelope.violations(broken, self.body) from None


def _values(event: Mapping[str, Any], name: str, several: bool) -> str | list[str]:
    """The value or values of a parameter in the query. API Gateway joins the values of a repeated one by commas."""
    text: str = event["queryStringParameters"][name]
    repeated = "," in text and len(parse_qs(event.get("rawQueryString") or "", keep_blank_values=True).get(name, ())) > 1
    return text.split(",") if several or repeated else text
