"""`punctual login`, `logout`, `profiles` and `whoami`."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Annotated, Any

import typer

import punctual
from punctual import errors, instants, profiles
from punctual.cli import _words as words
from punctual.cli import browser
from punctual.cli._app import NOT_SIGNED_IN, Cli, Refused, command
from punctual.cli._output import Column
from punctual.profiles import Profile
from punctual.settings import KEY_FORM
from punctual.texts import API_KEY, KEY_SECRET

KINDS = {"key": "API key", "principal": "AWS role"}
DEFAULT = "default"  # the name of a profile that nobody named
API = "/api/v1"


def register(app: typer.Typer) -> None:
    command(
        app,
        "login",
        "punctual login https://abc123.execute-api.eu-central-1.amazonaws.com --username ann",
        "punctual login --profile ci https://… --key",
        "punctual login --profile role https://… --aws",
        "punctual login --sso https://…",
        "PUNCTUAL_PASSWORD=… punctual login https://… --username ann        # asks nothing",
    )(login)
    command(app, "logout", "punctual logout", "punctual logout --profile prod")(logout)
    command(app, "profiles", "punctual profiles", "punctual profiles --use prod")(list_profiles)
    command(app, "whoami", "punctual whoami", "punctual whoami --json")(whoami)


def login(
    cli: Cli,
    url: Annotated[str | None, typer.Argument(help="The address of the API. Default: that of the profile, or PUNCTUAL_URL.")] = None,
    username: Annotated[str | None, typer.Option("--username", "-u", help="Sign in as this user. Default: that of the profile.")] = None,
    key: Annotated[bool, typer.Option("--key", help="Use an API key. It is asked for, or read from the standard input.")] = False,
    sso: Annotated[bool, typer.Option("--sso", help="Sign in with the browser, by the identity provider of the stage.")] = False,
    aws: Annotated[bool, typer.Option("--aws", help="Sign in as the AWS role of this machine, without a secret.")] = False,
) -> None:
    """Sign in, and remember it in a profile.

    The password is asked for at the terminal. Without a terminal it is read from PUNCTUAL_PASSWORD, or from the first line of the
    standard input. The profile has tokens or the API key, and never a password; only you can read its file. It becomes the current one.

    A stage with single sign-on signs you in with --sso, without a password: the browser comes back to a port of this machine.

    With --aws nothing is asked for and nothing is stored but the address: each command signs in as the AWS role it runs as.
    """
    name = cli.profile or os.environ.get("PUNCTUAL_PROFILE") or DEFAULT
    known = profiles.load().all.get(name)
    where = url or (known.url if known else None) or os.environ.get("PUNCTUAL_URL") or _prompted(cli, "Address of the API")
    where = where.rstrip("/").removesuffix(API)
    if KEY_SECRET.search(where):
        raise Refused("an API key is no argument, which others could read", field="--key", hint="Give it on the standard input.")
    if not where.startswith(("http://", "https://")):
        raise Refused("must begin with https:// or http://", field="URL")
    if aws and (key or username or sso):
        raise Refused("needs none of --key, --username and --sso", field="--aws")
    if sso and (key or username):
        raise Refused("needs neither --key nor --username", field="--sso")
    if key and username:
        raise Refused("give --key or --username, not both", field="--key")
    if aws or cli.auth or (known and known.auth and not key and not username and not sso):
        profile = Profile(name, where, auth="aws")
    elif key:
        profile = Profile(name, where, key=api_key())
    elif sso:
        profile = _by_browser(cli, name, where)
    else:
        user = username or os.environ.get("PUNCTUAL_USERNAME") or (known.username if known else None)
        profile = _person(cli, name, where, user or _prompted(cli, "User name"))
    auth: Any = profile.auth
    with punctual.Punctual(where, key=profile.key, token=profile.token, auth=auth, transport=cli.setup.transport) as signed_in:
        me = signed_in.me()
    if known and (known.url, known.username, known.key, known.auth) == (profile.url, profile.username, profile.key, profile.auth):
        profile = replace(profile, owner=known.owner, owner_name=known.owner_name)
    profiles.save(profile)
    role = me.role or f"{KINDS.get(me.kind, me.kind)} with {words.words(me.scopes)}"
    cli.out.result(
        {"profile": name, "url": where, "user": me.raw}, f"Signed in to {where} as {me.username} ({role}). Profile: {name}.", quiet=name
    )
    cli.out.remark("Your first job: punctual jobs create --in 10s log hello")


def _person(cli: Cli, name: str, url: str, username: str) -> Profile:
    password = secret("PUNCTUAL_PASSWORD", f"Password of {username}")
    with punctual.Punctual(url, token="none", transport=cli.setup.transport) as client:
        try:
            session = client.request("POST", "/auth/login", {"username": username, "password": password})
        except errors.NotAuthenticated as error:
            raise Refused(
                f"the user name or the password is wrong: {error.message}", hint=f"Signing in to {url}", code=NOT_SIGNED_IN
            ) from error
        if "challenge" in session:
            code = secret("PUNCTUAL_CODE", "Code of your second factor").replace(" ", "")
            try:
                session = client.request("POST", "/auth/challenge", {"session": session["session"], "code": code})
            except (errors.NotAuthenticated, errors.InvalidRequest) as error:
                raise Refused(error.message, hint="Start again: punctual login", code=NOT_SIGNED_IN) from error
    return _profile(name, url, username, session)


def _by_browser(cli: Cli, name: str, url: str) -> Profile:
    with punctual.Punctual(url, token="none", transport=cli.setup.transport) as client:
        page = client.request("GET", "/auth/sso")
        if not page["sso"]:
            raise Refused("this stage has no single sign-on", field="--sso", hint=f"With a password: punctual login {url}")
        found = browser.sign_in(
            page["sso"]["authorize_url"],
            page["sso"]["loopback_ports"],
            lambda address: typer.echo(f"Sign in with {page['sso']['name']} in the browser. If none opens, go to:\n{address}", err=True),
        )
        body = {"code": found.code, "verifier": found.verifier, "redirect_uri": found.redirect_uri}
        try:
            session = client.request("POST", "/auth/sso", body)
        except errors.NotAuthenticated as error:
            raise Refused(error.message, hint="Start again: punctual login --sso", code=NOT_SIGNED_IN) from error
    return _profile(name, url, None, session)


def _profile(name: str, url: str, username: str | None, session: Mapping[str, Any]) -> Profile:
    """A profile without a user name signs in by the browser."""
    expires_at = instants.parse(session["expire"]).timestamp()
    return Profile(name, url, username=username, token=session["token"], refresh_token=session["refresh_token"], expires_at=expires_at)


def api_key() -> str:
    key = secret(None, "API key").strip()
    if not API_KEY.fullmatch(key):
        raise Refused(f"is none: {KEY_FORM}", field="the key", hint="Create one: punctual keys create NAME --scope jobs:write")
    return key


def _prompted(cli: Cli, what: str) -> str:
    if not sys.stdin.isatty():
        raise Refused(f"{what.lower()} is missing", hint="See: punctual login --help")
    return str(typer.prompt(what, err=True))


def secret(variable: str | None, question: str) -> str:
    """Return a secret from a variable of the environment, the terminal or the first line of the standard input. Raises Refused."""
    if variable and (value := os.environ.get(variable)):
        return value
    if sys.stdin.isatty():
        return str(typer.prompt(question, hide_input=True, err=True))
    if line := sys.stdin.readline().rstrip("\r\n"):
        return line
    what = question.partition(" of ")[0]
    what = what if what[:2].isupper() else what[:1].lower() + what[1:]
    raise Refused(f"the {what} is missing", hint=f"Give it on the standard input{f', or in {variable}' if variable else ''}.")


def logout(
    cli: Cli, everywhere: Annotated[bool, typer.Option("--everywhere", help="End all your sessions, on every device.")] = False
) -> None:
    """End the session of the profile, and delete the profile.

    Its access token works until it expires, for an hour at most. An API key stays valid: punctual keys revoke
    """
    found = profiles.find(cli.profile)
    if found is None:
        raise Refused("you are not signed in", code=NOT_SIGNED_IN)
    ended = True
    if found.refresh_token:
        try:
            cli.client.request(
                "POST", "/auth/logout", {"everywhere": everywhere, **({} if everywhere else {"refresh_token": found.refresh_token})}
            )
        except errors.NotAuthenticated:
            ended = True  # it expired, or another client ended it
        except errors.PunctualError:
            ended = False
    profiles.remove(found.name)
    note = "" if ended else " The server could not be reached, so the session ends when its tokens expire."
    note = " The API key stays valid. To revoke it: punctual keys revoke" if found.key else note
    cli.out.result(
        {"profile": found.name, "url": found.url, "ended": ended}, f"Signed out of {found.url}. Profile {found.name} is deleted.{note}"
    )


def list_profiles(
    cli: Cli, use: Annotated[str | None, typer.Option("--use", metavar="NAME", help="Make this profile the current one.")] = None
) -> None:
    """List the profiles, or change the current one."""
    if use:
        found = profiles.find(use)
        if found is not None:
            profiles.save(found)
    known = profiles.load()

    def account(each: Profile) -> str:
        return each.username or ("the AWS role" if each.auth else "an API key" if each.key else "a token")

    def expires(each: Profile) -> str:
        if each.expires_at is None or each.refresh_token:
            return "renews itself" if each.refresh_token or each.auth else ""
        return words.relative(datetime.fromtimestamp(each.expires_at, timezone.utc), cli.now())

    cli.out.entries(
        known.all.values(),
        (
            Column("", lambda each: "*" if each.name == known.current else ""),
            Column("name", lambda each: each.name, essential=True),
            Column("url", lambda each: each.url),
            Column("as", account),
            Column("owner", lambda each: each.owner_name or each.owner or ""),
            Column("token", expires),
        ),
        raw=lambda each: {
            "name": each.name,
            "current": each.name == known.current,
            "url": each.url,
            "username": each.username,
            "has_key": each.key is not None,
            "auth": each.auth,
            "owner": each.owner,
        },
        none="There are no profiles yet. Sign in with: punctual login URL",
        id=lambda each: each.name,
    )


def whoami(cli: Cli) -> None:
    """Show as whom you are signed in, your teams and your quotas."""
    me = cli.client.me()
    quotas = me.effective_quotas
    known = None if cli.client.owner is None else profiles.find(cli.profile)
    cli.out.details(
        me.raw,
        (
            ("user" if me.kind == "person" else KINDS.get(me.kind, me.kind), me.username),
            ("id", me.id),
            ("role", me.role),
            ("scopes", words.words(me.scopes)),
            ("teams", "\n".join(f"{each.name} ({each.role})" for each in me.teams)),
            ("owner", cli.client.owner and ((known and known.owner_name) or cli.client.owner)),
            ("job weight", me.job_weight),
            ("jobs at most", "no limit" if quotas.max_jobs is None else quotas.max_jobs),
            ("creates per second", "no limit" if quotas.creates_per_second is None else quotas.creates_per_second),
        ),
        quiet=me.username,
    )
