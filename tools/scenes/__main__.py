"""Write a generated scene for a person to look at: its parts as mesh files, a picture, and its motions.

python -m tools.scenes door_in_body --triangles 29000 --seed 0 --out out/
"""

import argparse
from pathlib import Path

import numpy as np
import trimesh

from bridge import picture
from tools.scenes import NAMES, scene
from tools.scenes.clearance import placed
from tools.scenes.drawing import draw


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.scenes", description="Generate a scene and write it.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--triangles", type=int, help="in all parts together; the scene's usual number when absent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder to write to")
    parser.add_argument(
        "--format", choices=("obj", "stl"), default="obj", help="of the meshes, which are in body frames"
    )
    parser.add_argument("--view", type=float, nargs=2, metavar=("YAW", "PITCH"), help="of the picture, rad")
    parser.add_argument("--at", metavar="PHASE:TICK", help="draw the moving part at this pose instead of its first")
    parser.add_argument("--size", type=int, nargs=2, default=(1280, 720), metavar=("WIDTH", "HEIGHT"), help="in pixels")
    options = parser.parse_args(arguments)
    try:
        made = scene(options.name, options.triangles, options.seed)
    except ValueError as error:
        parser.error(str(error))
    pose = None
    if options.at is not None:
        phases = {phase.name: phase for phase in made.phases}
        name, _, tick = options.at.partition(":")
        if name not in phases or not tick.lstrip("-").isdigit():
            parser.error(f"--at wants PHASE:TICK with a phase of {', '.join(phases)}, not {options.at!r}")
        if not -len(phases[name].poses) <= int(tick) < len(phases[name].poses):
            parser.error(f"phase {name} has {len(phases[name].poses)} ticks, not {tick}")
        pose = phases[name].poses[int(tick)]
    options.out.mkdir(parents=True, exist_ok=True)
    for part in made.parts:
        path = options.out / f"{part.name}.{options.format}"
        trimesh.Trimesh(part.vertices, part.faces, process=False).export(path)
        size = np.ptp(placed(part).reshape(-1, 3), axis=0)
        extent = " x ".join(f"{1e3 * side:.0f}" for side in size)
        print(f"{path}: {len(part.faces)} triangles, {extent} mm{', moves' if part.moving else ''}")
    for phase in made.phases:
        path = options.out / f"{phase.name}.csv"
        np.savetxt(path, phase.poses, fmt="%.17g", delimiter=",", header="x,y,z,qx,qy,qz,qw", comments="")
        print(f"{path}: {len(phase.poses)} poses{', free of contact' if phase.free else ''}")
    poses = None if pose is None else {made.moving.name: pose}
    view = None if options.view is None else (options.view[0], options.view[1])
    print(picture.save(draw(made, poses, *options.size, view=view), options.out / f"{made.name}.png"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
