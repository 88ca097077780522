# `make help` lists what there is. Everything runs in the project's own environment (.venv, node_modules).

PY := .venv/bin/python
CDK := node_modules/.bin/cdk
unexport PYTHONDONTWRITEBYTECODE # some machines set it; compiling everything anew costs each `make check` a quarter of its time
export JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION := 1
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

.DEFAULT_GOAL := help
.PHONY: help setup console docs prose run demo burst drill load prove stop test audit check fuzz bench simulate synth reference templates deploy doctor destroy admin recount lock clean types \
	unit contract rest long simulated faults killed apart need-stage

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install everything into .venv and node_modules (instant when nothing changed)
	@./local/setup.sh

console: setup ## The web console into console/dist (instant when nothing changed)
	@./local/console.sh

run: setup console ## The whole stack on this machine, sample jobs live in the terminal until Ctrl-C (PORT=4566)
	@$(PY) -m local.run

demo: setup console ## The same scripted: a fresh stack, sixty jobs and a task, a verdict; exit code 1 if a job was not on time
	@$(PY) -m local.demo

burst: setup ## A thousand jobs for one instant on the stack that `make run` has up (N=1000), and how late they started
	@$(PY) -m local.burst $(N)

drill: setup console ## What is promised, shown on a fresh stack, each round in minutes (ONLY="batch edits kill limits ...")
	@$(PY) -m local.drill $(ONLY)

load: setup console ## 10,000 jobs for one instant, 200 a second for five minutes, on a fresh stack: delays, backlog, memory
	@$(PY) -m local.load

prove: setup console need-stage ## Measure a stage on AWS, or STAGE=local, beside EventBridge Scheduler (OPTIONS="--short"); asks first
	@$(PY) -m prove --stage $(STAGE) $(OPTIONS)

stop: setup ## Stop what runs on this machine, and clean up after runs that were killed
	@$(PY) -m local.stop

test: check console ## All tests; the system tests deploy the stack on a local AWS with IAM enforced (needs Chromium)
	@echo "The long tests, the faults and the stacks apart run side by side and print when they are done, in ten minutes or so."
	@$(MAKE) --no-print-directory -j6 --output-sync=target long simulated faults killed apart templates
	$(PY) -m pytest -m "system and not apart"

audit: setup ## Known holes in what we depend on, by the advisories of PyPI and npm (needs the network)
	$(PY) -m uv tool run --from pip-audit==2.10.1 pip-audit --strict --disable-pip --require-hashes -r requirements.txt
	npm audit --package-lock-only

check: setup ## Lint, types and the fast tests: a minute
	@$(MAKE) --no-print-directory -j4 --output-sync=target types rest unit contract

types:
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

unit:
	$(PY) -m pytest -m "not system and not long" tests/unit

contract: # with the simulation: each of the three takes about as long
	$(PY) -m pytest -m "not system and not long" tests/contract tests/simulation

rest:
	$(PY) -m pytest -m "not system and not long" --ignore tests/unit --ignore tests/contract --ignore tests/simulation

long: # these two only compute, so the stacks beside them come first
	nice $(PY) -m pytest -m "long and not system" --ignore tests/simulation

simulated:
	nice $(PY) -m pytest -m long tests/simulation

faults:
	$(PY) -m pytest tests/system/test_faults.py

apart:
	$(PY) -m pytest -m apart --ignore tests/system/test_faults.py --ignore tests/system/test_kill.py --ignore tests/system/test_prove.py

killed:
	$(PY) -m pytest -m apart tests/system/test_kill.py tests/system/test_prove.py

fuzz: setup ## Properties, handlers and the API with other examples each time; a failure prints what repeats it
	$(PY) -m pytest --hypothesis-profile=exploring -m "hypothesis and not system"
	$(PY) -m pytest --hypothesis-profile=exploring tests/lambdas/test_fuzz_api.py

bench: setup console ## Start delays, CPU and write units per job, next runs per second, against the budgets
	@$(PY) -m bench

simulate: setup ## The long simulation: the real services in virtual time, with faults
	@$(PY) -m tests.simulation

# A template can be made where nothing can compile for AWS; `make deploy` fails there.
synth: setup ## The CloudFormation templates of a stage into cdk.out, without credentials (STAGE=dev|prod)
	$(CDK) synth --quiet -c stage=$(or $(STAGE),dev) -c bytecode_optional=true

reference: setup ## The OpenAPI document and the tables made of it, in docs/reference, after a change of the API
	@$(PY) -m local.openapi
	@$(PY) -m local.reference

templates: setup ## cfn-lint of the templates of dev and prod, for three regions (needs the network)
	@for stage in dev prod; do $(CDK) synth --quiet -c stage=$$stage -c bytecode_optional=true -o cdk.out/$$stage || exit 1; done
	$(PY) -m uv tool run --from cfn-lint==1.58.0 cfn-lint --regions us-east-1 eu-central-1 ap-southeast-1 \
		-- cdk.out/dev/*.template.json cdk.out/prod/*.template.json

deploy: setup console need-stage ## Deploy a stage with the options in stages/<stage>.toml (STAGE=dev|prod); docs/get-started/aws.md has the steps
	@$(PY) -m local.rollout --stage $(STAGE) $(if $(BYTECODE_OPTIONAL),--bytecode-optional)

doctor: setup need-stage ## Check a deployed stage from here: credentials, limits, clock, stacks, lag (STAGE=dev|prod|local)
	@$(PY) -m local.doctor --stage $(STAGE)

destroy: setup need-stage ## Delete a stage with what is in its buckets; prod keeps its data (STAGE=dev|prod ONLY=console YES=1)
	@$(PY) -m local.destroy --stage $(STAGE) $(if $(ONLY),--only $(ONLY))

admin: setup need-stage ## Make the first administrator of a stage on AWS (STAGE=dev USERNAME=admin)
	@$(PY) -m local.user --stage $(STAGE) --username $(or $(USERNAME),admin)

recount: setup need-stage ## Count all jobs and tasks of a stage on AWS again, and correct its counters (STAGE=dev)
	@$(PY) -m local.recount --stage $(STAGE)

prose: setup ## The language of all Markdown: sentences, lines, phrases (FILES="README.md docs/guides" for some of it)
	node_modules/.bin/textlint --rulesdir lint $(or $(FILES),*.md docs examples)

docs: setup ## The documentation site into site/; a broken link or anchor fails
	@$(PY) -m local.site

lock: setup ## Resolve the dependencies from scratch and write both locks
	$(PY) -m uv pip compile pyproject.toml --group dev --universal --generate-hashes -o requirements.txt
	$(PY) -m uv pip compile pyproject.toml --universal --generate-hashes -c requirements.txt -o lambdas/requirements.txt

clean: ## Stop everything and delete the local stack, its jobs, and all caches (not .venv and node_modules)
	@if [ -x $(PY) ]; then $(PY) -m local.stop; fi
	rm -rf .local cdk.out site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -not -path './node_modules/*' -prune -exec rm -rf {} +

need-stage:
	@if [ -z "$(STAGE)" ]; then echo "Say which stage: make $(MAKECMDGOALS) STAGE=dev" >&2; exit 1; fi
