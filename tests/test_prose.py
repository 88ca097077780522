"""The Markdown of the repository is plain technical English: textlint with the rule lint/plain-english.js."""

import hashlib
import json
import subprocess
from pathlib import Path

from tests.language import ROOT

PLACES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", ".github", "docs", "examples"]

LONG = "One two three four five six seven eight nine ten " * 3
BAD = {
    "Who finds no slot tries again.": "headless",
    "The job waits; whoever holds the lock runs.": "headless",
    "Those that have ended are kept for 30 days.": "headless",
    "What is lost is found in its slot.": "headless",
    "The caller is told that the job ended.": "phrase",
    "The answer tells which field is wrong.": "phrase",
    "A second call is as good as once.": "phrase",
    "The key is kept for ever.": "phrase",
    "The schedule is computed anew.": "phrase",
    "The executor waits so long.": "phrase",
    "- A list item that\n  works the other way round.": "phrase",
    "| field | meaning |\n|---|---|\n| `a` | who may read it |": "headless",
    f"{LONG}and more.": "sentence",
    f"It is{' `code` and a [link](https://example.com)' * 8}.": "sentence",
    f"An {'example ' * 12}. Ends.": "line",
}
GOOD = f"""# Who may do what?

What happens to the job? It waits for {LONG.split(" ten ")[0]} and starts.
The worker that holds the lease sends heartbeats, so `the caller is told anew` is code.

```sh
echo "{LONG}" # who is told
```

| field | meaning |
|---|---|
| `{"x" * 100}` | the job that waits |
"""


def textlint(*places: str, cwd: Path = ROOT) -> dict[str, list[str]]:
    """The messages of each file that has any, by its path."""
    tool, rules = ROOT / "node_modules/.bin/textlint", ROOT / "lint"
    command = [tool, "--rulesdir", rules, "--config", ROOT / ".textlintrc.json", "--format", "json", *places]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return {
        Path(each["filePath"]).relative_to(cwd).as_posix(): [f"line {found['line']}: {found['message']}" for found in each["messages"]]
        for each in json.loads(done.stdout)
        if each["messages"]
    }


def test_bad_sentences_are_found_and_good_ones_pass(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(GOOD)
    for number, text in enumerate(BAD):
        (tmp_path / f"{number}.md").write_text(f"{text}\n")
    found = textlint(".", cwd=tmp_path)
    assert "good.md" not in found
    for number, (text, rule) in enumerate(BAD.items()):
        assert any(f": {rule}" in message for message in found.get(f"{number}.md", [])), text


def test_a_page_for_maintainers_may_have_longer_sentences(tmp_path: Path) -> None:
    text = "One two three four five\nsix seven eight nine ten\n" * 3 + "and then some more words.\n"
    for folder in ("docs/internals", "docs/guides"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "page.md").write_text(text)
    assert list(textlint("docs", cwd=tmp_path)) == ["docs/guides/page.md"]


def test_the_documents_are_plain_english() -> None:
    """`make prose` prints the findings. A page is read again after it or a rule has changed."""
    rules = hashlib.sha256(b"".join(file.read_bytes() for file in (*sorted((ROOT / "lint").iterdir()), ROOT / ".textlintrc.json")))
    cache = ROOT / ".pytest_cache" / f"textlint-{rules.hexdigest()[:16]}"
    assert textlint("--cache", "--cache-location", str(cache), *PLACES) == {}
