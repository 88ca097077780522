"""`punctual teams`: teams, their members and invitations, and the team whose objects your commands are about."""

import os
from typing import Annotated

import typer
from typer import Argument, Option

from punctual import profiles
from punctual.cli import _options as options
from punctual.cli import _whose, signin
from punctual.cli import _words as words
from punctual.cli._app import Cli, Refused, command, group, only
from punctual.cli._output import Column, instants
from punctual.cli._whose import Named
from punctual.records import TeamRole

TeamName = Annotated[str, Argument(metavar="TEAM", help="The name or the id of the team.")]
UserName = Annotated[str, Argument(metavar="USER", help="The name of a member, or the id of a user; for operators any name.")]
RoleOption = Annotated[str, Option("--role", help="viewer (sees), editor (changes, too) or manager (also the members and API keys).")]


def build() -> typer.Typer:
    app = group("teams", "Teams, which own tasks and jobs, and their members. Managers of a team change it.")
    command(app, "list", "punctual teams list", "punctual teams list --all")(list_teams)
    command(app, "use", "punctual teams use billing", "punctual teams use --mine")(use)
    command(app, "create", "punctual teams create billing")(create)
    command(app, "show", "punctual teams show billing")(show)
    command(app, "rename", "punctual teams rename billing payments")(rename)
    command(app, "delete", "punctual teams delete billing --yes")(delete)
    command(app, "members", "punctual teams members billing")(members)
    command(app, "set-member", "punctual teams set-member billing ann --role manager")(set_member)
    command(app, "remove-member", "punctual teams remove-member billing ann --yes")(remove_member)
    command(app, "invite", "punctual teams invite billing --role editor", "punctual teams invite billing --expires-in-days 2")(invite)
    command(app, "invitations", "punctual teams invitations billing")(invitations)
    command(app, "withdraw", "punctual teams withdraw billing 01JD4Q8XKZ38W2M5R7T9V1C4FH")(withdraw)
    command(app, "accept", "punctual teams accept")(accept)
    return app


def list_teams(cli: Cli, all: Annotated[bool, Option("--all", help="All teams; for operators.")] = False) -> None:
    """List your teams. A star is at the team whose objects your commands are about."""
    now, used = cli.now(), cli.client.owner
    cli.out.entries(
        cli.client.teams.list(all=all),
        (
            Column("", lambda each: "*" if each.id == used else ""),
            Column("name", lambda each: each.name, essential=True),
            Column("your role", lambda each: each.role or ""),
            instants("created", lambda each: each.created_at, now),
            Column("id", lambda each: each.id, essential=True),
        ),
        raw=lambda each: each.raw,
        none="There are no teams." if all else "You are in no team. Create one: punctual teams create NAME",
        id=lambda each: each.id,
    )


def use(
    cli: Cli,
    team: Annotated[str | None, Argument(metavar="[TEAM]", help="The name or the id of the team; for operators, of any user, too.")] = None,
    mine: Annotated[bool, Option("--mine", help="Your own objects again.")] = False,
) -> None:
    """Choose the team whose objects the commands with this profile are about. `--owner` names another one for one command."""
    if (team is None) != mine:
        raise Refused("give a team or --mine, and not both", field="TEAM", hint="Your teams: punctual teams list")
    profile = profiles.find(cli.profile)
    if profile is None or (not cli.profile and any(os.environ.get(f"PUNCTUAL_{each}") for each in ("KEY", "TOKEN", "USERNAME"))):
        raise Refused("the credentials come from no profile", field="TEAM", hint="Set the variable PUNCTUAL_OWNER to the id of the team.")
    if team is None:
        profiles.choose_owner(profile.name, None, None)
        cli.out.result({"profile": profile.name, "owner": None}, "Commands are about your own objects now.", quiet=profile.name)
        return
    found = only(_whose.matches(cli.client, team), team, "team", "TEAM")
    profiles.choose_owner(profile.name, found.id, found.name)
    cli.out.result(
        {"profile": profile.name, "owner": found.id, "owner_name": found.name},
        f"Commands are about the objects of {found} now. Your own: punctual teams use --mine",
        quiet=found.id,
    )


def create(cli: Cli, name: Annotated[str, Argument(help="The name of the team, for people.")]) -> None:
    """Create a team. You are its first manager."""
    made = cli.client.teams.create(name)
    cli.out.result(made.raw, f"Team {made.name} is created: {made.id}.", quiet=made.id)
    cli.out.remark(f"Invite others: punctual teams invite {made.id} --role editor. Work for it: punctual teams use {made.id}")


def show(cli: Cli, team: TeamName) -> None:
    """Show a team."""
    found = cli.client.teams.get(_team(cli, team).id)
    cli.out.details(
        found.raw,
        (
            ("name", found.name),
            ("id", found.id),
            ("your role", found.role),
            ("created", words.clock(found.created_at, cli.now())),
        ),
        quiet=found.id,
    )


def rename(cli: Cli, team: TeamName, name: Annotated[str, Argument(help="The new name.")]) -> None:
    """Give a team another name. Its id stays."""
    made = cli.client.teams.rename(_team(cli, team).id, name)
    cli.out.result(made.raw, f"The team is called {made.name} now.", quiet=made.id)


