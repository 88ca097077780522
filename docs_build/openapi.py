"""Write the OpenAPI document of the API to a file: python -m docs_build.openapi [FILE] (default: docs/reference/openapi.json)"""

import json
import sys
from pathlib import Path

from lambdas import api

PUBLISHED = Path(__file__).parent.parent / "docs/reference/openapi.json"


def text() -> str:
    """Return the document as text: the same for the same code."""
    return json.dumps(api.app.openapi_document(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PUBLISHED
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
