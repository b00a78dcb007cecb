"""Long runs of whole meshes as tools: what the engine promises at the end of every tick, judged by others than itself.

The tool is held by a hand that goes where a script or a recording says, also into what is in its way. After each tick
the poses alone are judged: by exact arithmetic (tools.exact), and by python-fcl where it is installed.
"""

import hashlib
from pathlib import Path

import numpy as np
import pybullet_data
import pytest
import trimesh
from mesh_tool_rig import FULL, MeshTool
from scipy.spatial.transform import Rotation

from bridge.recordings import Placement, read_recording
from rtcore.tables import DEGRADED_SWEEP
from tools.exact.intersect import judge
from tools.scenes import scene

pytestmark = pytest.mark.slow

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "virtuose"

SCENES = {
    "door_in_body": (2_000, 4),
    "motor_in_door": (10_000, 4),
    "peg_in_hole": (1_200, 1),
    "rings": (1_500, 4),
    "gear_mesh": (10_000, 2),
    "screw_in_thread": (6_000, 1),
    "chain": (2_000, 4),
}
"""Number of triangles, and how many times as fast as the script the hand is."""

TICKS = 400
"""Most ticks of a phase: its first ones, of an approach its last."""
BEYOND = 10
"""Of the ticks without anything near, every so many are judged."""
THOROUGH = 200
"""Of the ticks judged, every so many by all pairs of triangles and their distance, not only by those within reach."""
SECOND_OPINION = 10
"""Of the ticks judged, every so many by python-fcl."""
SETTLING = 50
"""Ticks at the start in which a front may be built up, from nothing."""
TINY = (200, 8, 50)


class Run:
    """What came out of a run: the poses after each tick, what the reports said, and a digest of all their bits."""

    def __init__(self, rig: MeshTool, goals: np.ndarray):
        """One tick per goal (k, 7), from the first of them, where the hand first waits until the tool may move."""
        self.rig = rig
        self.goals = goals
        self.poses: list[np.ndarray] = []
        self.fractions: list[float] = []
        self.near: list[bool] = []
        self.cut_short = 0
        bits = hashlib.sha256()
        rig.start(goals[0])
        self.settling = 0
        while self.settling < SETTLING:
            rig.go(goals[0])
            self.settling += 1
            if not rig.report["degraded"] & DEGRADED_SWEEP:
                break
        for goal in goals:
            rig.go(goal)
            self.poses.append(rig.pose)
            self.fractions.append(float(rig.report["fraction"]))
            self.near.append(0.0 <= rig.report["smallest_gap"] < rig.forget)
            self.cut_short += bool(rig.report["degraded"] & DEGRADED_SWEEP)
            bits.update(rig.bits)
        self.digest = bits.hexdigest()

    @property
    def judged(self) -> list[int]:
        """Ticks whose end is judged: all that moved with something near, before or after, and every tenth else."""
        rows = []
        for k in range(len(self.poses)):
            moved = k == 0 or not np.array_equal(self.poses[k], self.poses[k - 1])
            close = self.near[k] or (k + 1 < len(self.near) and self.near[k + 1])
            if (moved and close) or k % BEYOND == 0:
                rows.append(k)
        return rows

    def check(self) -> None:
        """No triangles meet and no gap is below the alert distance, exactly."""
        for n, k in enumerate(self.judged):
            assert self.rig.faults(self.poses[k]) == [], f"tick {k}"
            if n % THOROUGH == 0:
                whole = judge(self.rig.here(self.poses[k]), self.rig.others)
                assert whole.meeting == [] and whole.lower >= self.rig.least, f"tick {k}"

    def check_by_fcl(self) -> float:
        """The same by python-fcl; returns the least distance that it saw, m."""
        fcl = pytest.importorskip("fcl", reason="python-fcl, the second opinion, is not installed")
        models = []
        for triangles in (self.rig.own, self.rig.others):
            model = fcl.BVHModel()
            model.beginModel(3 * len(triangles), len(triangles))
            model.addSubModel(triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3))
            model.endModel()
            models.append(model)
        body = fcl.CollisionObject(models[1])
        least = np.inf
        for k in self.judged[::SECOND_OPINION]:
            pose = self.poses[k]
            tool = fcl.CollisionObject(models[0], fcl.Transform(pose[[6, 3, 4, 5]], pose[:3]))
            assert fcl.collide(tool, body, fcl.CollisionRequest(), fcl.CollisionResult()) == 0, f"tick {k}"
            distance = fcl.distance(tool, body, fcl.DistanceRequest(), fcl.DistanceResult())
            assert distance >= self.rig.least, f"tick {k}"
            least = min(least, distance)
        return least


