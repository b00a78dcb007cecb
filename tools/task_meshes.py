"""Write the meshes of the task scenes, configs/meshes/*.ply, from the generators of tools.scenes.

    python -m tools.task_meshes [--out configs/meshes]

They are shipped with the configurations, so that an installed package can run them; a test compares them with what is
made here. Vertices are rounded to what a PLY file of floats keeps.
"""

import argparse
from pathlib import Path

import numpy as np

from tools.scenes import scene
from tools.scenes.gear_mesh import axle, spur_gear, with_pins
from tools.scenes.mesh import Mesh
from tools.scenes.scene import Part

FOLDER = Path(__file__).resolve().parent.parent / "configs" / "meshes"

PARTS = {
    "door": ("door_in_body", 19_000, "door"),
    "body_side": ("door_in_body", 19_000, "body_side"),
    "motor": ("motor_in_door", 14_000, "motor"),
    "door_sheets": ("motor_in_door", 14_000, "door"),
    "rail": ("motor_in_door", 14_000, "rail"),
    "bolt": ("screw_in_thread", 6_000, "bolt"),
    "nut": ("screw_in_thread", 6_000, "nut"),
}
"""File: (family of scenes, triangles of the whole scene, part)."""

PINION, WHEEL = (14, 5e-3), (21, 8e-3)
"""Teeth, and radius of the bore, m."""

MADE = {
    "pinion": lambda: with_pins(spur_gear(*PINION)),
    "wheel": lambda: spur_gear(*WHEEL),
    "pinion_axle": lambda: axle(PINION[1], 0.0138),
    "wheel_axle": lambda: axle(WHEEL[1], 0.0138),
}
"""Files made for a task alone."""

NAMES = (*PARTS, *MADE)


def part(name: str) -> Part | Mesh:
    """The mesh that a file is made of."""
    if name in MADE:
        return MADE[name]()
    family, triangles, wanted = PARTS[name]
    return next(part for part in scene(family, triangles, 0).parts if part.name == wanted)


def ply(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    """A binary PLY file of vertices (n, 3) m and faces (m, 3)."""
    header = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {len(vertices)}\n"
        "property float x\nproperty float y\nproperty float z\n"
        f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    rows = np.zeros(len(faces), dtype=[("count", "u1"), ("corners", "<i4", 3)])
    rows["count"], rows["corners"] = 3, faces
    return header.encode() + vertices.astype("<f4").tobytes() + rows.tobytes()


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.task_meshes", description="Write meshes of the task scenes.")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder to write to")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        made = part(name)
        data = ply(made.vertices, made.faces)
        (options.out / f"{name}.ply").write_bytes(data)
        print(f"{name}.ply  {len(made.faces)} triangles, {len(data)} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
