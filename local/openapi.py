"""Write the OpenAPI document that the API serves to a file, for the types of the console: python -m local.openapi FILE"""

import json
import sys
from pathlib import Path
from typing import Any

from lambdas import api


def document() -> dict[str, Any]:
    """Return the document, with the nested definitions (`$defs`) of each component moved to the components and references adapted."""
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
