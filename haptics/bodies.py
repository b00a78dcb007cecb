"""The states of bodies that move, as ring and log hold them."""

import numpy as np

from rtcore.kernels import kernel
from rtcore.spatial import put_quaternion, put_vector, quaternion, vector


@kernel
def sample_bodies(poses: np.ndarray, velocities: np.ndarray, movers: np.ndarray, samples: np.ndarray) -> None:
    """Copy the states of all bodies that move.

    poses: (n,) POSE, velocities: (n + 1,) BODY_VELOCITY and movers: (n + 1,) i4, row of each body among those that
    move or -1, all of a State; samples: BODY_SAMPLE, a row for each body that moves, written.
    """
    for body_id in range(len(poses)):
        row = movers[body_id]
        if row < 0:
            continue
        sample = samples[row]
        put_vector(sample.position, vector(poses[body_id].position))
        put_quaternion(sample.orientation, quaternion(poses[body_id].orientation))
        put_vector(sample.linear, vector(velocities[body_id].linear))
        put_vector(sample.angular, vector(velocities[body_id].angular))
