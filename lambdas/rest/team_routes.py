"""Routes of teams, their members and their invitations.

Members see their team, and managers change it. Operators see all teams, and administrators change them as managers do.
"""

import re
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas.rest.access import OWNER_ID, needs
from lambdas.rest.acting_models import (
    AcceptRequest,
    InvitationRequest,
    InvitationsShape,
    MemberRequest,
    MemberShape,
    MembersShape,
    NewInvitationShape,
    TeamRequest,
    TeamShape,
    TeamsShape,
)
from lambdas.rest.envelope import answer
from lambdas.rest.parameters import Cursor, Limit, position
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer, Json
from scheduler.accounts import teams
from scheduler.accounts.access import REFUSALS, Caller, Need
from scheduler.model.account import Membership, Profile, TeamRole
from scheduler.model.errors import Forbidden, NotFound
from scheduler.tasks import service

router = Router()
All = Annotated[bool, Query(description="all teams, for operators and administrators")]


@router.get(
    "/api/v1/teams",
    summary="List teams",
    description="Your teams, by name. With `all`: all teams, by id, for operators and administrators.",
    tags=["teams"],
    responses=answers(200, Answer[TeamsShape], errors=(400, 401, 403, 503)),
)
@needs(Need.PERSON)
def list_teams(all: All = False, limit: Limit = 20, cursor: Cursor = None) -> Response[str]:
    ports, caller = _runtime.api(), router.caller
    mine = _mine()
    if not all:
        return answer(TeamsShape.of([TeamShape.of(team, role) for team, role in mine], None))
    if not caller.may(Need.OVERSEE):
        raise Forbidden(REFUSALS[Need.OVERSEE])
    ids, following = ports.owners.teams(position(cursor, OWNER_ID), limit)
    found, roles = ports.users.profiles(ids), {team.id: role for team, role in mine}
    return answer(TeamsShape.of([TeamShape.of(found[id], roles.get(id)) for id in ids if found[id].name], following))


@router.post(
    "/api/v1/teams",
    summary="Create a team",
    description="You become its first manager.",
    tags=["teams"],
    responses=answers(201, Answer[TeamShape], errors=(400, 401, 403, 409, 413, 415, 503)),
)
@needs(Need.PERSON, action="team.create")
def create_team(body: Annotated[TeamRequest, Body()]) -> Response[str]:
    team = teams.create(body.name, router.caller.id, _runtime.api())
    _forget(router.caller.id)
    return answer(TeamShape.of(team, TeamRole.MANAGER), 201, {"Location": f"/api/v1/teams/{team.id}"})


