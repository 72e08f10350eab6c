# SPDX-License-Identifier: Apache-2.0
"""bench/fleet: what a fleet with the shared tier is worth, and what it costs.

lab      servers, daemons and loads
runs     function runs of a fleet, beside those of one daemon
costs    CPU and time of a shared hit, and what a fill costs the server
stopped  misses beside a server that is stopped
memory   hits from memory with the tier, and the size of values
report   the tables
"""
