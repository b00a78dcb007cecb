"""The virtual sphere: a torque felt as a force, by a hand whose device drives force only.

Lécuyer and others (RO-MAN 2001, named in Redon 2002, 6.4.1.1) let a Phantom, six degrees in and three out, show torques
"by converting them into forces"; neither gives the law. The one here: a sphere of radius R stands around the coupling
point, and the handle's own axis a, from the hand ahead to the tip, meets it at R a. The torque that the tool would make
the hand feel is replaced by the force at that point, tangential to the sphere, whose moment it is:

    f = tau x a / R          (R a) x f = tau - a (a . tau)

So it is the force of the one contact ahead, on the handle's axis at the distance R, that would turn the tool as it is
being turned. What turns the tool about the axis itself has no such force and is not felt. When the hand turns the
device, the sphere's point does the work f . (omega x R a) = tau . omega, as the torque would, but for that roll.

The device applies f at the coupling point, together with the coupling's force: before ramp, slew limit and saturation,
so that both together keep all limits. R counts scene metres; a ``gain`` of 0 to 1 weakens it, and 0 is off.

Pressing the tool off its coupling point makes a torque of force times lever, which the sphere shows as up to
``gain lever / R`` times the force over again: added to it where the contact is ahead of the coupling point, as if the
spring were stiffer, and taken from it where the contact is behind. :func:`leave_room` lowers the stiffness for the one
and refuses a radius so small that the other would pull the hand in.
"""

import numpy as np

from haptics.tables import Record
from rtcore.kernels import kernel
from rtcore.spatial import Quaternion, Vector, cross, rotate, scaled, vector

DEFAULT_RADIUS = 0.05
"""m, scene: a lever of a pen's length from the tip to the fingers."""


@kernel
def sphere_force(settings: Record, scale: float, orientation: Quaternion, torque: Vector) -> Vector:
    """Force (device frame, N) in place of a torque (device frame, N·m) on a device of that orientation and scale."""
    arm = rotate(orientation, vector(settings.axis))
    # A length in the scene is longer than at the device by the scale.
    return scaled(cross(torque, arm), scale * settings.sphere)


def leave_room(settings: np.ndarray, lever: float) -> None:
    """Lower the stiffness in (1,) SETTINGS and its cap so that spring and sphere together are no stiffer than the cap.

    ``lever``: m, scene, from the coupling point to the tool's farthest point. Nothing changes while the sphere is off.
    Raises ValueError when the sphere is smaller than the tool.
    """
    row = settings[0]
    share = float(row["sphere"]) * lever
    if share > 1.0 + 1e-9:
        raise ValueError(
            f"sphere_radius must be at least virtual_sphere times {lever:.4g} m, the tool's farthest point from its "
            f"coupling point: a contact behind the hand would pull it in; it is {1.0 / share:.3g} of that"
        )
    if share > 0.0:
        row["stiffness_max"] /= 1.0 + share
        row["stiffness"] = min(row["stiffness"], row["stiffness_max"])