def assembly(name: str, budget=FULL):
    """A tool among the parts of a generated scene, and its scripted phases with the goals of each."""
    triangles, speed = SCENES[name]
    made = scene(name, triangles)
    parts = [part for part in made.parts if not part.moving]
    rig = MeshTool(
        (made.moving.vertices, made.moving.faces),
        [(part.vertices, part.faces) for part in parts],
        made.phases[0].poses[0],
        poses=[np.concatenate([part.position, part.orientation]) for part in parts],
        budget=budget,
    )
    return rig, [(phase, window(phase.poses[::speed], phase.name == "approach")) for phase in made.phases]


def window(goals: np.ndarray, last: bool) -> np.ndarray:
    return goals[-TICKS:] if last else goals[:TICKS]


@pytest.fixture(scope="module")
def scripted():
    """Runs of all phases of a scene by its name, each made once."""
    made = {}

    def get(name):
        if name not in made:
            rig, phases = assembly(name)
            made[name] = [(phase, Run(rig, goals)) for phase, goals in phases]
        return made[name]

    return get


@pytest.mark.parametrize("name", SCENES)
def test_a_scripted_hand_never_pushes_one_part_into_another(scripted, name):
    """Whatever the phase, exact arithmetic finds no triangles that meet and none nearer than the alert distance."""
    runs = scripted(name)
    for _, run in runs:
        run.check()
    assert sum(f < 1.0 for phase, run in runs if not phase.free for f in run.fractions) > 20, "nothing was in the way"


@pytest.mark.parametrize("name", SCENES)
def test_python_fcl_finds_no_part_in_another(scripted, name):
    """Another library sees the same, and bodies that did come as near as they may."""
    least = min(run.check_by_fcl() for _, run in scripted(name))
    assert least < 1.1 * scripted(name)[0][1].rig.alert


@pytest.mark.parametrize("name", SCENES)
def test_what_is_free_is_executed_to_the_full(scripted, name):
    """In free phases, sliding ones among them, each tick ends at its goal; hardly a tick is cut short in any phase."""
    ticks = short = 0
    for phase, run in scripted(name):
        ticks += len(run.goals)
        short += run.cut_short
        if phase.free:
            assert min(run.fractions) == 1.0, phase.name
            np.testing.assert_allclose(run.poses, run.goals, atol=1e-12)
    assert short <= 0.01 * ticks


@pytest.mark.parametrize("name", SCENES)
def test_the_same_goals_give_the_same_bits(scripted, name):
    """Built and run anew, all poses and reports are the same to the bit."""
    rig, phases = assembly(name)
    for (phase, goals), (_, run) in zip(phases, scripted(name), strict=True):
        assert Run(rig, goals).digest == run.digest, phase.name


# --- recorded hands ---------------------------------------------------------------------------------------------------


