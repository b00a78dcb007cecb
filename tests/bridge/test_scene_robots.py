"""Robots come through complete: links, masses, frames, shapes; and what is missing is named."""

import numpy as np
import pybullet
import pytest
from scipy.spatial.transform import Rotation

from bridge.scene.errors import MeshError, SceneError
from bridge.scene.frames import compose
from bridge.scene.mesh import read_mesh
from bridge.scene.paths import pybullet_data_directory
from bridge.scene.robots import link_box, read_robot
from bridge.scene.sources import build

DATA = pybullet_data_directory()
KUKA = DATA / "kuka_iiwa/model.urdf"
PANDA = DATA / "franka_panda/panda.urdf"
MARGINS = {".stl": 0.003, ".obj": 0.004}
"""How much wider than the mesh PyBullet's box of an unturned hull is, m: seen alike on all links of each format."""

KUKA_JOINTS = {f"lbr_iiwa_joint_{i}": q for i, q in enumerate([0.3, 0.6, -0.5, -1.2, 0.7, 0.8, 1.1], 1)}
PANDA_JOINTS = {f"panda_joint{i}": q for i, q in enumerate([0.3, -0.785, 0.4, -2.356, 0.2, 1.571, 0.785], 1)}
PANDA_JOINTS |= {"panda_finger_joint1": 0.03, "panda_finger_joint2": 0.01}


@pytest.fixture
def client():
    number = pybullet.connect(pybullet.DIRECT)
    yield number
    pybullet.disconnect(number)


@pytest.mark.parametrize(
    ("path", "joints", "links", "movable", "mass", "shapes", "meshes"),
    [
        # Masses: the sum of the file's own <mass> values.
        (KUKA, KUKA_JOINTS, 8, 7, 17.5, 8, "kuka_iiwa/meshes/link_*.stl"),
        (PANDA, PANDA_JOINTS, 13, 9, 17.96, 11, "franka_panda/meshes/collision/*.obj"),
    ],
)
def test_kuka_and_panda_come_through_complete(client, path, joints, links, movable, mass, shapes, meshes):
    robot = read_robot(path, joints)
    assert len(robot.links) == links
    assert sum(link.joint_type in ("revolute", "prismatic") for link in robot.links) == movable
    assert sum(link.mass for link in robot.links) == pytest.approx(mass, rel=1e-12)
    assert sum(len(link.sources) for link in robot.links) == shapes
    # Every triangle of the files that the links name is there.
    expected = {str(p): len(read_mesh(p).faces) for p in DATA.glob(meshes)}
    for link in robot.links:
        assert sum(expected[source.what] for source in link.sources) == (
            len(build(link.sources).faces) if link.sources else 0
        )

    body = pybullet.loadURDF(str(path), flags=pybullet.URDF_USE_INERTIA_FROM_FILE, physicsClientId=client)
    for index in range(links - 1):
        info = pybullet.getJointInfo(body, index, physicsClientId=client)
        name = info[1].decode()
        if name in joints:
            pybullet.resetJointState(body, index, joints[name], physicsClientId=client)
    for index, link in enumerate(robot.links, -1):
        dynamics = pybullet.getDynamicsInfo(body, index, physicsClientId=client)
        assert link.mass == dynamics[0]
        np.testing.assert_allclose(link.inertia, dynamics[2], rtol=1e-12)
        if index >= 0:
            info = pybullet.getJointInfo(body, index, physicsClientId=client)
            assert link.name == info[12].decode() and link.joint == info[1].decode()
            assert link.parent == robot.links[info[16] + 1].name
            state = pybullet.getLinkState(body, index, computeForwardKinematics=True, physicsClientId=client)
            np.testing.assert_allclose(link.pose[0], state[4], atol=1e-12)
            assert (Rotation.from_quat(link.pose[1]).inv() * Rotation.from_quat(state[5])).magnitude() < 1e-12
        if not link.sources:
            continue
        # PyBullet's box of a turned shape is the box of its turned box: compare with just that, to 20 um. Its hull of
        # kuka's link 3 is 11 um smaller than the mesh; all others agree to single precision.
        (source,) = link.sources
        frame = (np.array(source.position), np.array(source.orientation))
        position, orientation = compose(link.pose, frame)
        turn = Rotation.from_quat(orientation)
        own = read_mesh(source.what).scaled(source.scale).vertices
        centre, half = (own.max(axis=0) + own.min(axis=0)) / 2, np.ptp(own, axis=0) / 2 + MARGINS[source.kind]
        reach = np.abs(turn.as_matrix()) @ half
        middle = turn.apply(centre) + position
        box = np.array(pybullet.getAABB(body, index, physicsClientId=client))
        np.testing.assert_allclose(box, [middle - reach, middle + reach], atol=2e-5)
        # And our own triangles lie within it.
        tight = link_box(link)
        assert (tight[0] >= box[0] - 1e-9).all() and (tight[1] <= box[1] + 1e-9).all()


