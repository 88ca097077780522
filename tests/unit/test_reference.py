"""The generated parts of the reference pages are those of the OpenAPI document."""

import pytest

from docs_build import reference


@pytest.mark.parametrize("name", reference.PARTS)
def test_the_generated_parts_are_current(name: str) -> None:
    """`make reference` writes them."""
    page = (reference.PAGES / name).read_text()
    assert reference.written(page, reference.PARTS[name], reference.document()) == page


def test_every_generated_part_is_known() -> None:
    marked = [(page.name, line) for page in reference.PAGES.glob("*.md") for line in page.read_text().splitlines() if "generated:" in line]
    assert sorted(marked) == sorted((name, f"<!-- generated: {part} -->") for name, parts in reference.PARTS.items() for part in parts)


def test_a_page_without_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="0 parts routes"):
        reference.written("# API\n", reference.PARTS["api.md"], reference.document())


def test_types_are_shown_with_their_bounds() -> None:
    fields = list(reference.fields("HttpJobRequest")(reference.document()))
    assert any(line.startswith("| `max_attempts` | integer, 1 to 25 |") for line in fields)
    assert any(line.startswith("| `on_failure` | `continue`, `pause`") for line in fields)
    assert any(line.startswith("| `expires_at` | date-time |") for line in fields)
