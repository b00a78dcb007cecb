"""Contact problems with friction of other people's simulations, read from the files they are published in.

Find impulses r with u = W r + q, r in the cone |r_t| <= mu r_n, u + mu |u_t| n in its dual, both orthogonal. Formats:

* text of Siconos (``.dat``): dimension, contacts, kind of matrix, W dense (0) or block-sparse (1), q, mu;
* FCLIB's HDF5 (``.hdf5``, ``.h5``; needs h5py): ``fclib_local`` with W, q, mu, or ``fclib_global`` with the mass M, the
  transposed Jacobian H, f, w, mu, of which W = H' M^-1 H and q = H' M^-1 f + w are made. Answers in the files are not
  read: in those published the impulses are all zero;
* ContactBench's archives (``.npz``): G, g, mus, the normal component last.

Source: Acary, Bremond and Huber 2018 (FCLIB); Le Lidec et al. 2023 (ContactBench).
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

SUFFIXES = (".dat", ".hdf5", ".h5", ".npz")


@dataclass
class FrictionProblem:
    """One problem of n contacts, three rows each, the normal first."""

    name: str
    matrix: np.ndarray
    """W (3n, 3n), made symmetric."""
    free: np.ndarray
    """q (3n,)."""
    friction: np.ndarray
    """mu (n,)."""
    asymmetry: float
    """Largest |W - W'| of the file, as a share of the largest |W|; half of it is what symmetrising changed."""
    impulse: np.ndarray | None = None
    """r (3n,) that the file gives as a start, if any."""

    @property
    def contacts(self) -> int:
        return len(self.friction)


def problem_files(directory: Path) -> list[Path]:
    """Files of a folder that have the suffix of a known format, in the order of their names."""
    return sorted(path for path in Path(directory).iterdir() if path.is_file() and path.suffix in SUFFIXES)


def read_folder(directory: Path) -> list[FrictionProblem]:
    """Read all problems of a folder, in the order of the files' names; ValueError as soon as one cannot be read."""
    return [read_problem(path) for path in problem_files(directory)]


def read_problem(path: Path) -> FrictionProblem:
    """Read one problem; ValueError that names the file if it is malformed, of an unknown format, or not in space."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: not one of {', '.join(SUFFIXES)}")
    name = path.name
    while Path(name).suffix in SUFFIXES:
        name = Path(name).stem
    try:
        if path.suffix == ".dat":
            matrix, free, friction, impulse = _text(path)
        elif path.suffix == ".npz":
            matrix, free, friction, impulse = _archive(path)
        else:
            matrix, free, friction, impulse = _hdf5(path)
        return _checked(name, matrix, free, friction, impulse)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _checked(
    name: str, matrix: np.ndarray, free: np.ndarray, friction: np.ndarray, impulse: np.ndarray | None
) -> FrictionProblem:
    rows = 3 * len(friction)
    if rows == 0:
        raise ValueError("no contacts")
    if matrix.shape != (rows, rows) or free.shape != (rows,):
        raise ValueError(f"{len(friction)} contacts with a matrix {matrix.shape} and {len(free)} free velocities")
    if impulse is not None and impulse.shape != (rows,):
        raise ValueError(f"{len(friction)} contacts with {len(impulse)} impulses")
    for what, values in (("matrix", matrix), ("free velocity", free), ("friction", friction)):
        if not np.isfinite(values).all():
            raise ValueError(f"{what} has numbers that are not finite")
    if (friction < 0.0).any():
        raise ValueError("a coefficient of friction is negative")
    if (np.diag(matrix) <= 0.0).any():
        raise ValueError("the matrix has a diagonal entry that is not positive")
    asymmetry = float(np.abs(matrix - matrix.T).max() / np.abs(matrix).max())
    return FrictionProblem(name, 0.5 * (matrix + matrix.T), free, friction, asymmetry, impulse)


class _Words:
    """The words of a text file, taken in order."""

    def __init__(self, text: str) -> None:
        self.words = text.split()
        self.at = 0

    def left(self) -> int:
        return len(self.words) - self.at

    def take(self, count: int, what: str) -> list[str]:
        if count < 0 or count > self.left():
            raise ValueError(f"{count} words wanted for {what}, {self.left()} are left")
        self.at += count
        return self.words[self.at - count : self.at]

    def whole(self, what: str, count: int = 1) -> np.ndarray:
        words = self.take(count, what)
        try:
            return np.array([int(word) for word in words], dtype=int)
        except ValueError:
            raise ValueError(f"{what}: whole numbers wanted, found {' '.join(words[:4])}") from None

    def one(self, what: str) -> int:
        return int(self.whole(what)[0])

    def reals(self, what: str, count: int) -> np.ndarray:
        words = self.take(count, what)
        try:
            return np.array(words, dtype=float)
        except ValueError:
            raise ValueError(f"{what}: numbers wanted") from None


_Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


def _text(path: Path) -> _Parts:
    """Siconos' text."""
    words = _Words(path.read_text(encoding="ascii", errors="replace"))
    dimension = words.one("the dimension")
    if dimension != 3:
        raise ValueError(f"the problem has {dimension} dimensions, 3 wanted")
    contacts = words.one("the number of contacts")
    kind = words.one("the kind of matrix")
    rows, columns = words.one("rows"), words.one("columns")
    if contacts < 1 or rows != 3 * contacts or columns != rows:
        raise ValueError(f"{contacts} contacts with a matrix of {rows} by {columns}")
    if kind == 0:
        if tuple(words.whole("the dense matrix's shape", 2)) != (rows, columns):
            raise ValueError("the matrix is said to have two shapes")
        matrix = words.reals("the matrix", rows * columns).reshape((rows, columns), order="F")
    elif kind == 1:
        matrix = _blocks(words, rows)
    else:
        raise ValueError(f"a matrix of kind {kind}; 0 (dense) and 1 (block-sparse) are known")
    free = words.reals("the free velocity", rows)
    friction = words.reals("friction", contacts)
    # Newer files end with a flag that says whether a start follows; none of those published has one.
    if words.left() and (words.left() > 1 or words.one("the flag at the end") not in (0, 1)):
        raise ValueError("there is more in the file than a matrix, free velocities and friction")
    return matrix, free, friction, None


