"""Watch a daemon without taking part: events, and the state twice a second, for ten seconds or as many as asked."""

import sys
import time

from bridge import Observer

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
with Observer() as observer:
    end, due = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        observation = observer.receive(timeout_ms=100)
        if observation is None:
            continue
        fields = observation.fields
        if observation.kind == "event":
            missed = f"   ({observation.lost} missed before)" if observation.lost else ""
            print(f"event {fields['seq']} of {fields['source']}: {fields['text']}{missed}")
        elif time.monotonic() >= due:
            due = time.monotonic() + 0.5
            force = fields["wrench"][:3]
            print(
                f"tick {fields['tick']}: {fields['state_name']}, force {force[0]:.2f} {force[1]:.2f} {force[2]:.2f} N"
            )
