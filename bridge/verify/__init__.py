"""Verifying a log: whether what it holds obeys the laws that the engine claims, told by code that is not the engine.

Each file judges one kind of promise and knows nothing of `rtcore`'s kernels; what it needs are the numbers of the log,
its meshes, numpy and scipy.

=============== ================================================================================
`history.py`    the log as rows: poses, states, gains, names
`motions.py`    screws between poses, free rotation
`near.py`       which bodies come near one another, how near at least, at which points
`gaps.py`       distances
`body.py`       a free body in one tick
`flight.py`     free flight
`bodies.py`     contact impulses, velocities at contacts, energy
`tool.py`       the tool's contacts, its balance of springs and contacts
`opening.py`    what the position pass may have moved the tool by beside that
`led.py`        where the mechanics were asked to go
`force.py`      coupling, ramp, limits, silence
`planes.py`     what an adapter closes the spring against
`told.py`       what the mechanics report about themselves
`fit.py`        impulses within friction cones that explain a change of momentum best
`moments.py`    moments of friction at the tool, of which a log holds none
`judgement.py`  all of it over the rows of a log
=============== ================================================================================
"""
