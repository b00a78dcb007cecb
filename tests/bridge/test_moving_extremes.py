"""Scenes at the ends of what can be configured keep the promises of a step: nothing meets, nothing gains energy.

Where bodies are is judged by their triangles in the scene, by formulas of their own, and exact tests of those that are
near; the engine is not asked.
"""

import itertools

import numpy as np
import pytest
from mesh_tool_rig import too_near
from scipy.spatial.transform import Rotation

from bridge.assemble import Assembly, assemble
from bridge.config import parse_config
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import FREE, KINEMATIC, STEP_REPORT
from tools.exact.intersect import posed


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path / "cache"))


def box(name: str, size: tuple[float, float, float], at=(0.0, 0.0, 0.0), more="") -> str:
    return (
        f'[[scene.body]]\nname = "{name}"\nprimitive = "box"\nsize = {list(size)}\npose.position = {list(at)}\n{more}\n'
    )


FREELY = 'motion = "free"\n'


def cube(name: str, edge: float, at, more="") -> str:
    return box(name, (edge, edge, edge), at, FREELY + more)


def scene(bodies: str, size: float, more="", head="") -> str:
    """Bodies, and a tool parked above a scene of a size (m)."""
    ball = f'[tool]\nprimitive = "box"\nsize = {[0.01 * size] * 3}\nstart = [0.0, 0.0, {3.0 * size}]\n'
    return head + bodies + ball + more


def stack(scale: float, masses=(None, None, None), gap=1e-3, more="") -> str:
    """A floor and three cubes over it, edges from 0.2 of the scale, in m; masses in kg."""
    made = box("floor", (scale, scale, 0.1 * scale), (0.0, 0.0, -0.05 * scale))
    for k, mass in enumerate(masses):
        height = (0.1 + gap) * scale + k * (0.2 + gap) * scale
        given = "" if mass is None else f"mass = {mass}\n"
        made += cube(f"c{k}", 0.2 * scale, (0.003 * k * scale, 0.002 * k * scale, height), given + more)
    return made


class Run:
    """An assembled scene, stepped by itself or by a hand."""

    def __init__(self, text: str) -> None:
        self.assembly: Assembly = assemble(parse_config(text), ".")
        self.model = self.assembly.model
        self.state = make_state(self.model, self.assembly.start)
        self.input = make_input(0.0)
        self.input["goal_position"][0] = self.assembly.start
        self.reports = np.zeros(1, STEP_REPORT)
        self.kinds = self.model.bodies["kind"]
        meshes = [*self.model.bodies["mesh_id"], self.model.world["tool_mesh_id"][0]]
        rows = self.model.meshes[meshes]
        self.own = [self.model.triangles["vertices"][r["triangle_first"] :][: r["triangle_count"]] for r in rows]

    def go(self) -> None:
        step(self.model, self.state, self.input[0], self.assembly.budget[0], self.reports[0])

    @property
    def report(self) -> np.void:
        return self.reports[0]

    def check(self) -> None:
        """Finite everywhere, and no two bodies nearer than eps_alert of which one moves."""
        proxy = self.state.proxy[0]
        for values in (*(self.state.poses[k] for k in ("position", "orientation")), proxy["position"]):
            assert np.isfinite(values).all()
        assert (
            np.isfinite(self.state.velocities["linear"]).all() and np.isfinite(self.state.velocities["momentum"]).all()
        )
        assert np.isfinite(self.report["energy"])
        poses = [*self.state.poses, proxy]
        here = [posed(own, pose["position"], pose["orientation"]) for own, pose in zip(self.own, poses, strict=True)]
        least = self.assembly.eps["eps_alert"] * (1.0 - 1e-6)
        moves = [*np.isin(self.kinds, (FREE, KINEMATIC)).tolist(), True]
        for i, j in itertools.combinations(range(len(here)), 2):
            if moves[i] or moves[j]:
                assert not too_near(here[i], here[j], least), (i, j)

    @property
    def energy(self) -> float:
        """Of the free bodies, J."""
        total = 0.0
        for body_id in np.flatnonzero(self.kinds == FREE):
            inertia, velocity, pose = (
                t[body_id] for t in (self.model.inertias, self.state.velocities, self.state.poses)
            )
            centre = Rotation.from_quat(pose["orientation"]).apply(inertia["centre"]) + pose["position"]
            total += 0.5 * inertia["mass"] * (velocity["linear"] @ velocity["linear"])
            total += 0.5 * velocity["angular"] @ velocity["momentum"]
            total -= inertia["mass"] * (self.model.world["gravity"][0] @ centre)
        return total

    @property
    def lift(self) -> float:
        """What it takes to open all gaps from eps_alert to eps_safety, one on top of the other, J."""
        weight = self.model.inertias["mass"][:-1].sum() * np.linalg.norm(self.model.world["gravity"][0])
        return len(self.kinds) * weight * (self.assembly.eps["eps_safety"] - self.assembly.eps["eps_alert"])


def run(text: str, ticks: int) -> Run:
    """Ticks by themselves, all promises asked for after each."""
    made = Run(text)
    begin = made.energy
    for _ in range(ticks):
        made.go()
        made.check()
        assert made.energy <= begin + made.lift + 1e-12 * abs(begin)
        assert made.report["energy"] == pytest.approx(made.energy, rel=1e-9, abs=1e-12 * abs(begin))
    return made


