"""A query from the roots finds the first contact of two bodies, and never lets one through, whatever it may spend."""

import mesh_pairs
import numpy as np
import pytest
from mesh_pairs import ALL_FLAGS, Pair, check_first_time
from scipy.spatial.transform import Rotation

from rtcore import motion
from rtcore.collision.first_contact import first_contact, speed_of
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_state import make_query_work
from rtcore.tables import PLACEMENT, QUERY_CULL, QUERY_ORDER, QUERY_OWNED, QUERY_PASS_TIME, RELATIVE

WORK = make_query_work()


def ask(pair, relative, q, work=WORK, counted=None):
    answer = mesh_pairs.hit()
    if counted is None:
        counted = mesh_pairs.counters()
    first_contact(pair.nodes, pair.triangles, pair.first_root, pair.second_root, relative, q, work[0], counted, answer)
    return answer


def cases(count, seed, **how):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        pair = Pair(mesh_pairs.random_mesh(generator), mesh_pairs.random_mesh(generator))
        yield pair, mesh_pairs.random_relative(generator, **how)


def facing_sheets(gap, shift, turning=(0.0, 0.0, 0.0)):
    """Two sheets across z, `gap` apart, the second moving."""
    relative = np.zeros(1, RELATIVE)[0]
    upright = (0.0, 0.0, 0.0, 1.0)
    motion.still(relative["first"], (0.0, 0.0, 0.0), upright)
    start = (0.013, 0.029, gap)
    motion.from_twist(relative["second"], motion.SCREW, start, upright, shift, turning, start)
    return Pair(mesh_pairs.sheet(), mesh_pairs.sheet(0.6, 3)), relative


@pytest.mark.parametrize("turn", [0.0, 0.5, 3.0])
def test_the_first_time_is_that_of_all_pairs_of_features(turn):
    q = mesh_pairs.query()
    found = 0
    for pair, relative in cases(40, seed=int(10 * turn), turn=turn):
        answer = ask(pair, relative, q)
        assert not answer["truncated"]
        check_first_time(pair, relative, q, answer, samples=40)
        found += answer["found"]
    assert found >= 8


def test_a_contact_is_described_as_it_is():
    q = mesh_pairs.query()
    for pair, relative in cases(40, seed=5):
        answer = ask(pair, relative, q)
        if not answer["found"]:
            assert answer["first_triangle"] == answer["second_triangle"] == -1
            continue
        distance = pair.distance(relative, answer["time"])
        assert answer["gap"] == pytest.approx(distance, abs=1e-12)
        assert np.linalg.norm(answer["normal"]) == pytest.approx(1.0, abs=1e-12)
        # The point and its partner are on the two triangles, and those are what is named.
        assert answer["first_triangle"] < len(pair.first) <= answer["second_triangle"]
        corners = pair.triangles[answer["first_triangle"]]["vertices"]
        inside = np.linalg.lstsq(np.vstack([corners.T, np.ones(3)]), np.append(answer["point"], 1.0), rcond=None)[0]
        assert inside.min() > -1e-6
        np.testing.assert_allclose(corners.T @ inside, answer["point"], atol=1e-9)


def test_a_thin_sheet_stops_what_would_be_past_it_at_the_end():
    pair, relative = facing_sheets(1.0, (0.0, 0.0, -2.0))
    answer = ask(pair, relative, mesh_pairs.query(separation=1e-3))
    assert answer["found"]
    assert answer["time"] == pytest.approx((1.0 - 1e-3) / 2.0, abs=1e-5)
    assert answer["normal"][2] == pytest.approx(1.0)


def test_every_choice_of_flags_gives_the_same_time():
    for pair, relative in cases(25, seed=11):
        usual = ask(pair, relative, mesh_pairs.query())
        for flags in (0, QUERY_ORDER, QUERY_PASS_TIME, QUERY_OWNED, QUERY_ORDER | QUERY_PASS_TIME):
            other = ask(pair, relative, mesh_pairs.query(flags=flags))
            assert other["found"] == usual["found"]
            # A contact may be reported early by 1e-5 m; the slowest approach here is some 0.1 m per unit of time.
            assert other["time"] == pytest.approx(usual["time"], abs=2e-3)
            check_first_time(pair, relative, mesh_pairs.query(flags=flags), other, samples=10)


