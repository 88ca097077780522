"""The structure of the code: allowed imports, use of the clock, names of files."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.language import FOLDERS, PACKAGES

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path for name in PACKAGES if name not in ("punctual", "examples") for path in (ROOT / FOLDERS.get(name, name)).rglob("*.py")
)
VERBS = {
    "api",
    "tick",
    "plan",
    "worker",
    "execute",
    "bury",
    "fetch",
    "project",
    "notify",
    "announce",
    "scale",
    "provision",
    "intake",
    "conclude",
    "declare",
}
STEPS = {
    "worker": "scheduler.pipeline.worker.work",  # its messages name the service: dispatch, overflow, closing, redrive ...
    "notify": "scheduler.notify.invocation.process",  # it calls notify for each batch
}
TRIGGERED_BY_HTTP = "api"  # it calls submit, cancel, history and others; every other verb has one service of its own name
NOT_PURE = (
    "boto3",
    "botocore",
    "aws_lambda_powertools",
    "pydantic",
    "aws_cdk",
    "constructs",
    "scheduler.storage.aws",
    "lambdas",
    "infra",
    "local",
    "ops",
)
LAYERS = ["model", "storage", "targets", "sharing", "groups", "admission", "pipeline", "dead_letters", "jobs", "callbacks", "tasks"]
LAYERS += ["operations", "notify", "monitors", "insight", "accounts", "intake", "declarations", "storage.memory", "storage.aws"]
ENGINE = ("pipeline", "jobs", "callbacks")  # packages of services only: adapters and infrastructure import none of them
POWERTOOLS = "aws_lambda_powertools"
DOCUMENTED = {  # an update keeps the names that its documentation has
    *("Logger", "logging.formatter.LambdaPowertoolsFormatter", "metrics.EphemeralMetrics", "metrics.MetricUnit"),
    *("event_handler.APIGatewayHttpResolver", "event_handler.Response", "event_handler.router.APIGatewayHttpRouter"),
    *("event_handler.content_types.APPLICATION_JSON", "event_handler.exceptions.NotFoundError"),
    *("event_handler.openapi.models.HTTPBearer", "event_handler.openapi.models.OpenAPI"),
    *(f"event_handler.openapi.params.{place}" for place in ("Body", "Path", "Query")),
    *("shared.cookies.Cookie", "shared.cookies.SameSite"),
}
UNDOCUMENTED = {"body_field", "dependant", "exception_handler_manager", "log_format", "openapi_config", "openapi_path"}
CLOCKS = {("time", word) for word in ("time", "time_ns", "monotonic", "monotonic_ns")}
CLOCKS |= {("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}
READS_THE_CLOCK = (
    "lambdas/_clock.py",
    "lambdas/_pool.py",
    "lambdas/_child.py",
    "lambdas/_children.py",
    "scheduler/targets/",
    "local/",
    "ops/",
    "lab/scenarios/",
    "server/src/punctual_server/dev/__init__.py",
    "server/src/punctual_server/memory/pool.py",
    "bench/",
    "compare/",
    "prove/",
)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


def imported_by(statement: ast.AST) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    return [f"{statement.module}.{alias.name}" for alias in statement.names] if isinstance(statement, ast.ImportFrom) else []


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, at any place."""
    return tuple(module for node in nodes(path) for module in imported_by(node))


def within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def under(*folders: str, but: tuple[str, ...] = ()) -> list[Path]:
    return [path for path in SOURCES if name(path).startswith(folders) and not name(path).startswith(but or ("-",))]


