"""The study of Ahmed, Hu, Acharya and Ding (JMLR 2021): its settings, tables, claims, deep competitors and report.

Run from the root of the repository: ``python -m studies.ahmed2021 --help``, or ``make study``. docs/study.md describes
the study, docs/reproduction.md has its outcome.
"""
