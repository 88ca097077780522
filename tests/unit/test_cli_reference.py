"""The reference page of the command line is that of its commands."""

from docs_build import cli_reference


def test_the_page_of_the_command_line_is_current() -> None:
    """`make reference` writes it."""
    assert cli_reference.PAGE.read_text() == cli_reference.text()
