# `make help` lists the targets. Everything runs in the project's own environment (.venv, node_modules).

PY := .venv/bin/python
CDK := node_modules/.bin/cdk
unexport PYTHONDONTWRITEBYTECODE # some machines set it; each `make check` would compile everything again, a quarter of its time

.DEFAULT_GOAL := help
.PHONY: help setup console docs diagrams screenshots prose run demo burst drill load prove compare stop test upgrade-test parity soak audit check fuzz bench simulate synth reference templates deploy rotate rollback doctor destroy admin recount lock clean types sbom dist \
	unit contract rest client client-ts long simulated covered faults killed ratios apart system pairs console-unit stacks-a stacks-b chromium need-stage

help: ## List the targets
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Run it

run: setup console ## Run the whole stack on this machine, with sample jobs shown live, until Ctrl-C (PORT=4566)
	@$(PY) -m local.run

demo: setup console ## Run a scripted demo on a fresh stack: sixty jobs and a task; exit code 1 if a job was not on time
	@$(PY) -m lab.scenarios.demo

burst: setup ## Post N jobs for one instant to the stack of `make run`, and show their start delays (N=1000)
	@$(PY) -m lab.scenarios.burst $(N)

drill: setup console ## Try each promise on a fresh stack, in rounds of minutes (ONLY="batch edits kill limits ...")
	@$(PY) -m lab.scenarios.drill $(ONLY)

load: setup console ## Post 10,000 jobs for one instant, then 200 a second for five minutes: delays, backlog, memory
	@$(PY) -m lab.scenarios.load

console: setup ## Build the web console into console/dist (instant if nothing changed)
	@./local/console.sh

setup: ## Install all dependencies into .venv and node_modules (instant if nothing changed)
	@./local/setup.sh

stop: setup ## Stop the runs of this folder, also those of other terminals, and clean up after killed runs
	@$(PY) -m local.stop

clean: ## Stop everything, and delete the local stack, its jobs and all caches (.venv and node_modules stay)
	@if [ -x $(PY) ]; then $(PY) -m local.stop; fi
	rm -rf .local .compare site dist client-ts/build client-ts/dist cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find . -name __pycache__ -not -path './.venv/*' -not -path './node_modules/*' -prune -exec rm -rf {} +

##@ Deploy it

deploy: setup console need-stage ## Deploy a stage with the options in stages/<stage>.toml (STAGE=dev); docs/get-started/aws.md has the steps
	@$(PY) -m ops.rollout --stage $(STAGE) $(if $(BYTECODE_OPTIONAL),--bytecode-optional)

rotate: setup console need-stage ## Deploy a stage with a new origin secret, by which its API recognizes CloudFront (STAGE=dev)
	@$(PY) -m ops.rollout --stage $(STAGE) --rotate

rollback: setup need-stage ## Let all functions of a stage run the version before the last deployment (STAGE=dev YES=1)
	@$(PY) -m ops.versions --stage $(STAGE)

admin: setup need-stage ## Create the first administrator of a stage on AWS (STAGE=dev USERNAME=admin)
	@$(PY) -m ops.user --stage $(STAGE) --username $(or $(USERNAME),admin)

doctor: setup need-stage ## Check a deployed stage: credentials, limits, clock, stacks, lag, pauses (STAGE=dev|local)
	@$(PY) -m ops.doctor --stage $(STAGE)

prove: setup console need-stage ## Measure a stage beside EventBridge Scheduler; asks first (STAGE=dev|local OPTIONS="--short")
	@$(PY) -m prove --stage $(STAGE) $(OPTIONS)

recount: setup need-stage ## Count all jobs and tasks of a stage on AWS, and correct its counters (STAGE=dev)
	@$(PY) -m ops.recount --stage $(STAGE)

destroy: setup need-stage ## Delete a stage and the content of its buckets; prod keeps its data (STAGE=dev ONLY=console YES=1)
	@$(PY) -m ops.destroy --stage $(STAGE) $(if $(ONLY),--only $(ONLY))

# Templates can be written without a compiler for AWS; `make deploy` fails without one.
synth: setup ## Write the CloudFormation templates of a stage into cdk.out, without credentials (STAGE=dev)
	$(CDK) synth --quiet -c stage=$(or $(STAGE),dev) -c bytecode_optional=true

need-stage:
	@if [ -z "$(STAGE)" ]; then echo "Specify the stage: make $(MAKECMDGOALS) STAGE=dev" >&2; exit 1; fi

##@ Develop it

check: setup ## Lint, check types and run the fast tests, in about a minute
	@$(MAKE) --no-print-directory -j4 --output-sync=target $(FAST)

FAST = types rest unit contract client client-ts

types:
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

unit:
	$(PY) -m pytest -m "not system and not long" tests/unit

contract: # and the simulation: each of these three takes about as long
	$(PY) -m pytest -m "not system and not long" tests/contract tests/simulation

rest:
	$(PY) -m pytest -m "not system and not long" tests --ignore tests/unit --ignore tests/contract --ignore tests/simulation

client:
	$(PY) -m pytest -m "not system and not long" client/tests

client-ts: # its types, too; with the compiler of the console
	@cd client-ts && PATH="$(CURDIR)/console/node_modules/.bin:$$PATH" npm test --silent

test: chromium check console ## Run all tests; the system tests deploy the stack on a local AWS with IAM enforced (needs Chromium)
	@echo "The long tests and the tests on local stacks run side by side, and print when they are done: expect half an hour, on a slow machine twice that."
	@CHROMIUM="$$(./local/chromium.sh)" $(MAKE) --no-print-directory -j8 --output-sync=target stacks-a stacks-b long simulated pairs console-unit