def delete(cli: Cli, team: TeamName, yes: options.Yes = False) -> None:
    """Delete a team that has no active task.

    Its members and API keys lose their access, and its jobs are cancelled when they are due.
    """
    found = _team(cli, team)
    cli.confirm(f"Delete the team {found} with all future jobs and API keys?", yes)
    cli.client.teams.delete(found.id)
    cli.out.result({"id": found.id}, f"Team {found.name} is deleted.", quiet=found.id)


def members(cli: Cli, team: TeamName) -> None:
    """List the members of a team."""
    found, now = _team(cli, team), cli.now()
    cli.out.entries(
        cli.client.teams.members(found.id),
        (
            Column("name", lambda each: each.username or "", essential=True),
            Column("role", lambda each: each.role, essential=True),
            instants("since", lambda each: each.since, now),
            Column("id", lambda each: each.user_id, essential=True),
        ),
        raw=lambda each: each.raw,
        none=f"There are no members. Invite one: punctual teams invite {found.id} --role editor",
        id=lambda each: each.user_id,
    )


def set_member(cli: Cli, team: TeamName, user: UserName, role: RoleOption) -> None:
    """Give a member another role. Administrators also add a user; others invite one: punctual teams invite"""
    found = _team(cli, team)
    made = cli.client.teams.set_member(found.id, _user(cli, found, user).id, _role(role))
    cli.out.result(made.raw, f"{made.username or made.user_id} is {made.role} of {found.name}.", quiet=made.user_id)


def remove_member(cli: Cli, team: TeamName, user: UserName, yes: options.Yes = False) -> None:
    """Remove a member, or leave a team. Jobs of the team stay with the team."""
    found = _team(cli, team)
    who = _user(cli, found, user)
    cli.confirm(f"Remove {who.name} from the team {found.name}?", yes)
    cli.client.teams.remove_member(found.id, who.id)
    cli.out.result({"user_id": who.id}, f"{who.name} is no member of {found.name} any more.", quiet=who.id)


def invite(
    cli: Cli,
    team: TeamName,
    role: RoleOption = "editor",
    expires_in_days: Annotated[int | None, Option("--expires-in-days", metavar="N", min=1, help="It ends after N days.")] = None,
) -> None:
    """Create an invitation, and print its token, which is used once: punctual teams accept"""
    found = _team(cli, team)
    made = cli.client.teams.invite(found.id, _role(role), expires_in_days=expires_in_days)
    until = words.clock(made.expires_at, cli.now())
    sentence = f"The invitation {made.id} to be {made.role} of {found.name} is valid until {until}. Its token is not shown again:"
    cli.out.result(made.raw, f"{sentence}\n{made.token}", quiet=made.token)
    cli.out.remark("The invited person runs: punctual teams accept")


def invitations(cli: Cli, team: TeamName) -> None:
    """List the invitations of a team that were neither used nor withdrawn."""
    found, now = _team(cli, team), cli.now()
    cli.out.entries(
        cli.client.teams.invitations(found.id),
        (
            Column("id", lambda each: each.id, essential=True),
            Column("role", lambda each: each.role),
            instants("expires", lambda each: each.expires_at, now, essential=True),
            Column("by", lambda each: each.made_by),
        ),
        raw=lambda each: each.raw,
        none=f"There are no open invitations. Create one: punctual teams invite {found.id} --role editor",
        id=lambda each: each.id,
    )


def withdraw(cli: Cli, team: TeamName, id: Annotated[str, Argument(metavar="ID", help="The id of the invitation.")]) -> None:
    """Withdraw an invitation."""
    found = _team(cli, team)
    cli.client.teams.withdraw(found.id, id)
    cli.out.result({"id": id}, f"The invitation {id} is withdrawn.", quiet=id)


def accept(cli: Cli) -> None:
    """Accept an invitation. Its token is asked for, or read from the standard input."""
    made = cli.client.teams.accept(signin.secret(None, "Token of the invitation").strip())
    cli.out.result(made.raw, f"You are {made.role or 'a member'} of {made.name}.", quiet=made.id)
    cli.out.remark(f"Work for it: punctual teams use {made.id}")


def _team(cli: Cli, text: str) -> Named:
    return only(_whose.teams(cli.client, text), text, "team", "TEAM")


def _user(cli: Cli, team: Named, text: str) -> Named:
    """Return a user: a member of this name, or for operators any user of it, or else the id."""
    if _whose.ID.fullmatch(text):
        return Named(text, text)
    for each in cli.client.teams.members(team.id):
        if text in (each.user_id, each.username):
            return Named(each.user_id, each.username or each.user_id)
    return only(_whose.matches(cli.client, text), text, "user", "USER")


def _role(text: str) -> TeamRole:
    if text not in ("viewer", "editor", "manager"):
        raise Refused(f"must be viewer, editor or manager, not {text!r}", field="--role")
    return text  # type: ignore[return-value]  # mypy does not narrow a str by `in`
