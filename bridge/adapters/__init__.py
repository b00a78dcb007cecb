"""Device adapters: each a process of its own that reads one device, sends samples, and applies what comes back.

    device.py          what an adapter has to say of its device: open, read, write, close
    loop.py            the loop that all of them run in, with the last line (haptics/last_line.py) before the motors
    clock.py           times of another clock, judged and mapped
    spring.py          the local spring of a render, closed at the device's own rate
    registry.py        which adapters there are, by name
    session.py         its lease at a daemon; aside.py: what may wait for one, in a thread
    conformance.py     what any of them must do, tested from outside
    trial.py           the processes of that test; with relay.py between adapter and daemon
    agreement.py       whether samples say what the device did, for that test; benches.py: what it is tested at
    plant.py           a handle in a hand, for devices that are not there; journal.py: what it felt, for the test

The adapters themselves: `simulated`, `inverse`, `force_dimension`, `spacemouse`, `gamepad`, and `template` to copy.
Where a device cannot be at hand, `emulators/` stands in for it and its maker's software.
"""
