# SPDX-License-Identifier: Apache-2.0
"""One module per question. Each has

  plan(profile) -> seconds that it will take, and
  run(bench)    which measures, and adds series and rows to bench.results.
"""