def test_frames_of_shapes(tmp_path, client):
    """A shape at (1, 2, 3) turned by 90 degrees about z, in a link whose inertial frame is moved and turned."""
    (tmp_path / "m.obj").write_bytes((DATA / "cube.obj").read_bytes())
    path = tmp_path / "r.urdf"
    path.write_text("""<robot name="r"><link name="a">
      <inertial><origin xyz="0.1 -0.2 0.3" rpy="0.3 0.1 0.2"/><mass value="2"/>
        <inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0" iyz="0"/></inertial>
      <collision><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>
        <geometry><mesh filename="m.obj" scale="2 4 6"/></geometry></collision>
      <collision><origin xyz="-1 0 0"/><geometry><box size="0.2 0.4 0.6"/></geometry></collision>
      <collision><origin xyz="0 -1 0"/><geometry><sphere radius="0.25"/></geometry></collision>
      <collision><origin xyz="0 0 -5"/><geometry><cylinder radius="0.1" length="0.5"/></geometry></collision>
      <collision><origin xyz="0 0 5"/><geometry><capsule radius="0.1" length="0.5"/></geometry></collision>
    </link></robot>""")
    robot = read_robot(path)
    (link,) = robot.links
    boxes = [np.array([m.vertices.min(axis=0), m.vertices.max(axis=0)]) for m in (s.build() for s in link.sources)]
    unit = np.ptp(read_mesh(tmp_path / "m.obj").vertices, axis=0)
    np.testing.assert_allclose(unit, 1.0)
    half = [(2.0, 1.0, 3.0), (0.1, 0.2, 0.3), (0.25,) * 3, (0.1, 0.1, 0.25), (0.1, 0.1, 0.35)]
    at = [(1, 2, 3), (-1, 0, 0), (0, -1, 0), (0, 0, -5), (0, 0, 5)]
    for box, h, p in zip(boxes, half, at, strict=True):
        # The frames pass through PyBullet's inertial frame and back; its turned spheres are inscribed polyhedra.
        np.testing.assert_allclose(box, [np.subtract(p, h), np.add(p, h)], atol=2e-3)
    np.testing.assert_allclose(boxes[0], [(-1, 1, 0), (3, 3, 6)], atol=1e-9)
    np.testing.assert_allclose(boxes[1], [(-1.1, -0.2, -0.3), (-0.9, 0.2, 0.3)], atol=1e-9)
    assert link.mass == 2.0
    # Principal moments of the given tensor.
    expected = np.linalg.eigvalsh([[1, 0.1, 0], [0.1, 2, 0], [0, 0, 2.5]])
    np.testing.assert_allclose(np.sort(link.inertia), expected, rtol=1e-9)
    principal = Rotation.from_quat(link.inertial[1]).as_matrix()
    inertial = principal @ np.diag(link.inertia) @ principal.T
    own = Rotation.from_euler("xyz", (0.3, 0.1, 0.2)).as_matrix()
    np.testing.assert_allclose(inertial, own @ [[1, 0.1, 0], [0.1, 2, 0], [0, 0, 2.5]] @ own.T, atol=1e-9)
    np.testing.assert_allclose(link.inertial[0], [0.1, -0.2, 0.3], atol=1e-12)


def test_scale_scales_every_length():
    one, fifth = read_robot(KUKA, KUKA_JOINTS), read_robot(KUKA, KUKA_JOINTS, 0.2)
    for a, b in zip(one.links, fifth.links, strict=True):
        np.testing.assert_allclose(link_box(b), 0.2 * link_box(a), atol=1e-12)


def test_sdf_with_several_models_and_a_cylinder(tmp_path):
    path = tmp_path / "w.sdf"
    model = """<model name="{}"><pose>{} 0 0 0 0 0</pose><link name="l"><inertial><mass>2</mass><inertia><ixx>1</ixx>
      <iyy>1</iyy><izz>1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>
      <collision name="c"><geometry><box><size>0.1 0.2 0.3</size></box></geometry></collision>
      <collision name="d"><pose>0 0 1 0 0 0</pose><geometry><cylinder><radius>0.1</radius>
      <length>0.4</length></cylinder></geometry></collision></link></model>"""
    path.write_text(
        f"<sdf version='1.6'><world name='w'>{model.format('one', 0)}{model.format('two', 5)}</world></sdf>"
    )
    robot = read_robot(path)
    assert [link.name for link in robot.links] == ["one/l", "two/l"]
    np.testing.assert_allclose(link_box(robot.links[0]), [(-0.1, -0.1, -0.15), (0.1, 0.1, 1.2)], atol=1e-9)
    np.testing.assert_allclose(link_box(robot.links[1]) - link_box(robot.links[0]), [(5, 0, 0)] * 2, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        # The capsule in the file: radius 0.05, end points 0.1 to both sides along the axis, body at z = 1.
        ("capsule_fromtoX.xml", (-0.15, -0.05, 0.95), (0.15, 0.05, 1.05)),
        ("capsule_fromtoY.xml", (-0.05, -0.15, 0.95), (0.05, 0.15, 1.05)),
        ("capsule_fromtoZ.xml", (-0.05, -0.05, 0.85), (0.05, 0.05, 1.15)),
        ("cylinder_fromtoX.xml", (-0.1, -0.05, 0.95), (0.1, 0.05, 1.05)),
    ],
)
def test_mjcf_shapes_given_by_end_points(name, low, high):
    """PyBullet itself crashes when asked for these shapes."""
    link = next(link for link in read_robot(DATA / "mjcf" / name).links if link.sources[0].kind != "plane")
    np.testing.assert_allclose(link_box(link), [low, high], atol=1e-6)


