"""`punctual login`, `logout`, `profiles` and `whoami`."""

import os
import sys
from collections.abc import Mapping
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

DEFAULT = "default"  # the name of a profile that nobody named
API = "/api/v1"


def register(app: typer.Typer) -> None:
    command(
        app,
        "login",
        "punctual login https://abc123.execute-api.eu-central-1.amazonaws.com --username ann",
        "punctual login --profile ci https://… --client-id 4f… --token-url https://…/oauth2/token",
        "PUNCTUAL_PASSWORD=… punctual login https://… --username ann        # asks nothing",
        "punctual login https://… --sso                                     # in the browser",
    )(login)
    command(app, "logout", "punctual logout", "punctual logout --profile prod")(logout)
    command(app, "profiles", "punctual profiles", "punctual profiles --use prod")(list_profiles)
    command(app, "whoami", "punctual whoami", "punctual whoami --json")(whoami)


def login(
    cli: Cli,
    url: Annotated[str | None, typer.Argument(help="The address of the API. Default: that of the profile, or PUNCTUAL_URL.")] = None,
    username: Annotated[str | None, typer.Option("--username", "-u", help="Sign in as this user. Default: that of the profile.")] = None,
    client_id: Annotated[str | None, typer.Option("--client-id", help="Sign in as a machine client, by client credentials.")] = None,
    token_url: Annotated[
        str | None, typer.Option("--token-url", help="The address for tokens of a machine client: the stack's output TokenUrl.")
    ] = None,
    sso: Annotated[bool, typer.Option("--sso", help="Sign in with the identity provider of your organization, in the browser.")] = False,
) -> None:
    """Sign in, and remember it in a profile.

    The password, a one-time code or the client secret is asked for at the terminal. Without a terminal it is read from
    PUNCTUAL_PASSWORD, PUNCTUAL_CODE or PUNCTUAL_CLIENT_SECRET, or from the first line of the standard input. The profile has tokens and
    never a password; only you can read its file. It becomes the current one.
    """
    name = cli.profile or os.environ.get("PUNCTUAL_PROFILE") or DEFAULT
    known = profiles.load().all.get(name)
    where = url or (known.url if known else None) or os.environ.get("PUNCTUAL_URL") or _prompted(cli, "Address of the API")
    where = where.rstrip("/").removesuffix(API)
    if not where.startswith(("http://", "https://")):
        raise Refused("must begin with https:// or http://", field="URL")
    client = client_id or (known.client_id if known and not username else None)
    if sso:
        if username or client_id:
            raise Refused("cannot be combined with --username or --client-id", field="--sso")
        profile = _by_browser(cli, name, where)
    elif client:
        profile = _machine(
            cli, name, where, client, token_url or (known.token_url if known else None) or os.environ.get("PUNCTUAL_TOKEN_URL")
        )
    else:
        user = username or os.environ.get("PUNCTUAL_USERNAME") or (known.username if known else None)
        profile = _person(cli, name, where, user or _prompted(cli, "User name"))
    with punctual.Punctual(where, token=profile.token, transport=cli.setup.transport) as signed_in:
        me = signed_in.me()
    profiles.save(profile)
    role = me.role or f"machine client with {words.words(me.scopes)}"
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


def _machine(cli: Cli, name: str, url: str, client_id: str, token_url: str | None) -> Profile:
    if not token_url:
        raise Refused("is missing", field="--token-url", hint="It is the output TokenUrl of the stack.")
    hidden = secret("PUNCTUAL_CLIENT_SECRET", f"Secret of {client_id}")
    return Profile(name, url, client_id=client_id, client_secret=hidden, token_url=token_url)


def _prompted(cli: Cli, what: str) -> str:
    if not sys.stdin.isatty():
        raise Refused(f"{what.lower()} is missing", hint="See: punctual login --help")
    return str(typer.prompt(what, err=True))


def secret(variable: str, question: str) -> str:
    """Return a secret from a variable of the environment, the terminal or the first line of the standard input. Raises Refused."""
    if value := os.environ.get(variable):
        return value
    if sys.stdin.isatty():
        return str(typer.prompt(question, hide_input=True, err=True))
    if line := sys.stdin.readline().rstrip("\r\n"):
        return line
    raise Refused(f"the {question.split(' ')[0].lower()} is missing", hint=f"Give it on the standard input, or in {variable}.")


def logout(
    cli: Cli, everywhere: Annotated[bool, typer.Option("--everywhere", help="End all your sessions, on every device.")] = False
) -> None:
    """End the session of the profile, and delete the profile.

    Its access token works until it expires, for an hour at most.
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
        return each.username or (f"machine client {each.client_id}" if each.client_id else "a token")

    def expires(each: Profile) -> str:
        if each.expires_at is None or each.refresh_token or each.client_secret:
            return "renews itself" if each.refresh_token or each.client_secret else ""
        return words.relative(datetime.fromtimestamp(each.expires_at, timezone.utc), cli.now())

    cli.out.entries(
        known.all.values(),
        (
            Column("", lambda each: "*" if each.name == known.current else ""),
            Column("name", lambda each: each.name, essential=True),
            Column("url", lambda each: each.url),
            Column("as", account),
            Column("token", expires),
        ),
        raw=lambda each: {
            "name": each.name,
            "current": each.name == known.current,
            "url": each.url,
            "username": each.username,
            "client_id": each.client_id,
        },
        none="There are no profiles yet. Sign in with: punctual login URL",
        id=lambda each: each.name,
    )


def whoami(cli: Cli) -> None:
    """Show as whom you are signed in, and your quotas."""
    me = cli.client.me()
    quotas = me.effective_quotas
    cli.out.details(
        me.raw,
        (
            ("user", me.username),
            ("id", me.id),
            ("role", me.role),
            ("scopes", words.words(me.scopes)),
            ("job weight", me.job_weight),
            ("jobs at most", "no limit" if quotas.max_jobs is None else quotas.max_jobs),
            ("creates per second", "no limit" if quotas.creates_per_second is None else quotas.creates_per_second),
        ),
        quiet=me.username,
    )
