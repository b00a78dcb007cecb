"""States of bodies that move, as they stand behind a record."""

import numpy as np
from moving_scene import MOVING, START, push, scene

from haptics.bodies import sample_bodies
from haptics.tables import BODY_SAMPLE, RECORD, record_type
from rtcore.state import make_state


def test_each_body_that_moves_has_its_row_and_nothing_else_is_written():
    model = scene()
    state = make_state(model, START)
    push(model, state, 0, 120)
    samples = np.zeros(len(MOVING) + 1, BODY_SAMPLE)
    samples.view(np.uint8)[:] = 0x5A
    sample_bodies(state.poses, state.velocities, state.pairs.movers, samples)
    rows = list(MOVING)
    for name, table in (
        *(("position", state.poses), ("orientation", state.poses)),
        *(("linear", state.velocities), ("angular", state.velocities)),
    ):
        assert samples[name][:-1].tobytes() == table[name][rows].tobytes()
    assert np.abs(samples["linear"][:-1]).max() > 0.04
    assert set(samples[-1:].tobytes()) == {0x5A}


def test_a_record_with_bodies_begins_with_a_record():
    """The kernels take the first part as it is."""
    whole = np.zeros(1, record_type(3))
    raw = whole.view(np.uint8)
    raw[: RECORD.itemsize].view(RECORD)["output"]["wrench"][0, 2] = 7.0
    raw[RECORD.itemsize :].view(BODY_SAMPLE)["angular"][2] = (1.0, 2.0, 3.0)
    assert whole["output"]["wrench"][0, 2] == 7.0
    assert whole["bodies"]["angular"][0, 2].tolist() == [1.0, 2.0, 3.0]
    assert whole.nbytes == RECORD.itemsize + 3 * BODY_SAMPLE.itemsize
