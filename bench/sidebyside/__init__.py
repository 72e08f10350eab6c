# SPDX-License-Identifier: Apache-2.0
"""The side-by-side benchmark: fncache, the limit and its peers in one run.

bench/run and bench/compare are the ways in. Read in this order: profiles
(what is measured, for how long), contest (how runs interleave), servers (what
is measured), sections/ (one module per question), results (rows and verdicts),
then table, report and markdown, which only show a results file.
"""
