"""`punctual users`."""

from typing import Annotated

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli import signin
from punctual.cli._app import NOT_FOUND, Cli, Refused, command, group
from punctual.cli._output import Column
from punctual.records import User

Who = Annotated[str, Argument(metavar="USER", help="The name or the id of the user.")]
RoleOption = Annotated[str | None, Option("--role", help="user, operator or administrator.")]
Weight = Annotated[float | None, Option("--weight", metavar="N", help="The fair-share weight (default 1).")]
MaxJobs = Annotated[int | None, Option("--max-jobs", metavar="N", help="The most jobs that have not ended.")]
PerSecond = Annotated[float | None, Option("--creates-per-second", metavar="N", help="The most jobs that the user may create a second.")]


def build() -> typer.Typer:
    app = group("users", "Users. Operators see them, administrators change them.")
    command(app, "list", "punctual users list")(list_users)
    command(app, "show", "punctual users show ann")(show)
    command(app, "create", "punctual users create ann --role operator --weight 2")(create)
    command(app, "update", "punctual users update ann --weight 5 --max-jobs 100000")(update)
    command(app, "disable", "punctual users disable ann")(disable)
    command(app, "enable", "punctual users enable ann")(enable)
    command(app, "password", "punctual users password ann")(password)
    command(app, "reset-second-factor", "punctual users reset-second-factor ann --yes")(reset_second_factor)
    command(app, "link", "punctual users link ann corp ann@example.com", "punctual users link ann corp 00u1a2b3")(link)
    command(app, "unlink", "punctual users unlink ann corp --yes")(unlink)
    command(app, "delete", "punctual users delete ann --yes")(delete)
    return app


def list_users(cli: Cli) -> None:
    """List all users."""
    cli.out.entries(
        cli.client.users.list(),
        (
            Column("name", lambda each: each.username, essential=True),
            Column("role", lambda each: each.role or ""),
            Column("enabled", lambda each: "yes" if each.enabled else "no"),
            Column("weight", lambda each: f"{each.job_weight:g}", right=True),
            Column("id", lambda each: each.id, essential=True),
        ),
        raw=lambda each: each.raw,
        none="There are no users.",
        id=lambda each: each.id,
    )


def find(cli: Cli, who: str, field: str = "USER") -> User:
    """Return the user of a name or an id. Raises Refused with the `field` that names the user."""
    for each in cli.client.users.list():
        if who in (each.username, each.id):
            return each
    raise Refused(f"there is no user {who!r}", field=field, hint="All users: punctual users list", code=NOT_FOUND)


def show(cli: Cli, who: Who) -> None:
    """Show a user."""
    found = find(cli, who)
    jobs, rate = found.effective_quotas.max_jobs, found.effective_quotas.creates_per_second
    cli.out.details(
        found.raw,
        (
            ("name", found.username),
            ("id", found.id),
            ("role", found.role),
            ("role by single sign-on", found.sso_role),
            ("password", "yes" if found.has_password else "no, by single sign-on only"),
            ("enabled", "yes" if found.enabled else "no"),
            ("job weight", f"{found.job_weight:g}"),
            ("max jobs", "no limit" if jobs is None else jobs),
            ("creates per second", "no limit" if rate is None else f"{rate:g}"),
            ("created", words.clock(found.created_at, cli.now())),
        ),
        quiet=found.id,
    )


def create(
    cli: Cli,
    username: Annotated[str, Argument(help="The name with which the user signs in.")],
    role: RoleOption = None,
    weight: Weight = None,
    max_jobs: MaxJobs = None,
    creates_per_second: PerSecond = None,
) -> None:
    """Create a user. The password is asked for, or read from PUNCTUAL_NEW_PASSWORD or the standard input."""
    secret = signin.secret("PUNCTUAL_NEW_PASSWORD", f"Password of {username}")
    quotas = options.present(max_jobs=max_jobs, creates_per_second=creates_per_second)
    made = cli.client.users.create(username, secret, **options.present(role=role, job_weight=weight, quotas=quotas or None))
    cli.out.result(made.raw, f"User {made.username} is created.", quiet=made.id)


def update(
    cli: Cli, who: Who, role: RoleOption = None, weight: Weight = None, max_jobs: MaxJobs = None, creates_per_second: PerSecond = None
) -> None:
    """Change the role, the weight or the quotas of a user."""
    found = find(cli, who)
    quotas = options.present(max_jobs=max_jobs, creates_per_second=creates_per_second)
    current = options.present(max_jobs=found.quotas.max_jobs, creates_per_second=found.quotas.creates_per_second)
    changes = options.present(role=role, job_weight=weight) | ({"quotas": current | quotas} if quotas else {})
    if not changes:
        raise Refused("give something to change", field="--role", hint="See: punctual users update --help")
    made = cli.client.users.update(found.id, **changes)
    cli.out.result(made.raw, f"User {made.username} is changed.", quiet=made.id)


def disable(cli: Cli, who: Who) -> None:
    """Disable a user: tokens end within half a minute, and the user's jobs wait."""
    made = cli.client.users.disable(find(cli, who).id)
    cli.out.result(made.raw, f"User {made.username} is disabled.", quiet=made.id)


def enable(cli: Cli, who: Who) -> None:
    """Enable a disabled user."""
    made = cli.client.users.enable(find(cli, who).id)
    cli.out.result(made.raw, f"User {made.username} is enabled.", quiet=made.id)


def password(cli: Cli, who: Who) -> None:
    """Set the password of a user, which signs the user out everywhere."""
    found = find(cli, who)
    made = cli.client.users.set_password(found.id, signin.secret("PUNCTUAL_NEW_PASSWORD", f"New password of {found.username}"))
    cli.out.result(made.raw, f"User {made.username} has a new password, and is signed out everywhere.", quiet=made.id)


Provider = Annotated[str, Argument(metavar="PROVIDER", help="The identity provider of the stage.")]
Subject = Annotated[str, Argument(metavar="SUBJECT", help="The subject by which the provider names the user.")]


def link(cli: Cli, who: Who, provider: Provider, subject: Subject) -> None:
    """Let a user sign in by single sign-on too. The user's tasks and jobs stay theirs."""
    found = find(cli, who)
    made = cli.client.users.link(found.id, provider, subject)
    cli.out.result([each.raw for each in made], f"{found.username} signs in by {provider} as {subject}, too.", quiet=found.id)


def unlink(cli: Cli, who: Who, provider: Provider, yes: options.Yes = False) -> None:
    """Take the identity of a provider away from a user, and end all sessions of the user."""
    found = find(cli, who)
    cli.confirm(f"Take the identity of {provider} away from {found.username}?", yes)
    left = cli.client.users.unlink(found.id, provider)
    cli.out.result([each.raw for each in left], f"{found.username} no longer signs in by {provider}.", quiet=found.id)


def reset_second_factor(cli: Cli, who: Who, yes: options.Yes = False) -> None:
    """Take the second factor of a user away, such as after the loss of a phone."""
    found = find(cli, who)
    cli.confirm(f"Let {found.username} sign in with the password alone?", yes)
    cli.client.users.reset_second_factor(found.id)
    cli.out.result({"id": found.id}, f"User {found.username} has no second factor any more.", quiet=found.id)


def delete(cli: Cli, who: Who, yes: options.Yes = False) -> None:
    """Delete a user. The user's jobs are cancelled when they are due."""
    found = find(cli, who)
    cli.confirm(f"Delete user {found.username} with all future jobs?", yes)
    cli.client.users.delete(found.id)
    cli.out.result({"id": found.id}, f"User {found.username} is deleted.", quiet=found.id)
