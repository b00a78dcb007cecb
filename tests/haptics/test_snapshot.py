"""Snapshot and determinism: a tick is a function of state, input and budget, to the bit; a snapshot is all of it."""

import zlib

import numpy as np
import pytest
import trimesh
from haptics_rig import OWNER, QUIET, REST, Rig, plane_model
from moving_scene import START, push, scene

from haptics.snapshot import HEADER, pack_snapshot, snapshot_size, unpack_snapshot
from haptics.states import CommandKind
from haptics.tables import RECORD, TOUCH
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, FRONT_ENTRY, PAIR, PAIR_TABLE, STEP_REPORT


def session(rig: Rig, ticks: int, seed: int, keep: list) -> None:
    """A lively session; every record after its tick is kept."""
    random = np.random.default_rng(seed)
    position = np.array(rig.sample["position"])
    for k in range(ticks):
        if k % 37 == 5:
            rig.put(int(random.choice([2, 4, 4, 6, 7, 8, 10])), float(random.integers(0, 2)) * 1.0, 1.0)
        if k % 211 == 210:
            rig.put(CommandKind.STOP)
        if random.random() < 0.9:
            position = position + random.normal(0.0, 3e-4, 3) + (0.0, 0.0, 0.05 * (REST - 0.003 - position[2]))
            turn = random.normal(0.0, 0.01, 4) + QUIET
            rig.send(position, orientation=turn / np.linalg.norm(turn), tick=False)
        before = rig.record.copy()
        rig.tick()
        # What went in, and what came out of it.
        before["output"] = rig.record["output"]
        before["input"]["age_ns"] = rig.record["input"]["age_ns"]
        before["tick"] = rig.record["tick"]
        keep.append(before)


def again(model, state, settings, touch, records, buffer_fill: int) -> None:
    """Execute the records' inputs on another state, into a buffer of rubbish; each output must be equal in bits."""
    record = np.zeros(1, RECORD)
    for logged in records:
        record.view(np.uint8)[:] = buffer_fill
        for name in ("tick", "input", "budget"):
            record[name] = logged[name]
        tick(model, state, settings, touch, record)
        for name in record.dtype["output"].names:
            assert record["output"][name].tobytes() == logged["output"][name].tobytes(), (int(record["tick"][0]), name)


@pytest.fixture(scope="module")
def played():
    model = plane_model(friction=0.4, tip_offset=(0.0, 0.01, -0.02), held_at=(0.1, 0.0, 0.03))
    rig = Rig(model, start=(0.0, 0.0, 0.05), ramp_up_ms=20.0, ramp_down_ms=10.0)
    records: list[np.ndarray] = []
    rig.put(CommandKind.LEASE)
    session(rig, 700, 1, records)
    middle = pack_snapshot(rig.state, rig.touch).copy()
    session(rig, 700, 2, records)
    states = {int(r["output"]["state"][0]) for r in records}
    assert len(states) >= 5, "the session is not lively enough to prove anything"
    return rig, records, middle


@pytest.mark.parametrize("rubbish", [0x00, 0x5A, 0xFF])
def test_same_inputs_give_the_same_bits(played, rubbish):
    """Also into a buffer that holds something else: every field of the output is written."""
    rig, records, _ = played
    state, touch = make_state(rig.model, (0.0, 0.0, 0.05)), make_touch(rig.settings)
    again(rig.model, state, rig.settings, touch, records, rubbish)
    assert touch.tobytes() == rig.touch.tobytes()
    assert state.proxy.tobytes() == rig.state.proxy.tobytes()


def test_ticks_after_a_snapshot_are_identical(played):
    rig, records, middle = played
    state, touch = unpack_snapshot(middle.tobytes(), rig.model)
    again(rig.model, state, rig.settings, touch, records[700:], 0)
    assert touch.tobytes() == rig.touch.tobytes()