def heights(made: Run) -> np.ndarray:
    return made.state.poses["position"][made.kinds == FREE][:, 2]


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e4])
def test_scenes_of_any_size_keep_apart(scale):
    """At 1e-6 m gravity crosses the scene in a tick; at 1e4 m nothing has arrived after a second."""
    made = run(scene(stack(scale), scale), 300)
    if scale < 1.0:
        # All three rest on one another, eps_safety apart.
        gap = made.assembly.eps["eps_safety"]
        expected = np.array([0.1, 0.3, 0.5]) * scale + np.array([1, 2, 3]) * gap
        np.testing.assert_allclose(heights(made), expected, atol=0.1 * gap)


@pytest.mark.parametrize("masses", [(1e-3, 1.0, 1e3), (1e3, 1.0, 1e-3), (1e-6, 1e-6, 1.0), (1e-6, 1e6, 1e-6)])
def test_stacks_with_any_ratio_of_masses_keep_apart(masses):
    run(scene(stack(0.1, masses), 0.1), 400)


@pytest.mark.parametrize("restitution", [0.0, 1.0])
@pytest.mark.parametrize("speed", [1e2, 1e4, 3e5])
def test_bodies_that_cross_the_scene_in_a_tick_are_stopped(speed, restitution):
    """Between two thin plates: without friction and gravity, an elastic cube keeps its energy and never comes out."""
    more = f"restitution = {restitution}\n"
    walls = box("left", (0.001, 1.0, 1.0), (-0.5, 0.0, 0.0), more) + box(
        "right", (0.001, 1.0, 1.0), (0.5, 0.0, 0.0), more
    )
    flyer = cube("flyer", 0.1, (0.0, 0.0, 0.0), more + f"velocity = [{speed}, 0.0, 0.0]\n")
    made = run(scene(walls + flyer, 1.0, head="[scene]\ngravity = [0, 0, 0]\n"), 200)
    assert abs(made.state.poses["position"][2, 0]) < 0.45
    if restitution == 1.0:
        assert made.energy == pytest.approx(0.5 * speed**2, rel=1e-6)


@pytest.mark.parametrize("spin", [100.0, 300.0, 3000.0])
def test_a_rod_that_spins_by_up_to_half_a_turn_in_a_tick_keeps_apart(spin):
    more = f"{FREELY}angular_velocity = [0.0, 0.0, {spin}]\nvelocity = [0.2, 0.0, 0.0]\n"
    rod = box("rod", (0.5, 0.01, 0.01), (0.0, 0.0, 0.02), more)
    posts = "".join(box(f"p{k}", (0.02, 0.02, 0.2), (0.3, 0.1 * k, 0.1), "") for k in (-1, 0, 1))
    run(scene(box("floor", (2.0, 2.0, 0.01), (0.0, 0.0, -0.01)) + posts + rod, 2.0), 300)


def test_a_pusher_that_crosses_the_scene_in_a_tick_waits_where_it_is_blocked():
    """It has no room to go through: the cube is between it and a wall."""
    pusher = box("pusher", (0.1, 0.1, 0.1), (-0.3, 0.0, 0.06), 'motion = "kinematic"\nvelocity = [500.0, 0.0, 0.0]\n')
    wall = box("wall", (0.1, 1.0, 1.0), (0.5, 0.0, 0.5))
    floor = box("floor", (2.0, 2.0, 0.01), (0.0, 0.0, -0.005))
    made = Run(scene(floor + wall + pusher + cube("c", 0.1, (0.0, 0.0, 0.06)), 2.0))
    for _ in range(300):
        made.go()
        made.check()
    x = made.state.poses["position"][:, 0]
    assert x[2] < x[3] - 0.1 < 0.3


@pytest.mark.parametrize("head", ["[scene]\ngravity = [1e5, 0, -1e5]\n", "[scene]\ngravity = [0, 0, 9.81]\n"])
def test_any_gravity(head):
    run(scene(stack(0.1), 0.1, head=head), 300)


@pytest.mark.parametrize("tick_hz", [50, 4000])
def test_any_rate(tick_hz):
    times = "[safety]\nhold_after_ms = 50\nstale_after_ms = 100\n[coupling]\nvalid_for_ms = 50\n"
    run(scene(stack(0.1), 0.1, more=f"[rates]\ntick_hz = {tick_hz}\n{times}"), 300)


@pytest.mark.parametrize("mass", [0.0, 0.05, 100.0])
@pytest.mark.parametrize("light", [1e-6, 1.0])
def test_a_hand_that_presses_on_free_bodies_keeps_apart(mass, light):
    """Straight down through a stack, to and fro across it, with the springs of a hand."""
    made = Run(scene(stack(0.1, (light, 1.0, light)), 0.1).replace("0.3]", "0.2]") + f"mass = {mass}\n")
    wanted = made.input[0]
    wanted["stiffness"], wanted["rotational_stiffness"], wanted["damping"] = 400.0, 0.5, 2.0
    for k in range(600):
        share = min(k / 300, 1.0)
        side = 0.05 * np.sin(k / 30.0) * (k > 300)
        wanted["goal_position"] = np.array(made.assembly.start) * (1.0 - share) + np.array((side, 0.0, 0.0))
        made.go()
        made.check()