chromium: # before anything that takes minutes
	@./local/chromium.sh >/dev/null

parity: setup ## Run the contract tests on MiniStack, moto and dynoxide, a second DynamoDB; unexplained differences fail
	@$(PY) -m tests.parity

upgrade-test: setup console ## The version before beside this one, then a deployment and a roll-back under the traffic of `make load` (25 minutes)
	$(PY) -m pytest -m "soak or not soak" tests/upgrade tests/system/test_upgrade.py

soak: setup console ## Run what takes hours, for a night: all faults on a stack, 200 long seeds, all scenes at full size
	$(PY) -m pytest -m soak
	$(MAKE) --no-print-directory covered
	$(PY) -m tests.simulation --seeds 200 --jobs 10000 --minutes 60 --unexpected 40
	$(PY) -m tests.simulation.scenes
	$(PY) -m tests.simulation.hostile all --factor 4 --seeds 3
	$(PY) -m tests.simulation.hostile long flood --factor 1

stacks-a = system killed ratios
stacks-b = faults apart
stacks-a stacks-b: # one stack after the other, whatever fails: each stack more at the same time delays all of them
	@failed=0; for lane in $($@); do $(MAKE) --no-print-directory $$lane || failed=1; done; exit $$failed

system:
	$(PY) -m pytest -m "system and not apart" tests/system

long: # what only computes leaves the processor to the stacks, where times are measured
	nice -n 10 $(PY) -m pytest -m "long and not system and not templates" tests client/tests --ignore tests/simulation

covered: # how much of the package that users install; counting takes as long as the tests
	$(PY) -m coverage run -m pytest -m "not system" client/tests
	$(PY) -m coverage report

simulated:
	nice -n 10 $(PY) -m pytest -m long tests/simulation

faults:
	$(PY) -m pytest tests/system/test_faults.py

pairs: # of options, half of the files with each stage
	nice -n 10 $(PY) -m pytest -m templates tests/infra/test_every_option.py -k "pairs and (first and dev or second and prod)"

apart:
	$(PY) -m pytest -m apart tests/system --ignore tests/system/test_faults.py --ignore tests/system/test_kill.py

console-unit: # its types, too
	cd console && npm test

killed:
	$(PY) -m pytest -m apart tests/system/test_kill.py

ratios:
	$(PY) -m bench.ratios --only cpu --rounds 3

fuzz: setup ## Run properties, handlers and the API with new examples; a failure prints how to repeat it
	$(PY) -m pytest --hypothesis-profile=exploring -m "hypothesis and not system"
	$(PY) -m pytest --hypothesis-profile=exploring tests/lambdas/test_fuzz_api.py

bench: setup console ## Measure delays, CPU, write units, planned runs against budgets (ARGS="--only delay", WHAT="ratios|tasks|tracing|waiting_users")
	@$(PY) -m bench$(addprefix .,$(WHAT)) $(ARGS)

compare: setup console ## Run Punctual and its peers with the same work, one after the other (ARGS="--quick", "--only punctual,pg-boss")
	@$(PY) -m compare $(ARGS)

simulate: setup ## The real services in virtual time, with faults (WHAT="alerting|containers|crash_points|fairness|forecast|hostile|limits|sabotage|scenes")
	@$(PY) -m tests.simulation$(addprefix .,$(WHAT)) $(ARGS)

prose: setup ## Check the language of all Markdown: sentences, lines, phrases (FILES="README.md docs/guides" for some of it)
	node_modules/.bin/textlint --rulesdir lint $(or $(FILES),*.md .github docs examples)

diagrams: chromium setup ## Draw the diagrams of the documentation as pictures, after a change of one (needs Chromium and npm)
	@CHROMIUM="$$(./local/chromium.sh)" $(PY) -m docs_build.diagrams

docs: setup ## Build the documentation site into site/; a broken link or anchor fails
	@$(PY) -m docs_build.site

screenshots: chromium setup console ## Take pictures of the console and a terminal on a fresh stack, for docs/images (needs Chromium)
	@$(PY) -m tests.system.screenshots

reference: setup ## Write the OpenAPI document into docs/reference/openapi.json, after a change of the API
	@$(PY) -m docs_build.openapi
	@$(PY) -m docs_build.tasks_schema
	@$(PY) -m docs_build.reference
	@$(PY) -m docs_build.cli_reference
	@$(PY) -m docs_build.client_fields
	@$(PY) -m docs_build.python_reference

templates: setup ## Deploy each option alone and all pairs of options on paper: cdk-nag, cfn-lint, changes (needs the network)
	$(PY) -m pytest -m templates tests/infra

audit: setup ## List known vulnerabilities of the dependencies, by the advisories of PyPI and npm (needs the network)
	$(PY) -m uv tool run --from pip-audit==2.10.1 pip-audit --strict --disable-pip --require-hashes -r requirements.txt
	npm audit --package-lock-only

sbom: setup ## Write CycloneDX bills of materials of the functions and the console into sbom/, from the locks (needs the network)
	@$(PY) -m ops.sbom

dist: setup console ## Build the distributions for a package index into dist/
	@rm -rf dist
	cd client && $(CURDIR)/$(PY) -m hatchling build -t wheel -t sdist -d $(CURDIR)/dist
	cd server && $(CURDIR)/$(PY) -m hatchling build -t wheel -t sdist -d $(CURDIR)/dist

lock: setup ## Resolve the dependencies from scratch, and write both locks
	$(PY) -m uv pip compile pyproject.toml --group dev --universal --generate-hashes -o requirements.txt
	$(PY) -m uv pip compile pyproject.toml --universal --generate-hashes -c requirements.txt -o lambdas/requirements.txt