def test_a_snapshot_comes_back_equal():
    rig = Rig(plane_model(held_at=(0.1, 0.0, 0.03)))
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.002)
    buffer = np.zeros(snapshot_size(rig.model) + 100, np.uint8)
    written = pack_snapshot(rig.state, rig.touch, buffer)
    assert np.shares_memory(written, buffer) and len(written) == snapshot_size(rig.model)
    # A buffer that is longer, as the ring's, does no harm.
    state, touch = unpack_snapshot(buffer, rig.model)
    assert touch.tobytes() == rig.touch.tobytes() and touch["owner"][0] == OWNER
    assert state.proxy.tobytes() == rig.state.proxy.tobytes() and state.poses.tobytes() == rig.state.poses.tobytes()


def test_a_bad_snapshot_is_refused_with_its_reason():
    rig = Rig()
    good = pack_snapshot(rig.state, rig.touch)

    def changed(at: int, value: int = 0x77) -> np.ndarray:
        bad = good.copy()
        bad[at] ^= value
        return bad

    for bad, text in (
        (good[:10], "header"),
        (good[:-1], "bytes"),
        (changed(0), "not a snapshot"),
        (changed(8), "version"),
        (changed(12), "record types"),
        (changed(16), "bodies"),
        (changed(24), "checksum"),
        (changed(len(good) - 5), "checksum"),
    ):
        with pytest.raises(ValueError, match=text):
            unpack_snapshot(bad, rig.model)
    with pytest.raises(ValueError, match="buffer of"):
        pack_snapshot(rig.state, rig.touch, np.zeros(10, np.uint8))


def mesh_model():
    """Two blocks on a finely divided plate, and a block as tool."""
    builder = ModelBuilder()
    plate, block = (trimesh.creation.box(size) for size in ((0.2, 0.2, 0.02), (0.03, 0.03, 0.03)))
    plate = plate.subdivide().subdivide().subdivide()
    plate_id, block_id = (builder.add_mesh(*build_tree(mesh.vertices, mesh.faces)) for mesh in (plate, block))
    builder.add_body(plate_id, (0.0, 0.0, -0.01))
    for x in (-0.06, 0.06):
        builder.add_body(block_id, (x, 0.0, 0.0151))
    return builder.build(0.0, (0.0, 0.0, 0.0), 1e-4, 2e-4, 5e-4, tool_mesh_id=block_id)


def slide(model, state, first: int, last: int) -> list[bytes]:
    """The reports of steps in which the tool slides over the plate and runs against a block."""
    asked, budget, report = make_input(), np.zeros(1, BUDGET), np.zeros(1, STEP_REPORT)
    budget[0] = (20000, 8, 50, 0)
    kept = []
    for k in range(first, last):
        asked["goal_position"] = (-0.02 + 3e-4 * k, 2e-4 * k, 0.0153 + 2e-4 * np.sin(0.2 * k))
        asked["goal_orientation"] = (0.0, 0.0, np.sin(0.002 * k), np.cos(0.002 * k))
        step(model, state, asked[0], budget[0], report[0])
        kept.append(report.tobytes())
    return kept


def spoilt(packed: np.ndarray, model, spoil) -> bytes:
    """A snapshot whose checksum is right but whose numbers a function of the state has changed."""
    state, touch = unpack_snapshot(packed.tobytes(), model)
    spoil(state)
    return pack_snapshot(state, touch).tobytes()


