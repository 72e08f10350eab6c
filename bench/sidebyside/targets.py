# SPDX-License-Identifier: Apache-2.0
"""What fncache must be worth: the figures that rows are judged by.

The first figure is required, `then` is where it should end up, `floor` is what
CI insists on with --check: it holds on a busy machine, and a collapse breaks
it.
"""

from .results import Target

# CPU per hit: the limit's over ours, by shape.
HITS_CONTENT_ONE = {
    "4k": Target(1.3, floor=0.45),
    "17k": Target(1.0, floor=0.30),
    "130k": Target(0.75, floor=0.20),
}
HITS_CONTENT_MANY = {
    "4k": Target(1.3, floor=0.45),
    "17k": Target(0.85, floor=0.30),
    "130k": Target(0.50, floor=0.20),
}
HITS_TAG = {
    "4k": Target(1.5, floor=0.45),
    "17k": Target(1.5, floor=0.45),
    "130k": Target(1.5, floor=0.45),
}
# Hits/s over nginx's calls/s in front of the instant function.
HITS_NGINX_CONTENT = {
    "4k": Target(1.5),
    "17k": Target(1.5),
    "130k": Target(0.8),
}
HITS_NGINX_TAG = {
    "4k": Target(1.5),
    "17k": Target(1.5),
    "130k": Target(1.4),
}
# Unique misses/s over nginx's and over our own `mode: off`.
MISSES_NGINX = {
    "4k": Target(1.0, then=1.5),
    "17k": Target(1.0, then=1.5),
    "130k": Target(0.85, then=1.5),
}
MISSES_OFF = {
    "4k": Target(0.90),
    "17k": Target(0.85),
    "130k": Target(0.75),
}
# CPU per hit and per miss with `tune: on`, of 17 KB: that over one without.
TUNED_HIT_OVER_HIT = Target(1.15, at_least=False)
HIT_ACROSS_DRIFT_OVER_HIT = Target(1.5, at_least=False)
DRIFTED_MISS_OVER_MISS = Target(1.25, at_least=False)
# CPU per hit with `vary: on` of 130 KB, of which two fields were read, over one
# with `key: tag`.
HIT_BY_HINT_OVER_TAG = Target(1.3, at_least=False)
# CPU per unique miss: nginx's over ours.
MISSES_NGINX_CPU = {
    "4k": Target(1.3),
    "17k": Target(1.0),
    "130k": Target(0.65),
}
# Calls/s of `mode: off` over haproxy's.
OFF_HAPROXY = {
    "4k": Target(1.0),
    "17k": Target(1.0),
}
# The digest of requests of 17 KB and above, maps shuffled.
DIGEST_GBPS = Target(1.5, then=2.5)
# A digest of what another encoder wrote, over that of what Go did.
DIGEST_ENCODER_OVER_GO = Target(1.2, at_least=False)
# A digest with the three named sets of masks, over one without masks.
DIGEST_MASKED_OVER_PLAIN = Target(1.1, at_least=False)
# A digest with `tune: on`, over one without.
DIGEST_TUNED_OVER_PLAIN = Target(1.15, at_least=False)
DIGEST_OVER_PARSE = Target(8.0, floor=3.0)

OVERHEAD_BYTES = Target(96, at_least=False)
# With `tune: on`: what the drift digest adds to an entry, and a key's evidence.
DRIFT_DIGEST_BYTES = Target(16, at_least=False)
EVIDENCE_BYTES = Target(400, at_least=False)
RESIDENT_OVER_COUNTED = Target(1.15, at_least=False)
CPU_MANY_ENTRIES = Target(1.1, at_least=False)
# One call at a time on each; and at one rate for all.
CPU_MANY_CONNECTIONS = {
    "closed": Target(1.4, at_least=False),
    "open": Target(1.25, at_least=False),
}
# Resident size of one that is idle after a call.
IDLE_BYTES = {
    "plaintext": Target(24_000, at_least=False),
    "tls": Target(52_000, at_least=False),
}
DISK_OVER_MEMORY = Target(0.4)
P99_BESIDE_DISK = Target(1.5, at_least=False)
ALLOCATIONS_ABOVE_LIMIT = Target(2.0, at_least=False)
START_SECONDS = Target(1.0, at_least=False)