def _blocks(words: _Words, rows: int) -> np.ndarray:
    """A block-sparse matrix: row pointers and columns of the blocks, then each block's number and columns."""
    count = words.one("the number of blocks")
    high, wide = words.one("block rows"), words.one("block columns")
    row_ends = words.whole("ends of block rows", high)
    column_ends = words.whole("ends of block columns", wide)
    for ends in (row_ends, column_ends):
        if len(ends) == 0 or ends[-1] != rows or (np.diff(ends, prepend=0) <= 0).any():
            raise ValueError("block sizes do not add up to the matrix")
    pointers, filled = words.one("the number of row pointers"), words.one("the number of block indices")
    starts = words.whole("row pointers", pointers)
    indices = words.whole("block columns", filled)
    if filled != count or pointers < 1 or pointers > high + 1:
        raise ValueError(f"{count} blocks with {filled} indices and {pointers} row pointers")
    if starts[0] != 0 or starts[-1] != count or (np.diff(starts) < 0).any():
        raise ValueError("row pointers do not count the blocks")
    if ((indices < 0) | (indices >= wide)).any():
        raise ValueError("a block is outside the matrix")
    matrix = np.zeros((rows, rows))
    filled_at = np.zeros((high, wide), dtype=bool)
    for row in range(pointers - 1):
        top, below = row_ends[row - 1] if row else 0, row_ends[row]
        for at in range(starts[row], starts[row + 1]):
            column = indices[at]
            left, right = column_ends[column - 1] if column else 0, column_ends[column]
            number = words.one("the number of a block")
            if number != at:
                raise ValueError(f"block {number} where block {at} should be")
            if filled_at[row, column]:
                raise ValueError(f"two blocks in row {row}, column {column}")
            filled_at[row, column] = True
            values = words.reals("a block", (below - top) * (right - left))
            matrix[top:below, left:right] = values.reshape((below - top, right - left), order="F")
    return matrix


