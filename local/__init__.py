"""Punctual on one machine: the real stack, deployed by the CDK onto a local AWS (MiniStack). Each command has a file:

python -m local.run   start, deploy, post sample jobs and show them live (`make run`)
python -m local.stop  stop runs, and clean up after runs that were killed (`make stop`)
"""
