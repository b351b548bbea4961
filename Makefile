# Each target is one command, so that nobody needs make.
.PHONY: setup check test demo ci constraints

setup:  ## install everything into .venv
	python3 try.py --version

check:  ## every static check
	python3 try.py check

test:  ## all tests
	python3 try.py test

demo:  ## the guided run
	python3 try.py demo

ci:  ## what a commit must pass, on two Pythons and two PostgreSQL versions
	bash .ci/run

constraints:  ## pin the newest versions that pyproject.toml allows
	bash .ci/pins
