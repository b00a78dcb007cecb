"""Child process that lets PyBullet read one file: ``python -m bridge.scene.pybullet_reader urdf|sdf|mjcf FILE``.

It is a process of its own because PyBullet prints its findings to C's stdout, and because some files make it crash
(asking for the collision shapes of an MJCF capsule does). The result is one JSON line after :data:`MARK`; joint
positions come in as a JSON map on stdin.
"""

import json
import sys

MARK = "@@hapticd-scene@@"


def read(kind: str, path: str, joints: dict[str, float]) -> dict:
    """Load a file into a private client and describe every link.

    Returns:
        ``{"bodies": [{name, links: [{name, parent, joint, joint_type, joint_position, limits, mass, inertia,
        inertial, pose, shapes}]}], "unknown_joints": [...], "known_joints": [...]}`` in plain lists.
        ``pose`` maps link -> scene; ``inertial`` maps the principal inertial frame -> link; a shape's ``frame`` maps
        shape -> inertial frame, or -> link where ``in_link`` is true.
    """
    import pybullet

    client = pybullet.connect(pybullet.DIRECT)
    if kind == "urdf":
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE | pybullet.URDF_USE_IMPLICIT_CYLINDER
        ids = [pybullet.loadURDF(path, useFixedBase=False, flags=flags, physicsClientId=client)]
    elif kind == "sdf":
        ids = list(pybullet.loadSDF(path, physicsClientId=client))
    else:
        ids = list(pybullet.loadMJCF(path, physicsClientId=client))
    known = set()
    bodies = []
    for body in ids:
        count = pybullet.getNumJoints(body, physicsClientId=client)
        infos = [pybullet.getJointInfo(body, link, physicsClientId=client) for link in range(count)]
        for info in infos:
            name = _text(info[1])
            if info[2] in (pybullet.JOINT_REVOLUTE, pybullet.JOINT_PRISMATIC):
                known.add(name)
                if name in joints:
                    pybullet.resetJointState(body, info[0], joints[name], physicsClientId=client)
        base_name, model_name = (_text(t) for t in pybullet.getBodyInfo(body, physicsClientId=client))
        visuals = pybullet.getVisualShapeData(body, physicsClientId=client) if kind == "mjcf" else ()
        links = []
        for link in range(-1, count):
            dynamics = pybullet.getDynamicsInfo(body, link, physicsClientId=client)
            inertial = [list(dynamics[3]), list(dynamics[4])]
            entry = {
                "name": base_name if link < 0 else _text(infos[link][12]),
                "parent": None if link < 0 else infos[link][16],
                "joint": None if link < 0 else _text(infos[link][1]),
                "joint_type": None if link < 0 else infos[link][2],
                "joint_position": 0.0 if link < 0 else joints.get(_text(infos[link][1]), 0.0),
                "limits": None if link < 0 else [infos[link][8], infos[link][9]],
                "mass": dynamics[0],
                "inertia": list(dynamics[2]),
                "inertial": inertial,
                "shapes": [],
            }
            if link < 0:
                centre = pybullet.getBasePositionAndOrientation(body, physicsClientId=client)
                inverse = pybullet.invertTransform(*inertial)
                entry["pose"] = [list(p) for p in pybullet.multiplyTransforms(*centre, *inverse)]
            else:
                state = pybullet.getLinkState(body, link, computeForwardKinematics=True, physicsClientId=client)
                entry["pose"] = [list(state[4]), list(state[5])]
            if kind == "mjcf":
                for shape in visuals:
                    if shape[1] == link:
                        entry["shapes"].append(_shape(shape[2], shape[3], shape[4], shape[5], shape[6], True))
            else:
                for shape in pybullet.getCollisionShapeData(body, link, physicsClientId=client):
                    entry["shapes"].append(_shape(shape[2], shape[3], shape[4], shape[5], shape[6], False))
            links.append(entry)
        bodies.append({"name": model_name, "links": links})
    pybullet.disconnect(client)
    return {"bodies": bodies, "unknown_joints": sorted(set(joints) - known), "known_joints": sorted(known)}


def _shape(kind: int, size: tuple, file: bytes, position: tuple, orientation: tuple, in_link: bool) -> dict:
    return {
        "kind": kind,
        "size": list(size),
        "file": _text(file),
        "frame": [list(position), list(orientation)],
        "in_link": in_link,
    }


def _text(raw: bytes | str) -> str:
    return raw if isinstance(raw, str) else raw.decode("utf-8", "replace")


def main() -> None:
    """Read what the command line names; exit code 1 when PyBullet refuses the file."""
    kind, path = sys.argv[1:3]
    joints = json.loads(sys.stdin.read() or "{}")
    try:
        result = read(kind, path, joints)
    except Exception as error:  # pybullet.error is not a public class; the parent words it
        print(f"\n{MARK}{json.dumps({'error': str(error)})}", flush=True)
        sys.exit(1)
    print(f"\n{MARK}{json.dumps(result)}", flush=True)


if __name__ == "__main__":
    main()