def test_owned_features_are_tested_once():
    pair, relative = facing_sheets(0.05, (0.0, 0.0, -0.0003))
    once, often = mesh_pairs.counters(), mesh_pairs.counters()
    ask(pair, relative, mesh_pairs.query(separation=0.0499, flags=QUERY_OWNED), counted=once)
    ask(pair, relative, mesh_pairs.query(separation=0.0499, flags=0), counted=often)
    # An edge has two triangles, a vertex about six.
    assert often["edge_edge"] > 2.5 * once["edge_edge"]
    assert often["vertex_face"] > 3 * once["vertex_face"]


def test_passing_the_time_down_saves_tests():
    less = more = 0
    for pair, relative in cases(30, seed=3):
        counted = mesh_pairs.counters()
        ask(pair, relative, mesh_pairs.query(), counted=counted)
        less += counted["box_tests"] + counted["leaf_pairs"]
        counted = mesh_pairs.counters()
        ask(pair, relative, mesh_pairs.query(flags=QUERY_OWNED), counted=counted)
        more += counted["box_tests"] + counted["leaf_pairs"]
    assert less < more


def test_any_number_of_units_stops_at_a_time_that_is_free():
    for pair, relative in cases(12, seed=21):
        full = ask(pair, relative, mesh_pairs.query())
        best = -1.0
        for units in (0, 1, 2, 5, 10, 20, 50, 100, 300, 10**6):
            for flags in (ALL_FLAGS, QUERY_PASS_TIME | QUERY_OWNED):
                q = mesh_pairs.query(units=units, flags=flags)
                answer = ask(pair, relative, q)
                assert answer["units_used"] <= units + 14
                check_first_time(pair, relative, q, answer, samples=8)
                if answer["truncated"]:
                    assert not answer["found"]
                    assert answer["time"] <= full["time"] + 1e-9
                else:
                    assert answer["time"] == pytest.approx(full["time"], abs=2e-3)
            best = max(best, answer["time"])
        assert best == pytest.approx(full["time"], abs=2e-3)


@pytest.mark.parametrize("room", [1, 2, 7])
def test_a_full_heap_is_safe(room):
    work = make_query_work(pairs=room)
    q = mesh_pairs.query()
    truncated = 0
    for pair, relative in cases(25, seed=room):
        answer = ask(pair, relative, q, work)
        check_first_time(pair, relative, q, answer, samples=12)
        truncated += answer["truncated"]
    assert truncated > 0


def test_a_test_of_features_that_ends_at_its_cap_is_no_contact():
    """Flat faces that turn 2 % of the separation too far apart: nothing touches, but the proof takes too many steps."""
    relative = np.zeros(1, RELATIVE)[0]
    upright = (0.0, 0.0, 0.0, 1.0)
    start = (0.2, 0.1, 1.00102)
    motion.still(relative["first"], (0.0, 0.0, 0.0), upright)
    motion.from_twist(relative["second"], motion.SCREW, start, upright, (0.3, -0.2, 0.0), (0.0, 0.0, 3.0), start)
    pair = Pair(mesh_pairs.box(), mesh_pairs.box())
    for flags in (ALL_FLAGS, QUERY_OWNED):
        answer = ask(pair, relative, mesh_pairs.query(separation=1e-3, flags=flags))
        assert (answer["found"], answer["truncated"]) == (0, 1)
        assert 0.0 < answer["time"] < 1.0
        assert answer["first_triangle"] == answer["second_triangle"] == -1


def test_motions_that_start_with_infinite_speed():
    generator = np.random.default_rng(41)
    q = mesh_pairs.query()
    found = 0
    for _ in range(25):
        pair = Pair(mesh_pairs.random_mesh(generator), mesh_pairs.random_mesh(generator))
        relative = mesh_pairs.random_relative(generator, turn=1.5)
        relative["second"]["kind"] = motion.ALGEBRAIC
        answer = ask(pair, relative, q)
        for u in answer["time"] * np.linspace(0.0, 1.0, 40) ** 2:
            assert pair.distance(relative, u) >= q["separation"] - 1e-12
        found += answer["found"]
    assert found >= 5