def test_mjcf_humanoid():
    robot = read_robot(DATA / "mjcf/humanoid_symmetric_no_ground.xml")
    pelvis = next(link for link in robot.links if link.name == "pelvis")
    # torso at 1.4, lower waist 0.26 below, pelvis 0.165 below that; its capsule has radius 0.09 and spans +-0.07 in y.
    box = link_box(pelvis)
    np.testing.assert_allclose(box[:, 2], [0.975 - 0.09, 0.975 + 0.09], atol=1e-3)
    np.testing.assert_allclose(box[:, 1], [-0.16, 0.16], atol=1e-3)


URDF = """<robot name="r"><link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="base"/><child link="finger"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<link name="finger"><{part}><geometry><mesh filename="{mesh}"/></geometry></{part}></link></robot>"""


@pytest.mark.parametrize("part", ["collision", "visual"])
def test_a_missing_mesh_is_named_with_its_link_and_where_it_was_looked_for(tmp_path, capfd, part):
    path = tmp_path / "r.urdf"
    path.write_text(URDF.format(part=part, mesh="package://meshes/finger.stl"))
    with pytest.raises(SceneError) as caught:
        read_robot(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: link 'finger', {part}: mesh 'package://meshes/finger.stl' does not exist")
    assert f"looked for 'meshes/finger.stl' in {tmp_path}" in message
    assert capfd.readouterr() == ("", "")


def test_a_damaged_mesh_in_a_robot(tmp_path):
    (tmp_path / "m.stl").write_bytes((DATA / "l_finger.stl").read_bytes()[:-30])
    path = tmp_path / "r.urdf"
    path.write_text(URDF.format(part="collision", mesh="m.stl"))
    with pytest.raises((SceneError, MeshError), match=r"m\.stl|r\.urdf"):
        build([s for link in read_robot(path).links for s in link.sources])


def test_pybullet_keeps_quiet(tmp_path, capfd):
    """Its warnings (here: no inertial data) belong to nobody's terminal."""
    (tmp_path / "m.obj").write_bytes((DATA / "cube.obj").read_bytes())
    path = tmp_path / "r.urdf"
    path.write_text(URDF.format(part="collision", mesh="m.obj"))
    read_robot(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.urdf", "<robot", "is not valid XML"),
        ("r.urdf", "\x00\x01\x02", "is not valid XML"),
        ("r.urdf", "<robot name='r'/>", "PyBullet cannot read it"),
        ("r.urdf", "<robot name='r'><link name='a'/></robot>", "holds no collision shape"),
        ("r.sdf", "<sdf version='1.6'/>", "r.sdf: "),
        ("r.xml", "<mujoco/>", "r.xml: "),
        ("r.step", "x", "unknown robot format '.step'"),
    ],
)
def test_what_is_no_robot(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SceneError) as caught:
        read_robot(path)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SceneError, match="does not exist"):
        read_robot(tmp_path / "none.urdf")


def test_a_link_without_mass_weighs_nothing(tmp_path):
    """PyBullet would make it one kilogram."""
    path = tmp_path / "r.urdf"
    path.write_text(
        '<robot name="r"><link name="a"><collision><geometry><sphere radius="1"/></geometry></collision></link></robot>'
    )
    robot = read_robot(path)
    assert robot.links[0].mass == 0.0 and not robot.links[0].inertia.any()
    assert "1 links state no mass: a" in robot.notes


def test_unknown_joints_and_limits():
    with pytest.raises(SceneError, match=r"no movable joint 'lbr_iiwa_joint1' .*did you mean 'lbr_iiwa_joint_1'"):
        read_robot(KUKA, {"lbr_iiwa_joint1": 0.1})
    notes = read_robot(KUKA, {"lbr_iiwa_joint_2": 3.0}).notes
    assert any("outside its limits" in note for note in notes)
    assert any("panda_grasptarget" in note for note in read_robot(PANDA).notes)
