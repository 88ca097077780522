"""The command `punctual`, and `python -m punctual`. It says how to install the command line if only the client is installed."""

import sys

CLI = ("typer", "rich", "yaml")  # the packages of the extra `cli`


def main() -> None:
    """Run the command line, and end the process with its exit code: 1 if the extra `cli` is not installed."""
    try:
        from punctual import cli
    except ModuleNotFoundError as error:
        if error.name not in CLI:
            raise
        sys.exit(f"punctual: the command line needs {error.name}. Install it: pip install 'punctual-client[cli]'")
    cli.main()


if __name__ == "__main__":
    main()
