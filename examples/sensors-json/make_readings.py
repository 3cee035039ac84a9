#!/usr/bin/env python3
"""Writes readings.jsonl: a pump's readings with its state (0 off, 1 running, 2 failing). Seeded."""
import json
import random
import sys

random.seed(7)
centres = [(20.0, 0.1, (0.0, 0.0, 0.0)), (45.0, 1.0, (4.0, 4.1, 3.9)), (70.0, 3.0, (5.5, 3.0, 6.0))]
out = open(sys.argv[1], "w") if len(sys.argv) > 1 else sys.stdout
for _ in range(2000):
    state = random.randrange(3)
    temp, rms, current = centres[state]
    row = {
        "temp": round((random.gauss(temp, 6) - 45) / 20, 4),
        "vibration": {"rms": round(random.gauss(rms, 0.4), 4), "peak": 1.0},
        "current": [round(random.gauss(c, 0.5) / 4, 4) for c in current],
        "state": state,
    }
    print(json.dumps(row), file=out)