def importers(paths: list[Path], packages: tuple[str, ...], but: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Return what each of these files imports from the packages, without the files that import nothing from them."""
    found = {name(path): [each for each in imports(path) if within(each, packages) and not within(each, but)] for path in paths}
    return {file: modules for file, modules in found.items() if modules}


def service(verb: str) -> str:
    """Return the one module of a feature package that is named after the verb; empty unless there is exactly one."""
    found = [path for path in (ROOT / "scheduler").glob(f"*/{verb}.py") if path.parent.name not in ("model", "storage")]
    return ".".join(found[0].relative_to(ROOT).with_suffix("").parts) if len(found) == 1 else ""


def layer(module: str) -> str:
    """Return the package of `LAYERS` of a `scheduler` module. The ports are one layer, each of their implementations another."""
    parts = module.split(".")
    return ".".join(parts[1:3]) if parts[1] == "storage" and len(parts) > 2 and parts[2] in ("aws", "memory") else parts[1]


def module_of(path: Path) -> str:
    """Return the name by which the file is imported."""
    folder = ROOT / "client" / "src" if path.is_relative_to(ROOT / "client") else ROOT
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circle_in(wing: Path) -> list[str]:
    """Return modules of a wing of which each imports the one before it, and the first the last; empty if there is no such circle."""
    files = {module_of(path): path for path in wing.rglob("*.py")}
    named = {module: {each if each in files else each.rpartition(".")[0] for each in imports(path)} for module, path in files.items()}
    try:
        TopologicalSorter({module: others & files.keys() - {module} for module, others in named.items()}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_mypy_reads_every_module_of_cdk_that_the_infrastructure_imports() -> None:
    """A module that it does not read is `Any` to it, silently."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    read = {module for override in settings if override.get("follow_imports") == "normal" for module in override["module"]}
    imported = {module for path in under("infra/") for module in imports(path) if within(module, ("aws_cdk",))}
    services = {".".join(module.split(".")[:2]) for module in imported if module.startswith("aws_cdk.aws_")}
    assert services - read == set() and len(services) > 20


def test_there_are_sources_to_check() -> None:
    assert len(SOURCES) > 50


def test_the_scheduler_imports_nothing_of_aws_outside_its_adapters() -> None:
    assert importers(under("scheduler/", but=("scheduler/storage/aws/",)), NOT_PURE) == {}


def test_a_package_imports_only_from_lower_packages() -> None:
    """Imports for annotations only (`if TYPE_CHECKING`) are checked, too."""
    above = {}
    for path in under("scheduler/", but=("scheduler/__init__.py",)):
        own = layer(".".join(path.relative_to(ROOT).with_suffix("").parts))
        used = {layer(module) for module in imports(path) if within(module, ("scheduler",))} - {own}
        if found := sorted(package for package in used if LAYERS.index(package) > LAYERS.index(own)):
            above[name(path)] = found
    assert above == {}


@pytest.mark.parametrize("wing", ["scheduler", "lambdas", "infra", "client/src", "local", "ops", "docs_build"])
def test_no_modules_import_each_other_in_a_circle(wing: str) -> None:
    """Imports for annotations only are checked, too."""
    assert circle_in(ROOT / wing) == []


def test_the_map_lists_every_package_in_the_order_of_its_layers() -> None:
    text = ast.get_docstring(ast.parse((ROOT / "scheduler" / "__init__.py").read_text())) or ""
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("    ")]
    assert listed == [package for package in LAYERS if "." not in package]
    assert set(listed) == {path.parent.name for path in (ROOT / "scheduler").glob("*/__init__.py")}


def test_adapters_import_only_the_core_and_boto3() -> None:
    foreign = (
        "lambdas",
        "infra",
        "local",
        "ops",
        "aws_cdk",
        "pydantic",
        "scheduler.storage.memory",
        *(f"scheduler.{name}" for name in ENGINE),
    )
    assert importers(under("scheduler/storage/aws/"), foreign) == {}


def test_only_the_adapters_import_boto3() -> None:
    assert importers(under("lambdas/", "infra/"), ("boto3", "botocore")) == {}


def test_handlers_import_nothing_of_the_infrastructure() -> None:
    assert importers(under("lambdas/"), ("infra", "local", "ops", "aws_cdk")) == {}


def test_models_do_not_import_the_composition_root() -> None:
    models = [path for path in under("lambdas/rest/") if path.stem.endswith(("models", "answers", "shapes"))]
    assert len(models) > 3 and importers(models, ("lambdas._runtime",)) == {}


def test_infra_imports_no_handler() -> None:
    """Handlers and infrastructure share only the typed environment."""
    foreign = ("lambdas", "local", "ops", "scheduler.storage", *(f"scheduler.{name}" for name in ENGINE))
    assert importers(under("infra/"), foreign, but=("lambdas._settings",)) == {}


def test_the_bench_builds_on_the_local_stack_and_not_the_reverse() -> None:
    assert importers(under("local/", "ops/"), ("lab", "bench", "compare", "prove", "docs_build")) == {}
    assert importers(under("lab/"), ("bench", "compare", "prove")) == {}
    assert importers(under("lab/world/"), ("local", "lab.scenarios")) == {}
    assert importers(under("bench/"), ("prove",)) == {}
    assert importers(under("server/"), ("lab", "bench", "tests", "infra"), but=("lab.world",)) == {}
    assert importers(under("server/src/punctual_server/memory/"), ("local",)) == {}
    tables = ("tests.contract.tables",)  # as `infra` makes them
    assert importers(under("local/", "ops/", "docs_build/", "lab/", "bench/", "compare/", "prove/"), ("tests",), but=tables) == {}