@router.get(
    "/api/v1/teams/<team_id>",
    summary="Get a team",
    tags=["teams"],
    responses=answers(200, Answer[TeamShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.PERSON)
def get_team(team_id: str) -> Response[str]:
    return answer(_shown(_seen(team_id)))


@router.patch(
    "/api/v1/teams/<team_id>",
    summary="Rename a team",
    tags=["teams"],
    responses=answers(200, Answer[TeamShape], errors=(400, 401, 403, 404, 413, 415, 503)),
)
@needs(Need.PERSON, action="team.rename")
def rename_team(team_id: str, body: Annotated[TeamRequest, Body()]) -> Response[str]:
    _managed(team_id)
    return answer(_shown(teams.rename(team_id, body.name, _runtime.api())))


@router.delete(
    "/api/v1/teams/<team_id>",
    summary="Delete a team",
    description="Refused with 409 while a task of the team is active. Jobs that wait are cancelled when they are due; the history stays.",
    tags=["teams"],
    responses=answers(200, Answer[TeamShape], errors=(400, 401, 403, 404, 409, 503)),
)
@needs(Need.PERSON, action="team.delete")
def delete_team(team_id: str) -> Response[str]:
    ports, team = _runtime.api(), _managed(team_id)
    members = ports.owners.members(team_id)
    shown = _shown(team)
    teams.delete(team_id, service.has_active(team_id, ports), ports)
    _forget(team_id, *(each.person for each in members))
    return answer(shown)


@router.get(
    "/api/v1/teams/<team_id>/members",
    summary="List the members of a team",
    tags=["teams"],
    responses=answers(200, Answer[MembersShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.PERSON)
def list_members(team_id: str) -> Response[str]:
    ports = _runtime.api()
    _seen(team_id)
    members = ports.owners.members(team_id)
    names = ports.names.of([each.person for each in members])
    return answer(MembersShape.of(MemberShape.of(each, names.get(each.person)) for each in members))


@router.put(
    "/api/v1/teams/<team_id>/members/<user_id>",
    summary="Set the role of a member",
    description="A lower role applies within 30 seconds, also to the member's API keys for the team. An administrator also adds a member.",
    tags=["teams"],
    responses=answers(200, Answer[MemberShape], errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.PERSON, action="team.member")
def set_member(team_id: str, user_id: str, body: Annotated[MemberRequest, Body()]) -> Response[str]:
    ports, caller = _runtime.api(), router.caller
    _managed(team_id)
    try:
        member = teams.set_role(team_id, _person(user_id), body.role, ports)
    except NotFound:
        if not caller.may(Need.ADMINISTER):
            raise
        member = teams.add(team_id, user_id, body.role, ports)
    _forget(user_id)
    return answer(_member(member))


@router.delete(
    "/api/v1/teams/<team_id>/members/<user_id>",
    summary="Remove a member, or leave a team",
    description="The person loses access within 30 seconds. Tasks and jobs of the team go on. The last manager cannot leave (409).",
    tags=["teams"],
    responses=answers(200, Answer[MemberShape], errors=(400, 401, 403, 404, 409, 503)),
)
@needs(Need.PERSON, action="team.remove")
def remove_member(team_id: str, user_id: str) -> Response[str]:
    ports = _runtime.api()
    _seen(team_id) if user_id == router.caller.id else _managed(team_id)
    member = teams.member(team_id, _person(user_id), ports)
    teams.remove(team_id, user_id, ports)
    _forget(user_id)
    return answer(_member(member))


@router.get(
    "/api/v1/teams/<team_id>/invitations",
    summary="List the invitations of a team",
    tags=["teams"],
    responses=answers(200, Answer[InvitationsShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.PERSON)
def list_invitations(team_id: str) -> Response[str]:
    _managed(team_id)
    return answer(InvitationsShape.of(_runtime.api().owners.invitations(team_id)))


@router.post(
    "/api/v1/teams/<team_id>/invitations",
    summary="Invite a person to a team",
    description="The answer is the only one that shows the token, by which one person becomes a member.",
    tags=["teams"],
    responses=answers(201, Answer[NewInvitationShape], errors=(400, 401, 403, 404, 413, 415, 503)),
)
@needs(Need.PERSON, action="team.invite")
def invite(team_id: str, body: Annotated[InvitationRequest, Body()]) -> Response[str]:
    _managed(team_id)
    made = teams.invite(team_id, body.role, body.expires_in_days, router.caller.id, _runtime.api())
    return answer(NewInvitationShape.made(made.invitation, made.token), 201)


@router.delete(
    "/api/v1/teams/<team_id>/invitations/<invitation_id>",
    summary="Withdraw an invitation",
    tags=["teams"],
    responses=answers(200, Answer[InvitationsShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.PERSON, action="team.withdraw")
def withdraw_invitation(team_id: str, invitation_id: str) -> Response[str]:
    ports = _runtime.api()
    _managed(team_id)
    if not ports.owners.delete_invitation(team_id, invitation_id):
        raise NotFound("there is no such invitation")
    return answer(InvitationsShape.of(ports.owners.invitations(team_id)))


@router.post(
    "/api/v1/invitations/accept",
    summary="Accept an invitation",
    tags=["teams"],
    responses=answers(200, Answer[TeamShape], errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.PERSON, action="team.accept")
def accept_invitation(body: Annotated[AcceptRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    member = teams.accept(body.token, router.caller.id, ports)
    _forget(member.person)
    return answer(TeamShape.of(teams.find(member.team, ports), member.role))


def _mine() -> list[tuple[Profile, TeamRole]]:
    ports = _runtime.api()
    return teams.of_caller(ports.users.owner(router.caller.id).memberships, ports)


def _seen(id: str) -> Profile:
    """A team of the caller; for operators, any team. Raises NotFound for others: they do not learn that it exists."""
    caller = _caller(id)
    if re.fullmatch(OWNER_ID, id) is None or not (caller.sees(id) or caller.may(Need.OVERSEE)) or id == caller.owner:
        raise NotFound("there is no such team")
    return teams.find(id, _runtime.api())


def _managed(id: str) -> Profile:
    """A team that the caller manages; for administrators, any team. Raises NotFound, and Forbidden for other members."""
    team, caller = _seen(id), _caller(id)
    if not caller.may(Need.MANAGE, id) and not caller.may(Need.ADMINISTER):
        raise Forbidden(REFUSALS[Need.MANAGE])
    return team


def _caller(id: str) -> Caller:
    """The caller, by the present record unless the record of this process makes the caller a manager of the team."""
    caller = router.caller
    return caller if caller.may(Need.MANAGE, id) else _runtime.api().callers.again(caller)


def _person(id: str) -> str:
    if re.fullmatch(OWNER_ID, id) is None:
        raise NotFound("there is no such member")
    return id


def _shown(team: Profile) -> Json:
    rights = _caller(team.id).rights
    return TeamShape.of(team, None if rights is None else rights.teams.get(team.id))


def _member(member: Membership) -> Json:
    return MemberShape.of(member, _runtime.api().names.of([member.person]).get(member.person))


def _forget(*ids: str) -> None:
    for id in ids:
        _runtime.api().quotas.forget(id)
