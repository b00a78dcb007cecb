"""A model goes to disk and back to the bit, in the same bytes every time, and damage is noticed."""

import io

import numpy as np
import pytest

from bridge.model_file import MODEL_VERSION, ModelFileError, load_arrays, load_model, save_arrays, save_model
from bridge.scene.primitives import make_primitive
from rtcore.dynamics.inertia import mesh_inertia
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder
from rtcore.tables import FREE, STATIC


def model() -> Model:
    builder = ModelBuilder()
    for kind, size in (("box", (0.1, 0.2, 0.3)), ("sphere", (0.1,))):
        mesh = make_primitive(kind, size)
        free = kind == "sphere"
        builder.add_body(
            builder.add_mesh(*build_tree(mesh.vertices, mesh.faces)),
            (0.0, 0.5, 0.1),
            (0.0, 0.6, 0.0, 0.8),
            kind=FREE if free else STATIC,
            inertia=mesh_inertia(mesh.vertices, mesh.faces, 1000.0, restitution=0.5) if free else None,
            velocity=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0) if free else (0.0,) * 6,
        )
    gravity = (0.0, 0.0, -9.81)
    return builder.build(0.0, (0.0, 0.0, 0.01), 1e-5, 2e-5, 5e-5, 0, 1e-4, dt=0.002, gravity=gravity)


def saved(made: Model) -> bytes:
    file = io.BytesIO()
    save_model(file, made)
    return file.getvalue()


def test_there_and_back(tmp_path):
    made = model()
    save_model(tmp_path / "m.npz", made)
    found = load_model(tmp_path / "m.npz")
    for name, table in made._asdict().items():
        other = getattr(found, name)
        assert other.dtype == table.dtype and other.dtype.isalignedstruct
        assert other.flags.writeable and other.flags.c_contiguous and other.tobytes() == table.tobytes()


def test_the_same_bytes_every_time(tmp_path, monkeypatch):
    first = saved(model())
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert saved(model()) == first
    save_model(tmp_path / "m.npz", model())
    assert (tmp_path / "m.npz").read_bytes() == first
    assert saved(load_model(io.BytesIO(first))) == first


def test_bytes_between_fields_do_not_leak():
    gaps = np.dtype([("a", "u1"), ("b", "f8"), ("c", [("d", "u1"), ("e", "f4", 2)])], align=True)
    files = []
    for filler in (0, 255):
        table = np.frombuffer(bytearray([filler] * gaps.itemsize * 3), dtype=gaps)
        table["a"], table["b"], table["c"]["d"], table["c"]["e"] = 1, 2.0, 3, 4.0
        file = io.BytesIO()
        save_arrays(file, {"t": table})
        files.append(file.getvalue())
    assert files[0] == files[1]
    back = load_arrays(io.BytesIO(files[0]), {"t": gaps})["t"]
    assert back.dtype == gaps and back["c"]["e"].tolist() == [[4.0, 4.0]] * 3


def test_numpy_reads_it():
    with np.load(io.BytesIO(saved(model()))) as found:
        assert found["bodies"]["mesh_id"].tolist() == [0, 1]


def test_every_damaged_byte_is_noticed_or_harmless():
    """Flip bits all over the file: either an error, or exactly the same model (the byte was in a file time or flag)."""
    made = model()
    data = saved(made)
    noticed = 0
    for place in range(0, len(data), 997):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        try:
            found = load_model(io.BytesIO(bytes(damaged)))
        except ModelFileError:
            noticed += 1
        else:
            assert all(a.tobytes() == b.tobytes() for a, b in zip(found, made, strict=True))
    assert noticed > 0.9 * len(range(0, len(data), 997))


def test_truncated_files():
    data = saved(model())
    for cut in range(0, len(data), 4999):
        with pytest.raises(ModelFileError, match="is damaged"):
            load_model(io.BytesIO(data[:cut]))


def test_other_versions_layouts_and_files(tmp_path):
    made = model()
    tables = {name: table for name, table in made._asdict().items()}

    def written(**arrays):
        path = tmp_path / "m.npz"
        save_arrays(path, arrays)
        return path

    with pytest.raises(
        ModelFileError, match=rf"m\.npz: has version \[99\], this program reads version {MODEL_VERSION}"
    ):
        load_model(written(version=np.array([99], dtype="i4"), **tables))
    with pytest.raises(ModelFileError, match="has no table 'version'"):
        load_model(written(**tables))
    with pytest.raises(ModelFileError, match="table 'world' has another layout"):
        load_model(written(version=np.array([MODEL_VERSION], dtype="i4"), **{**tables, "world": np.zeros(1)}))
    with pytest.raises(ModelFileError, match="does not exist"):
        load_model(tmp_path / "none.npz")
    pickled = tmp_path / "p.npz"
    np.savez(pickled, version=np.array([MODEL_VERSION], dtype="i4"), world=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(pickled)