def _archive(path: Path) -> _Parts:
    """ContactBench's archive: rows are turned so that the normal comes first."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: np.asarray(archive[key], dtype=float) for key in archive.files}
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"not an archive of arrays ({error})") from error
    missing = [key for key in ("G", "g", "mus") if key not in arrays]
    if missing:
        raise ValueError(f"no array {missing[0]}; there are {', '.join(arrays) or 'none'}")
    friction = arrays["mus"].ravel()
    matrix, free = arrays["G"], arrays["g"].ravel()
    rows = 3 * len(friction)
    if matrix.shape != (rows, rows) or free.shape != (rows,):
        raise ValueError(f"{len(friction)} contacts with a matrix {matrix.shape} and {len(free)} free velocities")
    order = np.arange(rows).reshape(-1, 3)[:, [2, 0, 1]].ravel()
    impulse = None
    if "lam0" in arrays:
        if arrays["lam0"].size != rows:
            raise ValueError(f"{len(friction)} contacts with {arrays['lam0'].size} impulses")
        impulse = arrays["lam0"].ravel()[order]
    return matrix[np.ix_(order, order)], free[order], friction, impulse


def _hdf5(path: Path) -> _Parts:
    """FCLIB's HDF5, local or global form."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            form = next((name for name in ("fclib_local", "fclib_global") if name in file), None)
            if form is None:
                raise ValueError("neither fclib_local nor fclib_global is in the file")
            group = file[form]
            dimension = int(_values(group, "spacedim", int)[0])
            if dimension != 3:
                raise ValueError(f"the problem has {dimension} dimensions, 3 wanted")
            friction = _values(group, "vectors/mu")
            if form == "fclib_local":
                return _sparse(group, "W").toarray(), _values(group, "vectors/q"), friction, None
            jacobian, mass = _sparse(group, "H"), _sparse(group, "M")
            force, wanted = _values(group, "vectors/f"), _values(group, "vectors/w")
    except OSError as error:
        raise ValueError(f"not a readable HDF5 file ({error})") from error
    if mass.shape[0] != mass.shape[1] or jacobian.shape != (mass.shape[0], len(wanted)) or len(force) != mass.shape[0]:
        raise ValueError(f"mass {mass.shape}, H {jacobian.shape}, {len(force)} forces, {len(wanted)} velocities")
    try:
        factors = splu(mass.tocsc())
    except RuntimeError as error:
        raise ValueError(f"the mass cannot be inverted ({error})") from error
    matrix = jacobian.T @ factors.solve(jacobian.toarray())
    return matrix, jacobian.T @ factors.solve(force) + wanted, friction, None


def _values(group: Any, name: str, kind: type = float) -> np.ndarray:
    """A data set of an HDF5 group as a flat array."""
    if name not in group or not hasattr(group[name], "shape"):
        raise ValueError(f"no data set {name} in {group.name}")
    return np.asarray(group[name][()], dtype=kind).ravel()


def _sparse(group: Any, name: str) -> sparse.coo_array:
    """A matrix of CSparse's form: nz is -2 for rows, -1 for columns, else the number of triplets."""
    if name not in group:
        raise ValueError(f"no matrix {name} in {group.name}")
    matrix = group[name]
    rows, columns, kind = (int(_values(matrix, key, int)[0]) for key in ("m", "n", "nz"))
    indices, pointers, values = _values(matrix, "i", int), _values(matrix, "p", int), _values(matrix, "x")
    if kind >= 0:
        if min(len(indices), len(pointers), len(values)) < kind:
            raise ValueError(f"{name}: {kind} triplets are said to be there, {len(values)} are")
        at_row, at_column, values = indices[:kind], pointers[:kind], values[:kind]
    elif kind in (-1, -2):
        lines = rows if kind == -2 else columns
        if len(pointers) != lines + 1 or pointers[0] != 0 or (np.diff(pointers) < 0).any():
            raise ValueError(f"{name}: pointers do not belong to {lines} compressed lines")
        used = pointers[-1]
        if min(len(indices), len(values)) < used:
            raise ValueError(f"{name}: {used} entries are said to be there, {len(values)} are")
        line = np.repeat(np.arange(lines), np.diff(pointers))
        values = values[:used]
        at_row, at_column = (line, indices[:used]) if kind == -2 else (indices[:used], line)
    else:
        raise ValueError(f"{name}: a matrix of kind {kind}")
    if len(values) and (min(at_row.min(), at_column.min()) < 0 or at_row.max() >= rows or at_column.max() >= columns):
        raise ValueError(f"{name}: an entry is outside {rows} by {columns}")
    return sparse.coo_array((values, (at_row, at_column)), shape=(rows, columns))