def test_a_mesh_tool_goes_on_from_a_snapshot_to_the_bit():
    """Its contacts too, whose ages and preferences come from the tick before."""
    model = mesh_model()
    state, touch = make_state(model, (-0.02, 0.0, 0.0153)), np.zeros(1, TOUCH)
    slide(model, state, 0, 100)
    packed = pack_snapshot(state, touch)
    assert len(packed) <= snapshot_size(model)
    expected = slide(model, state, 100, 160)
    again, _ = unpack_snapshot(packed.tobytes(), model)
    assert again.contact_memory["count"][0] > 0 and again.contact_memory["rows"]["age"].max() > 0
    assert slide(model, again, 100, 160) == expected
    assert again.contact_memory.tobytes() == state.contact_memory.tobytes()
    for spoil, text in (
        (lambda s: s.fronts["walk_top"].fill(10**6), "holds more of a front"),
        (lambda s: s.fronts["current"].fill(1), "names a node|holds more"),
        (lambda s: s.fronts["walk"].fill(-1), "outside of a front"),
        (lambda s: s.fronts["second_root"].fill(3), "not between the meshes"),
        (lambda s: s.front_entries["first"].fill(10**6), "names a node"),
        (lambda s: s.contact_memory["known"].fill(10**6), "holds more contacts"),
        (lambda s: s.contact_memory["turn"].fill(-1), "names a body"),
        (lambda s: s.contact_memory["rows"]["body_id"].fill(3), "names a body"),
        (lambda s: s.contact_memory["rows"]["second_triangle"].fill(0), "names a triangle"),
        (lambda s: s.contact_memory["rows"]["first_feature"].fill(7), "names a feature"),
        (lambda s: s.broad.order.fill(1), "sort each body once"),
    ):
        with pytest.raises(ValueError, match=text):
            unpack_snapshot(spoilt(packed, model, spoil), model)
    forgetful, _ = unpack_snapshot(packed.tobytes(), model)
    forgetful.contact_memory[:] = 0
    assert slide(model, forgetful, 100, 160) != expected


def bits(state) -> list[bytes]:
    """All of the mechanics that a tick starts from, pairs by their order."""
    pairs = state.pairs
    used = pairs.rows[pairs.order[: pairs.table[0]["count"]]]
    tables = (state.proxy, state.poses, state.velocities, state.contact_memory, pairs.table, used["contacts"])
    return [table.tobytes() for table in tables]


@pytest.mark.parametrize("ticks", [0, 60, 130, 290])
def test_bodies_that_move_go_on_from_a_snapshot_to_the_bit(ticks):
    """In free fall, in an impact, and while a tool pushes one box of a heap that slides and turns."""
    model = scene()
    state, touch = make_state(model, START), np.zeros(1, TOUCH)
    push(model, state, 0, ticks)
    packed = pack_snapshot(state, touch).tobytes()
    assert len(packed) <= snapshot_size(model)
    expected = push(model, state, ticks, ticks + 400)
    again, _ = unpack_snapshot(packed, model)
    assert push(model, again, ticks, ticks + 400) == expected
    assert bits(again) == bits(state)
    reports = np.frombuffer(b"".join(expected), STEP_REPORT)
    assert len(np.unique(reports["bodies_digest"])) > 300
    if ticks == 290:
        assert reports["body_contacts"].min() > 3 and reports["contact_count"].max() > 3


def test_friction_moments_go_on_from_a_snapshot_to_the_bit():
    """Those of the tool and of pairs of boxes."""
    model = scene(1e-3, 5e-4)
    state, touch = make_state(model, START), np.zeros(1, TOUCH)
    push(model, state, 0, 300)
    assert state.contact_memory["rows"]["moment"].any() and state.pairs.rows["contacts"]["moment"].any()
    packed = pack_snapshot(state, touch).tobytes()
    expected = push(model, state, 300, 500)
    again, _ = unpack_snapshot(packed, model)
    assert push(model, again, 300, 500) == expected
    assert bits(again) == bits(state)


@pytest.mark.parametrize("what", ["velocities", "contacts", "fronts"])
def test_velocities_contacts_and_fronts_of_pairs_matter(what):
    """What a snapshot holds of pairs and velocities is not decoration: without it the bits are others."""
    model = scene()
    state, touch = make_state(model, START), np.zeros(1, TOUCH)
    push(model, state, 0, 290)
    packed = pack_snapshot(state, touch)
    expected = push(model, state, 290, 390)

    def forget(state) -> None:
        if what == "velocities":
            state.velocities[:] = 0
        elif what == "contacts":
            state.pairs.rows["contacts"]["push"] = 0.0
        else:
            state.pairs.rows["front"]["travelled"] = 1.0

    forgetful, _ = unpack_snapshot(spoilt(packed, model, forget), model)
    assert push(model, forgetful, 290, 390) != expected


