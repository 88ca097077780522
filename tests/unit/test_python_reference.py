"""The page docs/reference/python.md has every class and method of the package."""

from docs_build import client_fields, python_reference


def test_the_reference_of_the_package_is_current() -> None:
    """`make reference` writes it again."""
    assert python_reference.PAGE.read_text() == python_reference.text()


def test_the_options_of_jobs_are_those_of_the_document() -> None:
    assert client_fields.PAGE.read_text() == client_fields.text(), "client/src/punctual/fields.py is not current: run `make reference`"
