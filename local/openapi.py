"""The OpenAPI document as the API serves it, for the types of the console: python -m local.openapi FILE"""

import json
import sys
from pathlib import Path
from typing import Any

from lambdas import api


def document() -> dict[str, Any]:
    """The document with the parts that a component keeps for itself (`$defs`) among the components, where references are looked up."""
    served: dict[str, Any] = json.loads(api.app.get_openapi_json_schema())
    schemas = served["components"]["schemas"]
    for schema in list(schemas.values()):
        for name, part in schema.pop("$defs", {}).items():
            schemas.setdefault(name, part)
    mended: dict[str, Any] = json.loads(json.dumps(served).replace('"#/$defs/', '"#/components/schemas/'))
    return mended


def main() -> int:
    Path(sys.argv[1]).write_text(json.dumps(document(), indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