def test_only_entry_points_read_the_clock() -> None:
    read = {}
    for path in under("", but=READS_THE_CLOCK):
        used = {(node.value.id, node.attr) for node in nodes(path) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
        named = {tuple(module.rsplit(".", 1)) for module in imports(path) if "." in module}
        if found := (used | named) & CLOCKS:
            read[name(path)] = found
    assert read == {}


def test_no_file_has_a_name_without_meaning() -> None:
    empty = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
    files = [*SOURCES, *(ROOT / "tests").rglob("*.py")]
    assert [name(path) for path in files if {path.stem, *path.relative_to(ROOT).parts[:-1]} & empty] == []


def test_every_module_has_a_docstring() -> None:
    assert [name(path) for path in SOURCES if parsed(path).body and not ast.get_docstring(parsed(path))] == []


def test_each_verb_has_a_handler_a_service_and_a_construct() -> None:
    handlers = {path.stem for path in (ROOT / "lambdas").glob("*.py") if not path.stem.startswith("_")}
    constructs = {path.stem for path in (ROOT / "infra").glob("*.py")}
    assert handlers == VERBS
    assert VERBS - {TRIGGERED_BY_HTTP} == {verb for verb in VERBS if service(verb)}
    assert constructs >= VERBS


@pytest.mark.parametrize("verb", sorted(VERBS - {TRIGGERED_BY_HTTP}))
def test_a_handler_is_short_and_calls_its_service(verb: str) -> None:
    path = ROOT / "lambdas" / f"{verb}.py"
    assert len(path.read_text().splitlines()) < 40
    assert STEPS.get(verb, f"{service(verb)}.{verb}") in imports(path)


@pytest.mark.parametrize("path", [ROOT / "lambdas" / f"{verb}.py" for verb in sorted(VERBS)], ids=name)
def test_a_handler_reads_no_environment(path: Path) -> None:
    assert "os" not in imports(path)


def used(tree: ast.AST) -> set[str]:
    """Return the names of attributes, of methods and of keys in a file."""
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return found | {method.name for each in classes for method in each.body if isinstance(method, ast.FunctionDef)}


@cache
def hidden() -> set[str]:
    """Return the private names of Powertools, and public ones that its documentation does not have."""
    spec = find_spec(POWERTOOLS)
    assert spec is not None and spec.origin is not None
    sources = [path.read_text() for path in Path(spec.origin).parent.rglob("*.py")]
    return UNDOCUMENTED.union(*(re.findall(r"\b_[a-z]\w+", source) for source in sources))


def test_handlers_use_documented_names_of_powertools_alone() -> None:
    found = importers(under("lambdas/"), (POWERTOOLS,))
    assert {each for names in found.values() for each in names} <= {f"{POWERTOOLS}.{each}" for each in DOCUMENTED}
    assert {file: names for file in found if (names := used(parsed(ROOT / file)) & hidden())} == {}


@pytest.mark.parametrize("code", ["app._static_routes", "context['_route']", "route.dependant", "class A(B):\n def _get_body(self): ..."])
def test_a_hidden_name_of_powertools_is_found(code: str) -> None:
    assert used(ast.parse(code)) & hidden()


@pytest.mark.long
@pytest.mark.parametrize("verb", ["tick", "worker", "execute"])
def test_a_hot_function_loads_no_heavy_module(verb: str) -> None:
    """A cold start of these functions delays jobs."""
    code = f"import lambdas.{verb}, scheduler.storage.aws.tasks, sys; print(*sys.modules)"  # the modules that `_runtime` loads on first use
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    heavy = (
        "pydantic",
        "pydantic_core",
        "aws_lambda_powertools.event_handler",
        "lambdas.rest.models",
        "lambdas.rest.resolver",
        "lambdas.api",
    )
    heavy += ("scheduler.storage.aws.calls",)  # only jobs that call AWS load it
    heavy += (
        "scheduler.tasks.schedule",
        "scheduler.tasks.schedule_form",
        "scheduler.model.task",
        "scheduler.model.schedule",
        "scheduler.tasks.cron",
        "scheduler.tasks.zones",
    )
    assert f"lambdas.{verb}" in loaded
    assert [module for module in loaded if within(module, heavy)] == []


@pytest.mark.long
def test_the_archive_loads_pydantic_with_its_first_job() -> None:
    code = "import lambdas.project, sys; print(*sys.modules, '|'); import lambdas.rest.job_answers; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    at_start, later = (part.split() for part in done.stdout.split("|"))
    assert "pydantic" not in at_start and "pydantic" in later
    assert [module for module in later if within(module, ("aws_lambda_powertools.event_handler", "lambdas.rest.models"))] == []


def test_the_fetch_function_loads_no_aws_client() -> None:
    code = "import lambdas.fetch, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "scheduler.targets.types.http" in loaded
    aws = [module for module in loaded if within(module, ("boto3", "botocore", "scheduler.storage.aws", "pydantic"))]
    assert set(aws) <= {"botocore"}, "only the bare package is loaded: Powertools writes its name into it"


def test_modules_only_contain_definitions() -> None:
    """An import creates no client, calls no AWS and starts no thread: the only top-level expressions are docstrings."""
    statements = {name(path): [node for node in parsed(path).body if isinstance(node, ast.Expr)] for path in under("scheduler/")}
    calls = {file: [node.lineno for node in found if not isinstance(node.value, ast.Constant)] for file, found in statements.items()}
    assert [(file, lines) for file, lines in calls.items() if lines] == []