def test_bodies_that_cross_may_not_move():
    pair, relative = facing_sheets(0.0, (0.0, 0.0, -0.1))
    upright = (0.0, np.sin(0.3), 0.0, np.cos(0.3))
    start = (0.0131, 0.0087, 0.0)
    motion.from_twist(relative["second"], motion.SCREW, start, upright, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), start)
    answer = ask(pair, relative, mesh_pairs.query(separation=1e-6))
    assert answer["found"]
    assert answer["time"] == 0.0


def test_bodies_that_touch_may_not_come_nearer():
    pair, relative = facing_sheets(0.0, (0.0, 0.0, -0.1))
    answer = ask(pair, relative, mesh_pairs.query(separation=1e-3))
    assert answer["found"]
    assert answer["time"] == 0.0


def test_what_begins_too_near_may_slide_and_leave_but_not_approach():
    q = mesh_pairs.query(separation=0.02)
    relative = np.zeros(1, RELATIVE)[0]
    motion.still(relative["first"], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    pair = Pair(mesh_pairs.sheet(4.0, 1), mesh_pairs.box())
    on_a_corner = Rotation.align_vectors([[0, 0, -1]], [[1, 1, 1]])[0].as_quat()
    start = (0.5, 0.9, 0.005 + np.sqrt(0.75))
    for shift, free in (((0.3, 0.1, 0.0), True), ((0.1, 0.0, 0.2), True), ((0.1, 0.0, -0.002), False)):
        motion.from_twist(relative["second"], motion.SCREW, start, tuple(on_a_corner), shift, (0.0, 0.0, 0.0), start)
        answer = ask(pair, relative, q)
        assert answer["found"] == (not free)
        assert (answer["time"] == 1.0) == free
        check_first_time(pair, relative, q, answer)


def test_culling_what_recedes_changes_no_contact_of_solids():
    saved = 0
    generator = np.random.default_rng(17)
    for _ in range(25):
        pair = Pair(mesh_pairs.bumpy(generator, 2, least=0.95), mesh_pairs.box(generator.uniform(0.3, 1.0, 3)))
        relative = mesh_pairs.random_relative(generator, apart=1.6, path=2.0)
        q = mesh_pairs.query(flags=QUERY_OWNED | QUERY_CULL)
        counted = mesh_pairs.counters()
        answer = ask(pair, relative, q, counted=counted)
        check_first_time(pair, relative, q, answer, samples=12)
        assert answer["time"] == pytest.approx(ask(pair, relative, mesh_pairs.query())["time"], abs=2e-3)
        saved += counted["receding"]
    assert saved > 100


def test_the_limit_ends_the_search():
    pair, relative = facing_sheets(1.0, (0.0, 0.0, -2.0))
    answer = ask(pair, relative, mesh_pairs.query(limit=0.4))
    assert not answer["found"]
    assert answer["time"] == 0.4


def test_no_point_of_a_ball_is_faster_than_its_bound():
    generator = np.random.default_rng(2)
    placement = np.zeros(1, PLACEMENT)[0]
    for pair, relative in cases(30, seed=8, turn=2.0):
        root = pair.nodes[pair.second_root]
        u0, u1 = np.sort(generator.random(2))
        place_pair(relative, tuple(root["centre"]), root["radius"], u0, u1, placement)
        node = pair.nodes[generator.integers(pair.second_root, len(pair.nodes))]
        bound = speed_of(node, placement)
        for u in generator.uniform(u0, u1, 10):
            way = generator.normal(size=3)
            x = node["centre"] + node["radius"] * way / np.linalg.norm(way)
            position, turn = motion.relative_pose(relative, u)
            place = tuple(np.array(position) + mesh_pairs.rotate(turn, tuple(x)))
            assert np.linalg.norm(motion.relative_velocity(relative, u, place)) <= bound


def test_the_same_question_gets_the_same_bits_and_no_memory_is_taken():
    q = mesh_pairs.query()
    for pair, relative in cases(5, seed=31):
        answers = [ask(pair, relative, q).tobytes() for _ in range(2)]
        assert answers[0] == answers[1]
        tables = pair.nodes, pair.triangles, pair.first_root, pair.second_root, relative, q
        assert mesh_pairs.allocations(first_contact, *tables, WORK[0], mesh_pairs.counters(), mesh_pairs.hit()) == 0


def test_room_out_of_range_is_refused():
    with pytest.raises(ValueError, match="pairs must be"):
        make_query_work(pairs=0)
    with pytest.raises(ValueError, match="active must be"):
        make_query_work(active=10**6)