def test_pairs_that_this_model_cannot_have_are_refused():
    model = scene()
    state, touch = make_state(model, START), np.zeros(1, TOUCH)
    push(model, state, 0, 290)
    packed = pack_snapshot(state, touch)
    count = int(state.pairs.table[0]["count"])
    assert count >= 3

    def rows(state):
        return state.pairs.rows

    def swap(state) -> None:
        state.pairs.order[:2] = state.pairs.order[1::-1].copy()

    def rest(state) -> None:
        row = state.pairs.order[0]
        rows(state)["first"][row], rows(state)["second"][row] = 0, 2
        rows(state)["front"]["second_root"][row] = rows(state)["front"]["first_root"][row]

    for spoil, text in (
        (lambda s: s.pairs.table["turn"].fill(-1), "more pairs of bodies"),
        (lambda s: s.pairs.table["turn"].fill(count + 1), "more pairs of bodies"),
        (lambda s: s.pairs.order[:count].fill(int(s.pairs.order[0])), "two pairs of bodies at one place"),
        (swap, "out of order"),
        (rest, "out of order, or some of them cannot move"),
        (lambda s: rows(s)["first"].fill(-1), "names a body"),
        (lambda s: rows(s)["second"].fill(6), "names a body"),
        (lambda s: rows(s)["count"].fill(9), "more contacts than there is room for"),
        (lambda s: rows(s)["contacts"]["first_triangle"].fill(-1), "names a triangle"),
        (lambda s: rows(s)["contacts"]["second_triangle"].fill(0), "names a triangle"),
        (lambda s: rows(s)["contacts"]["second_feature"].fill(-1), "names a feature"),
        (lambda s: rows(s)["front"]["first_root"].fill(1), "not between the meshes"),
        (lambda s: rows(s)["front"]["walk_top"].fill(-1), "more of a front"),
        (lambda s: rows(s)["front"]["cursor"].fill(-1), "outside of a front"),
        (lambda s: s.pairs.entries["second"].fill(0), "names a node"),
    ):
        with pytest.raises(ValueError, match=text):
            unpack_snapshot(spoilt(packed, model, spoil), model)
    # More pairs than there are, and a place beyond the table: the bytes themselves are wrong.
    for value, place, text in ((10**6, 0, "more pairs of bodies"), (count - 1, 0, "bytes too many|names|out of order")):
        bad = packed.copy()
        at = pair_table_at(packed, state)
        bad[at : at + 4].view(np.int32)[place] = value
        with pytest.raises(ValueError, match=text):
            unpack_snapshot(checked(bad), model)
    bad = packed.copy()
    bad[at + PAIR_TABLE.itemsize : at + PAIR_TABLE.itemsize + 4].view(np.int32)[0] = len(state.pairs.rows)
    with pytest.raises(ValueError, match="one where there is none"):
        unpack_snapshot(checked(bad), model)


def pair_table_at(packed: np.ndarray, state) -> int:
    """Where in a snapshot the PAIR_TABLE is: what comes after it, from the end."""
    pairs = state.pairs
    order = pairs.order[: pairs.table[0]["count"]]
    behind = PAIR_TABLE.itemsize + len(order) * (4 + PAIR.itemsize)
    return len(packed) - behind - int(pairs.rows["front"]["count"][order].sum()) * FRONT_ENTRY.itemsize


def checked(raw: np.ndarray) -> np.ndarray:
    """Bytes of a snapshot with the checksum that belongs to them."""
    raw[: HEADER.itemsize].view(HEADER)["checksum"] = zlib.crc32(raw[HEADER.itemsize :].data)
    return raw
