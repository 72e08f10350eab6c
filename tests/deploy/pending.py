# SPDX-License-Identifier: Apache-2.0
"""Metrics that dashboard and alerts name and the binary does not have yet. A
test fails for one that docs/metrics.md has: take it out of here then."""
METRICS: set = set()