def scaled(name: str, size: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """A mesh shipped with pybullet, about its middle, `size` m in its longest direction."""
    mesh = trimesh.load(Path(pybullet_data.getDataPath()) / name, force="mesh", process=False)
    vertices = np.asarray(mesh.vertices) - np.mean(mesh.bounds, axis=0)
    return vertices * (size / mesh.extents.max()), np.asarray(mesh.faces)


def peg_and_block():
    made = scene("peg_in_hole", 1_200)
    return [(part.vertices, part.faces) for part in made.parts]


PAIRS = {
    "bunny on duck": lambda: (scaled("bunny.obj"), scaled("duck.obj")),
    "duck on bunny": lambda: (scaled("duck.obj"), scaled("bunny.obj")),
    "peg on block": peg_and_block,
}


def recorded_goals(bag: Path, way: float) -> np.ndarray:
    """Goals (k, 7) at four times the hand's speed, scaled so that it goes `way` m from its start to the middle of the
    body, which is where its farthest sample lies, and turned so that it comes from above."""
    recording = read_recording(bag)
    far = np.argmax(np.linalg.norm(recording.positions - recording.positions[0], axis=1))
    reach = recording.positions[far] - recording.positions[0]
    turn, _ = Rotation.align_vectors([[0.0, 0.0, -1.0]], [reach / np.linalg.norm(reach)])
    scale = way / np.linalg.norm(reach)
    offset = -turn.apply(recording.positions[far] * scale)
    placed = Placement(scale, tuple(turn.as_quat()), tuple(offset), 4.0).apply(recording)
    poses = [placed.at(1e-3 * k) for k in range(int(placed.duration_s * 1e3))]
    first = Rotation.from_quat(poses[0][1]).inv()
    return np.array([np.concatenate([p, (Rotation.from_quat(q) * first).as_quat()]) for p, q in poses])


@pytest.fixture(scope="module")
def recorded():
    """Runs of a pair of meshes with a recorded hand by their names, each made once; skips where it is not there."""
    made = {}

    def get(pair, recording):
        bag = RECORDINGS / f"{recording}.bag"
        if not bag.exists():
            pytest.skip(f"no recorded hand at {bag}: the folder shared/data is not beside the project")
        if (pair, recording) not in made:
            tool, body = PAIRS[pair]()
            goals = recorded_goals(bag, 0.16)
            made[pair, recording] = Run(MeshTool(tool, [body], goals[0]), goals)
        return made[pair, recording]

    return get


@pytest.mark.data
@pytest.mark.parametrize("recording", [pytest.param("downward", marks=pytest.mark.long), "left"])
@pytest.mark.parametrize("pair", PAIRS)
def test_a_recorded_hand_never_pushes_one_mesh_into_another(recorded, pair, recording):
    """A real hand goes right into the body and out again, and the tool does not; again it does so to the bit."""
    run = recorded(pair, recording)
    run.check()
    assert run.cut_short <= 0.01 * len(run.goals)
    inside = [k for k in range(0, len(run.goals), 50) if run.rig.faults(run.goals[k])]
    assert len(inside) > 5, "the hand was never in the body"
    assert np.mean(run.near) > 0.05
    assert Run(run.rig, run.goals).digest == run.digest


@pytest.mark.data
@pytest.mark.parametrize("recording", [pytest.param("downward", marks=pytest.mark.long), "left"])
@pytest.mark.parametrize("pair", PAIRS)
def test_python_fcl_finds_no_mesh_in_another(recorded, pair, recording):
    run = recorded(pair, recording)
    assert run.check_by_fcl() < 1.1 * run.rig.alert


# --- little time ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["door_in_body", "peg_in_hole", "rings", "gear_mesh"])
def test_with_hardly_any_units_nothing_is_penetrated_and_the_tool_gets_on(name):
    """With 200 units a tick the way takes more ticks: a hand that waits for the tool gets all along a free phase, and
    one that does not is followed as far as is proven."""
    rig, phases = assembly(name, TINY)
    for phase, goals in phases:
        if not phase.free:
            Run(rig, goals[::2]).check()
            continue
        rig.start(goals[0])
        waited = 0
        for k, goal in enumerate(goals[::8]):
            for _ in range(2000):
                rig.go(goal)
                waited += 1
                if rig.report["fraction"] == 1.0 and np.allclose(rig.pose, goal, atol=1e-12):
                    break
            else:
                pytest.fail(f"{phase.name}: stuck before goal {k}")
            if k % BEYOND == 0:
                assert rig.faults() == []
        assert waited < 100 * len(goals), phase.name


@pytest.mark.parametrize("units", [200, 3000])
def test_a_tool_in_a_narrow_hole_gets_on_though_the_hand_is_far_ahead(units):
    """A peg with 50 um of play on all sides, and a hand up to 1.5 mm and 12 mrad ahead on the way along the hole: it
    comes, in as many ticks as the units make it need. A tick without progress must leave something behind for the
    next, or the same tick goes on for ever."""
    rig, _ = assembly("peg_in_hole", (units, 8, 50))
    slide = next(phase for phase in scene("peg_in_hole", SCENES["peg_in_hole"][0]).phases if phase.name == "slide")
    goals = slide.poses[::64][:30]
    rig.start(goals[0])
    for k, goal in enumerate(goals):
        for _ in range(3000):
            rig.go(goal)
            if np.allclose(rig.pose, goal, atol=1e-12):
                break
        else:
            pytest.fail(f"stuck {np.linalg.norm((goal - rig.pose)[:3]):.2g} m before goal {k}")
    assert rig.faults() == []


@pytest.mark.data
@pytest.mark.parametrize("pair", [pytest.param("bunny on duck", marks=pytest.mark.long), "peg on block"])
def test_a_tool_that_yields_to_a_recorded_hand_never_gets_into_the_other(recorded, pair):
    """The same hand with a tool that slides and turns: exact arithmetic finds nothing, and while it touches it goes at
    least twice as far as one that is carried; again it does so to the bit."""
    carried = recorded(pair, "left")
    tool, body = PAIRS[pair]()
    rig = MeshTool(tool, [body], carried.goals[0], turning=1e-3)
    run = Run(rig, carried.goals)
    run.check()
    inside = [k for k in range(len(run.goals)) if run.near[k]]
    assert len(inside) > 100
    way = [np.linalg.norm(np.diff([r.poses[k][:3] for k in inside], axis=0), axis=1).sum() for r in (carried, run)]
    assert way[1] > 2.0 * way[0]
    assert run.cut_short <= 0.01 * len(run.goals)
    assert Run(rig, carried.goals).digest == run.digest
