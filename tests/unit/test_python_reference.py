"""The page docs/reference/python.md has every class and method of the package."""

from docs_build import python_reference


def test_the_reference_of_the_package_is_current() -> None:
    """`make reference` writes it again."""
    assert python_reference.PAGE.read_text() == python_reference.text()
