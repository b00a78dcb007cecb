"""Tables on disk: npz archives with the same bytes for the same content, readable by ``numpy.load``.

Used for a Model (in the runtime directory and inside every log) and for preprocessed meshes.
"""

import io
import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from rtcore.dynamics.inertia import BODY_INERTIA
from rtcore.model import Model, moving_bodies
from rtcore.tables import BODY, BOX_NODE, MESH, TRIANGLE, WORLD

MODEL_VERSION = 6
TABLES = {
    "world": WORLD,
    "bodies": BODY,
    "meshes": MESH,
    "nodes": BOX_NODE,
    "triangles": TRIANGLE,
    "inertias": BODY_INERTIA,
}
_EPOCH = (1980, 1, 1, 0, 0, 0)


class ModelFileError(ValueError):
    """A model file of another version, or one that is damaged; the text names the file."""


def save_model(target: str | Path | IO[bytes], model: Model) -> None:
    """Write a model as npz; the same model gives the same bytes.

    Args:
        target: a path, or a file open for writing bytes.
    """
    arrays = {name: np.asarray(getattr(model, name)) for name in TABLES}
    save_arrays(target, {"version": np.array([MODEL_VERSION], dtype="<i4"), **arrays})


def load_model(source: str | Path | IO[bytes]) -> Model:
    """Read a model that :func:`save_model` wrote.

    Raises:
        ModelFileError: missing, damaged, of another version, or with tables of another layout.
    """
    what = _name(source)
    arrays = load_arrays(source, {"version": np.dtype("i4"), **TABLES}, version=MODEL_VERSION)
    if len(arrays["world"]) != 1:
        raise ModelFileError(f"{what}: is damaged: it has {len(arrays['world'])} world rows instead of one")
    return Model(**{name: arrays[name] for name in TABLES})


def load_moving_bodies(source: str | Path | IO[bytes]) -> list[int]:
    """Ids of the bodies that move, rising, of a model that :func:`save_model` wrote, without reading its meshes.

    Raises ModelFileError as :func:`load_model`.
    """
    types = {"version": np.dtype("i4"), "bodies": BODY}
    return moving_bodies(load_arrays(source, types, version=MODEL_VERSION)["bodies"])


def save_arrays(target: str | Path | IO[bytes], arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as an uncompressed npz whose bytes depend on nothing but their values.

    Fixed time stamps, entries in the given order, bytes between fields zeroed.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            entry.external_attr = 0o644 << 16
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, _without_gaps(array), version=(1, 0), allow_pickle=False)
            archive.writestr(entry, buffer.getbuffer())


def load_arrays(
    source: str | Path | IO[bytes], types: dict[str, np.dtype], version: int | None = None
) -> dict[str, np.ndarray]:
    """Read arrays written by :func:`save_arrays`, each with exactly the record type that is asked for.

    The type matters beyond its fields: kernels are compiled for aligned records in writable arrays, and an equal
    layout without the flag would compile them anew.

    Args:
        types: name of each wanted array and its type.
        version: what the single element of the array ``version`` must be.

    Raises:
        ModelFileError: as :func:`load_model`.
    """
    what = _name(source)
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(source) as archive:
            present = set(archive.namelist())
            for name, wanted in types.items():
                if f"{name}.npy" not in present:
                    raise ModelFileError(f"{what}: has no table {name!r}; it is not a file of this kind")
                entry = archive.getinfo(f"{name}.npy")
                if entry.compress_type != zipfile.ZIP_STORED:
                    raise ModelFileError(f"{what}: table {name!r} is compressed; such files are not written by hapticd")
                with archive.open(entry) as member:
                    # Read to the end, which is what makes the archive compare its checksum.
                    array = read_npy(member.read())
                if name == "version" and version is not None and (array.size != 1 or int(array.flat[0]) != version):
                    raise ModelFileError(
                        f"{what}: has version {array.tolist()}, this program reads version {version}; make it anew"
                    )
                if not _same_layout(array.dtype, wanted):
                    raise ModelFileError(f"{what}: table {name!r} has another layout than this program's; make it anew")
                arrays[name] = np.ascontiguousarray(array).view(wanted)
    except ModelFileError:
        raise
    except FileNotFoundError:
        raise ModelFileError(f"{what}: does not exist") from None
    except (
        OSError,
        ValueError,
        EOFError,
        KeyError,
        NotImplementedError,
        RuntimeError,
        zipfile.BadZipFile,
    ) as error:
        raise ModelFileError(f"{what}: is damaged: {error}") from None
    return arrays


def read_npy(data: bytes) -> np.ndarray:
    """The array in the bytes of an npy file, writable. Raises ValueError unless it fills them exactly.

    Its size is compared with theirs before anything is made for it.
    """
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, by_columns, dtype = readers[version](file)
        start = file.tell()
        size = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or min(shape, default=0) < 0 or size != len(data) - start:
            raise ValueError(f"a table of {size} bytes does not fit the {len(data) - start} that there are")
        array = np.frombuffer(bytearray(data[start:]), dtype) if size else np.zeros(math.prod(shape), dtype)
        return array.reshape(shape, order="F" if by_columns else "C")
    except Exception as error:  # numpy passes on whatever its evaluation of a damaged header ran into
        raise ValueError(f"not a numpy table: {error!s:.150}") from None


def _name(source: object) -> str:
    return str(source) if isinstance(source, (str, Path)) else str(getattr(source, "name", "model file"))


def _without_gaps(array: np.ndarray) -> np.ndarray:
    """A contiguous copy whose bytes between fields are zero."""
    array = np.ascontiguousarray(array)
    if array.dtype.names is None:
        return array
    clean = np.zeros(array.shape, dtype=array.dtype)
    _copy_fields(clean, array)
    return clean


def _copy_fields(target: np.ndarray, source: np.ndarray) -> None:
    for name in source.dtype.names or ():
        if source[name].dtype.names is None:
            target[name] = source[name]
        else:
            _copy_fields(target[name], source[name])


def _same_layout(a: np.dtype, b: np.dtype) -> bool:
    """The same fields at the same places; the alignment flag, which npy files do not keep, may differ."""
    if a.fields is None or b.fields is None:
        return a == b
    if a.names != b.names or a.itemsize != b.itemsize:
        return False
    for name in a.names or ():
        (left, left_offset), (right, right_offset) = a.fields[name][:2], b.fields[name][:2]
        if left_offset != right_offset or left.shape != right.shape or not _same_layout(left.base, right.base):
            return False
    return True
