"""Breaks the console in one place for each story: `python -m tests.system.console_breaks` shows that each story then fails (12 minutes).

With arguments, only the stories run that have one of these words in their name.

The script copies the console, breaks the copy in one place for each story, and builds it in a temporary folder. The stories run against
that build on a fresh local stack. A story counts as red only if it fails because of its own break (`seen`). The exit code is 1 if a story
stayed green, failed elsewhere, or has no break. The working tree is not changed.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from local.failure import Trouble, exit_code
from local.home import Home
from local.receiver import Receiver
from local.stack import Stack, up
from local.steps import console, step
from ops.publish import PAGE, publish
from tests.system.conftest import System
from tests.system.test_console import CONSOLE, stories

SOURCES = ("src", "public", "index.html", "reference.html", "package.json", "tsconfig.json", "vite.config.ts")
POLICY = "the headers of the delivery"  # instead of a file: the content security policy is not part of the console's sources


class Break(NamedTuple):
    """One broken place of the console."""

    story: str  # the story that must notice it
    what: str  # description of the break
    seen: str  # text in the story's failure message
    file: str  # below `src`
    old: str = ""
    new: str = ""


BREAKS = (
    Break(
        "a wrong password is refused in words, and nothing is shown",
        "the refusal is not shown",
        "getByText('wrong')",
        "pages/sign-in.tsx",
        "setError(apiError(refused).message);",
        "",
    ),
    Break(
        "sign-in leads to the requested page, and sign-out ends the session",
        "signing out does nothing",
        "getByLabel('Password')",
        "shell.tsx",
        "if (event.detail.id === 'sign-out') end(null);",
        "",
    ),
    Break(
        "an expired session returns to its page after sign-in",
        "it ends without saying so",
        "Your session has expired",
        "api/client.ts",
        "end('expired');",
        "end(null);",
    ),
    Break(
        "an expired token is renewed unnoticed",
        "the new token is not kept",
        "a new token",
        "api/client.ts",
        "goOn({ token: data.token });\n  return 'renewed';",
        "return 'renewed';",
    ),
    Break(
        "the list shows the next run, the last result and the share on time of each task",
        "the share on time is left out",
        "0 %",
        "pages/tasks.tsx",
        "return share === null ? '–' : percent(share);",
        "return '–';",
    ),
    Break(
        "a task by the calendar is created with a preview, runs live, is edited, paused, resumed and deleted",
        "an edit keeps the old name",
        ", edited",
        "pages/task-form.tsx",
        "body: { ...edited, generation: task.generation }",
        "body: { ...edited, name: task.name, generation: task.generation }",
    ),
    Break(
        "the errors of the API stand at their fields",
        "the error of the attempts is not shown",
        "must be at most 25",
        "form/fields.tsx",
        "error={errors['max_attempts']}",
        "error={undefined}",
    ),
    Break(
        "the form sets notifications: a wrong address is refused at its field, and the task page shows the saved ones",
        "the error of an address is not shown",
        "must be one bare e-mail address",
        "form/receivers.tsx",
        "errorText: (_, at) => error(`emails.${at}`),",
        "",
    ),
    Break(
        "leaving a changed form needs a confirmation",
        "nothing is asked",
        "Leave without saving?",
        "parts/unsaved.tsx",
        "useBlocker(() => dirty && !saved.current)",
        "useBlocker(() => false)",
    ),
    Break(
        "a change of the clock is marked in the preview",
        "the mark is left out",
        "gap|shift|clock",
        "form/preview.tsx",
        "run.dst_note === null ? ''",
        "run.dst_note !== null ? ''",
    ),
    Break(
        "the year of a task has its planned and real runs and marks its odd days, at once for every hour",
        "excluded days have no mark",
        "getByText('Excluded: nothing runs')",
        "year.ts",
        "excluded: day.excluded !== null && day.moved_to === null",
        "excluded: false",
    ),
    Break(
        "many are found, run, paused and deleted at once; a nasty name is text",
        "the name is not searched for",
        "only one is left",
        "pages/tasks.tsx",
        "name: name || undefined,",
        "",
    ),
    Break(
        "a waiting job is cancelled",
        "the API is not asked to cancel",
        "getByText('Cancelled', { exact: true })",
        "pages/job.tsx",
        "await take(api.POST('/api/v1/jobs/{job_id}/cancel', { params }));",
        ";",
    ),
    Break(
        "a running job ends while its page is open, with its answer, headers and log",
        "the status of the answer is left out",
        "Response: 200",
        "pages/job.tsx",
        "`Response: ${job.response.status}`",
        "'Response'",
    ),
    Break(
        "a failed job is retried, and redriven with similar ones",
        "the progress of a redrive is not shown",
        "( of this group)? run again",
        "pages/redrive.tsx",
        "show(made.id, expected, owner);",
        "",
    ),
    Break(
        "the ends of the jobs of a group are shown as they come; it is sealed, cancelled, and starts its call-back",
        "the API is not asked to cancel the group",
        "getByText('Ended, cancelled', { exact: true })",
        "pages/group.tsx",
        "else await take(api.POST('/api/v1/groups/{group_id}/cancel', { params }));",
        "",
    ),
    Break(
        "the progress of a worker appears as it reports",
        "its message is left out",
        "page 4 of 10",
        "pages/job.tsx",
        "additionalInfo={progress.message ?? undefined}",
        "",
    ),
    Break(
        "a planned burst appears live, with the minutes that lack executors",
        "too few executors are enough",
        "Scaling is needed",
        "capacity.ts",
        "return minute.required_instances > available;",
        "return minute.required_instances > available + 1_000;",
    ),
    Break(
        "statistics count runs by type, by day and by task",
        "a year is asked for as 30 days",
        "a year has no days",
        "pages/metrics.tsx",
        "query: { scope, days, owner }",
        "query: { scope, days: 30 }",
    ),
    Break(
        "a user is created, changed, disabled and enabled, and all of it is in the audit trail",
        "the weight is not sent",
        "must be at least 0",
        "pages/users.tsx",
        "body: may }))",
        "body: { role: may.role } }))",
    ),
    Break(
        "users change their own password, and see no page of administrators",
        "the two passwords are not compared",
        "does not match",
        "parts/password.tsx",
        "if (wanted !== again) throw",
        "if (false) throw",
    ),
    Break(
        "a target is registered, and a task made for it asks for what is left open, and runs",
        "a task names the target's type instead of the target",
        "name: 'to notes.",
        "form/draft.ts",
        "    type: draft.target === '' ? draft.type : undefined,\n    target: given(draft.target),\n",
        "    type: draft.type,\n    target: undefined,\n",
    ),
    Break(
        "the tasks, jobs and dead letters of one user and of everybody are seen, and the audit trail leads to them",
        "the links of the audit trail do not name the owner",
        "getByRole('heading', { name: 'task of ann",
        "entries.ts",
        "const other = owner === own ? undefined : owner;",
        "const other = owner === own ? undefined : undefined;",
    ),
    Break(
        "a breaker that is open is listed with whose jobs wait, and closed",
        "the API is not asked to close",
        "Closed a breaker",
        "pages/system.tsx",
        "await take(api.POST('/api/v1/system/breakers/close', { body }));",
        "body.reason = '';",
    ),
    Break(
        "a paused queue is seen on its pages with its author and reason, and is resumed on the first page",
        "the reason is left out",
        "the bank is closed",
        "parts/lanes.tsx",
        "<>Reason: <Reason text={lane.reason} /></>",
        "''",
    ),
    Break(
        "after a resume the pages say how many jobs of the queue still wait, until none does",
        "the drain is not shown",
        "was resumed: 9 jobs still wait",
        "parts/lanes.tsx",
        "    ...resumed.map(",
        "    ...[].map(",
    ),
    Break(
        "a page of another role says that your role cannot see it",
        "the page of the users is shown to everybody",
        "expected 1 to be +0",
        "pages/lost.tsx",
        "mayOversee(useRole()) ? children",
        "mayOversee(useRole()) || children !== null ? children",
    ),
    Break(
        "a person makes an API key, which works until it is revoked",
        "the API is not asked to revoke it",
        "the key is gone from the list",
        "pages/keys.tsx",
        "await take(api.DELETE('/api/v1/keys/{key_id}', { params: { path: { key_id: key.id }, query: { owner } } }));",
        "",
    ),
    Break(
        "a person creates a receiver, which has no address in the list, and deletes it",
        "the API is not asked to delete it",
        "the receiver is gone from the list",
        "pages/receivers.tsx",
        "await take(api.DELETE('/api/v1/receivers/{receiver}', { params: { path: { receiver: name }, query: { owner } } }));",
        "",
    ),
    Break(
        "default alerts apply to a task until its form says none; its own rules are shown in words",
        "the form does not send that a task has no alerts",
        "none, and not the default ones",
        "form/alerts.ts",
        "if (draft.none) return {};",
        "",
    ),
    Break(
        "a person creates a monitor, sees its ping and pauses it",
        "the API is not asked to pause it",
        "getByText('Paused')",
        "pages/monitors.tsx",
        "take(api.POST('/api/v1/monitors/{key}/pause', params(monitor)))",
        "Promise.resolve(monitor)",
    ),
    Break(
        "a person creates a calendar, changes its dates and deletes it",
        "the API is not asked to delete it",
        "the calendar is gone from the list",
        "pages/calendars.tsx",
        "await take(api.DELETE('/api/v1/calendars/{calendar_name}', params(name)));",
        "",
    ),
    Break(
        "a manager invites to a team, and the other accepts and sees its task",
        "the console does not know of the new team",
        "name: 'Owner'",
        "pages/invitation.tsx",
        "joined(team);",
        "",
    ),
    Break(
        "a viewer of a team sees its tasks, and no button that changes them",
        "every member may change",
        "what changes the tasks of the team",
        "owners.ts",
        "team !== undefined && team.role !== 'viewer'",
        "team !== undefined",
    ),
    Break(
        "a task that is created in the view of a team belongs to the team",
        "the owner is not sent",
        "level: 1",
        "pages/task-form.tsx",
        "query: { owner } }, body: sent }",
        "query: {} }, body: sent }",
    ),
    Break(
        "all jobs that match are cancelled, with a count before, with progress, and with an end to it",
        "the API is not asked to abort",
        "Cancellation of jobs aborted",
        "parts/progress.tsx",
        "await take(api.POST('/api/v1/operations/{operation_id}/abort', { params: { path: { operation_id: id }, query: { owner } } }));",
        "id += owner ?? '';",
    ),
    Break(
        "all tasks that match are paused, resumed and deleted",
        "the name is not sent, and all tasks match",
        "getByText('3 tasks'",
        "operations.ts",
        "...(chosen.name !== '' && { name: chosen.name }),",
        "",
    ),
    Break(
        "a job is posted after a delay, and duplicated; a failed one runs again with another payload",
        "the form of a duplicate is empty",
        "the form is filled in",
        "pages/job-form.tsx",
        "(job === null ? NEW_JOB : fromJob(job))",
        "(job === null ? NEW_JOB : { ...fromJob(job), ...NEW_JOB })",
    ),
    Break(
        "a failed job shows the error itself, and so does its group of dead letters",
        "only the reason of the scheduler is shown",
        "HTTP 404",
        "why.ts",
        "return { error: failure.message, reason: job.reason === null ? null : withoutError(job.reason, failure.message) };",
        "return { error: withoutError(job.reason ?? '', failure.message) ?? '', reason: null };",
    ),
    Break(
        "the curl command of a form, a job, a task and an empty list of groups sends its request",
        "the command has no body",
        "Command failed",
        "code.ts",
        "    `-d ${shell(writeVisible(body, 2))}`,\n",
        "",
    ),
    Break(
        "jobs are filtered by type, task, tag, status and time; the filter outlives a reload and the way back",
        "the task is not filtered by",
        "2 jobs are listed",
        "pages/jobs.tsx",
        "task: task || undefined,",
        "",
    ),
    Break(
        "tasks are sorted by a column: all of them, and not only those of a page",
        "descending is as ascending",
        "the highest is first",
        "pages/tasks.tsx",
        "sorted(found, order, descending)",
        "sorted(found, order, false)",
    ),
    Break(
        "a bad form names all that is wrong at its top, and shows the first wrong field",
        "the first wrong field is not given the focus",
        "the first wrong field has the focus",
        "form/form-errors.tsx",
        "field?.focus({ preventScroll: true });",
        "",
    ),
    Break(
        "a month is chosen without cron, a month without that day is named, and an error goes when it is mended",
        "each month has its run on the first",
        "3 is chosen",
        "form/repeats.ts",
        "${hour} ${repeat.day} * *",
        "${hour} 1 * *",
    ),
    Break(
        "the two time-outs explain each other",
        "a time-out that never applies is not told",
        "before the call time-out (400 s) applies",
        "form/timeouts.ts",
        "if (call >= whole)",
        "if (call >= whole * 1_000)",
    ),
    Break(
        "an edit sends back what the form does not know",
        "it is left out",
        "what was sent",
        "form/draft.ts",
        "{ ...draft.rest, ...requestOf(draft) }",
        "requestOf(draft)",
    ),
    Break(
        "a long word wraps",
        "it does not",
        "is too wide",
        "styles.css",
        "h1 {\n  overflow-wrap: anywhere;",
        "h1 {",
    ),
    Break(
        "the first Tab skips the navigation",
        "the link leads nowhere",
        "the content has the focus",
        "shell.tsx",
        "content.current?.focus();",
        "",
    ),
    Break("a script in the page itself does not run", "the policy allows scripts in the page", "expected true to be false", POLICY),
    Break(
        "without a network the old content stays, marked as old",
        "it is not said",
        "Not up to date",
        "parts/parts.tsx",
        "if (live.error === null || live.data === null) return null;",
        "if (live.data !== undefined) return null;",
    ),
    Break(
        "an error of the API, a job that is not there, a page that is not there",
        "it is not said what could not be loaded",
        "Could not load tasks",
        "parts/parts.tsx",
        "`Could not load ${what}`",
        "'Error'",
    ),
    Break(
        "an error leads to its documentation, and an empty list to the first step",
        "the link of an error is left out",
        "About this error",
        "parts/parts.tsx",
        "{page !== null && <div><DocsLink href={page}>About this error</DocsLink></div>}",
        "",
    ),
    Break(
        "a body of 100 KB scrolls in its box",
        "the box is as high as its text",
        "to be less than 500",
        "styles.css",
        "max-block-size: 26rem;",
        "",
    ),
    Break(
        "has nothing serious for axe and is not too wide: light, on a desk and on a phone",
        "a button without a name",
        "tasks: button-name",
        "pages/tasks.tsx",
        'ariaLabel="Refresh"',
        "",
    ),
    Break(
        "has nothing serious for axe and is not too wide: dark, on a desk",
        "times are dark in the dark, too",
        "(dark): color-contrast",
        "styles.css",
        ".when {",
        ".when { color: #16191f;",
    ),
    Break(
        "a page of ten thousand tasks is there as quickly as a page of ten",
        "a page asks for four times as many",
        "to be 25",
        "pages/tasks.tsx",
        "const LIMIT = 25;",
        "const LIMIT = 100;",
    ),
    Break(
        "the first load is quick and small",
        "the page of the tasks comes 2.2 s later",
        "to be less than 2000",
        "main.tsx",
        "lazy(() => import('./pages/tasks'))",
        "lazy(() => new Promise((go) => setTimeout(go, 2_200)).then(() => import('./pages/tasks')))",
    ),
)


def broken(text: str, each: Break) -> str:
    """Return the source with this break. Raises Trouble unless it contains the code exactly once: the table is then out of date."""
    if text.count(each.old) != 1:
        raise Trouble(f"{each.file} does not have this once any more, so the break “{each.what}” is impossible: {each.old}")
    return text.replace(each.old, each.new)


def build(folder: Path) -> Path:
    """Build the console with every break below the folder; returns the folder of the build."""
    for name in SOURCES:
        source = CONSOLE / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy(source, folder / name)
    (folder / "node_modules").symlink_to(CONSOLE / "node_modules")
    for each in BREAKS:
        if each.file != POLICY:
            path = folder / "src" / each.file
            path.write_text(broken(path.read_text(), each))
    made = subprocess.run(["node_modules/.bin/vite", "build", "--logLevel", "warn"], cwd=folder, capture_output=True, text=True)
    if made.returncode != 0:
        raise Trouble(f"The broken console could not be built:\n{made.stdout}{made.stderr}")
    return folder / "dist"


def loosen(stack: Stack) -> None:
    """Allow inline scripts in the content security policy."""
    cloudfront = stack.aws.client("cloudfront")
    listed = cloudfront.list_response_headers_policies(Type="custom")["ResponseHeadersPolicyList"]["Items"]
    (policy,) = [item["ResponseHeadersPolicy"] for item in listed]
    found = cloudfront.get_response_headers_policy(Id=policy["Id"])
    wanted = found["ResponseHeadersPolicy"]["ResponseHeadersPolicyConfig"]
    content = wanted["SecurityHeadersConfig"]["ContentSecurityPolicy"]
    content["ContentSecurityPolicy"] = content["ContentSecurityPolicy"].replace("script-src 'self'", "script-src 'self' 'unsafe-inline'")
    cloudfront.update_response_headers_policy(Id=policy["Id"], IfMatch=found["ETag"], ResponseHeadersPolicyConfig=wanted)


def failures(report: Path) -> dict[str, str | None]:
    """Return the failure message of each story that ran; None if it passed."""
    if not report.exists():
        raise Trouble("The stories did not run.")
    found: dict[str, Any] = json.loads(report.read_text())
    results = [result for file in found["testResults"] for result in file["assertionResults"]]
    ran = [each for each in results if each["status"] in ("passed", "failed")]
    return {each["title"]: None if each["status"] == "passed" else "\n".join(each["failureMessages"]) for each in ran}


def verdicts(breaks: Sequence[Break], results: Mapping[str, str | None]) -> list[tuple[str, str, str]]:
    """Return story, break and verdict; the expected verdict is `red`."""
    known = {each.story for each in breaks}
    rows = [(each.story, each.what, _verdict(each, results)) for each in breaks]
    return rows + [(story, "–", "has no break") for story in results if story not in known]


def _verdict(each: Break, results: Mapping[str, str | None]) -> str:
    if each.story not in results:
        return "did not run"
    message = results[each.story]
    if message is None:
        return "green"
    return "red" if each.seen in message else f"failed elsewhere: {' '.join(message.split())[:400]}"


def main() -> int:
    words = sys.argv[1:]
    breaks = [each for each in BREAKS if not words or any(word in each.story for word in words)]
    if not breaks:
        raise Trouble(f"No story has one of these words in its name: {', '.join(words)}")
    if not (CONSOLE / "dist" / PAGE).exists():
        raise Trouble("The web console is not built. Build it: make console")
    with tempfile.TemporaryDirectory(prefix="console-breaks-") as name:
        folder = Path(name).resolve()
        (folder / "console").mkdir()
        with step("Building the broken console"):
            dist = build(folder / "console")
        report = folder / "report.json"
        with Receiver() as receiver, up(Home(folder / "aws"), enforce_iam=True) as stack:
            publish(stack.aws.client("s3"), stack.outputs["ConsoleBucket"], dist)
            loosen(stack)
            chosen = [f"--testNamePattern={'|'.join(re.escape(each.story) for each in breaks)}"] if words else []
            with step(f"Running {len(breaks)} stories, each of which must fail"):
                stories(System(stack, receiver), folder / "pictures", "--reporter=json", f"--outputFile={report}", *chosen, many=True)
        rows = verdicts(breaks, failures(report))
    for row in rows:
        console.print(f"| {' | '.join(row)} |", markup=False)
    bad = [row for row in rows if row[2] != "red"]
    console.print(f"\n{len(rows) - len(bad)} of {len(rows)} stories failed as expected.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
