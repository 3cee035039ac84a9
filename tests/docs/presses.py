"""The tutorial's presses: messages in the units of sensors, and their true state. Seeded."""
import json
import random

STATES = [(24.0, 0.1, (0.1, 0.1, 0.1)), (61.0, 0.4, (3.1, 3.0, 3.2)), (83.0, 0.9, (4.9, 2.1, 5.3))]


def messages(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        state = rng.randrange(3)
        temp, rms, current = STATES[state]
        yield json.dumps({
            "temp": round(rng.gauss(temp, 6), 1),
            "vibration": {"rms": round(abs(rng.gauss(rms, 0.15)), 3)},
            "current": [round(rng.gauss(c, 0.4), 2) for c in current],
            "state": state,
        }) + "\n"
