"""Public contact problems: each file means what its format says, and what is malformed is told."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tools.friction_problems import problem_files, read_folder, read_problem

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "friction_contact"
published = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason="needs the contact problems in ../shared/data/friction_contact"),
]
CONTACTS = {
    "2cubes_t0": 8,
    "Box_Stacks-i0122-82-5": 82,
    "BoxesStack1-i100000-32": 52,
    "Capsules-i100-1090": 276,
    "Capsules-i101-404": 225,
    "Capsules-i125-1213": 286,
    "Confeti-ex13-4contact-Fc3D-SBM": 4,
    "LMGC_100_PR_PerioBox-i00361-60-03000": 60,
    "NESpheres_10_1": 9,
    "NESpheres_30_1": 44,
    "OneObject-i100000-499": 24,
    "OneObject-i1028-138": 23,
    "Rover1039": 4,
    "Rover1040": 5,
    "Rover11035": 1,
    "Rover3865": 5,
    "Rover4144": 4,
    "Rover4396": 2,
    "Rover4493": 4,
    "Rover4609": 5,
    "Spheres-i099-356-679": 356,
    "sliding_cube": 4,
}


def writable(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    shutil.copyfile(DATA / name, path)
    return path


def words(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "made.dat"
    path.write_text(text)
    return path


def block_text(columns=(0, 1, 0, 1), numbers=(0, 1, 2, 3), starts=(0, 2, 4), count=4, ends=(3, 6)) -> str:
    """Two contacts, W of four blocks in block-sparse form; block b has b in its rows, 10 more on the diagonal."""
    parts = ["3 2 1 6 6", f"{count} 2 2", " ".join(map(str, ends)), "3 6", f"{len(starts)} {len(columns)}"]
    parts += [" ".join(map(str, starts)), " ".join(map(str, columns))]
    for number, column in zip(numbers, columns, strict=True):
        values = np.arange(9.0).reshape(3, 3) + 100.0 * (number in (0, 3)) * np.eye(3) + 10 * column
        parts += [str(number), " ".join(map(str, values.ravel(order="F")))]
    return "\n".join([*parts, " ".join(map(str, range(6))), "0.5 0.25"])


# -- made ones ---------------------------------------------------------------------------------------------------------


def test_dense_text_is_read_by_columns_and_symmetrised(tmp_path):
    matrix = np.array([[4.0, 1, 0], [3, 5, 2], [0, 2, 6]])
    numbers = " ".join(map(str, matrix.ravel(order="F")))
    problem = read_problem(words(tmp_path, f"3 1 0 3 3 3 3 {numbers} -1 2 3 0.7 1"))
    np.testing.assert_array_equal(problem.matrix, [[4, 2, 0], [2, 5, 2], [0, 2, 6]])
    np.testing.assert_array_equal(problem.free, [-1, 2, 3])
    np.testing.assert_array_equal(problem.friction, [0.7])
    assert problem.asymmetry == 2.0 / 6.0
    assert (problem.name, problem.contacts, problem.impulse) == ("made", 1, None)


def test_block_text_puts_each_block_in_its_place(tmp_path):
    problem = read_problem(words(tmp_path, block_text()))
    block = np.arange(9.0).reshape(3, 3)
    made = np.block([[block + 100 * np.eye(3), block + 10], [block, block + 100 * np.eye(3) + 10]])
    np.testing.assert_array_equal(problem.matrix, 0.5 * (made + made.T))
    np.testing.assert_array_equal(problem.free, range(6))
    np.testing.assert_array_equal(problem.friction, [0.5, 0.25])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the dimension"),
        ("2 1 0 2 2 2 2 1 0 0 1 0 0 0.5", "2 dimensions"),
        ("3 0 0 0 0", "0 contacts"),
        ("3 -1 0 -3 -3", "-1 contacts"),
        ("3 1 0 3 4 3 4", "3 by 4"),
        ("3 1 2 3 3 3 3", "kind 2"),
        ("3 1 0 3 3 3 2 1 0 0 0 1 0 0 0 1 0 0 0 0.5", "two shapes"),
        ("3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 0 0", "3 words wanted for the free velocity, 2 are left"),
        ("3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 one 0 0 0 0.5", "the matrix: numbers"),
        ("3.5 1 0", "whole numbers"),
        ("3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 0 0 0 0.5 1 2 3", "more in the file"),
        ("3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 0 0 0 0.5 7", "more in the file"),
        ("3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 0 0 nan 0.5", "not finite"),
        ("3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 0 0 0 -0.5", "friction is negative"),
        ("3 1 0 3 3 3 3 1 0 0 0 -1 0 0 0 1 0 0 0 0.5", "diagonal"),
        (block_text(count=5), "5 blocks with 4 indices"),
        (block_text(columns=(0, 1, 0, 2)), "outside the matrix"),
        (block_text(columns=(0, 0, 0, 1)), "two blocks in row 0, column 0"),
        (block_text(numbers=(0, 1, 3, 2)), "block 3 where block 2"),
        (block_text(starts=(0, 3, 2)), "do not count the blocks"),
        (block_text(starts=(0, 1, 2, 4)), "4 row pointers"),
        (block_text(ends=(3, 5)), "do not add up"),
    ],
)
def test_malformed_text_is_told_by_its_file(tmp_path, text, message):
    path = words(tmp_path, text)
    with pytest.raises(ValueError, match=message) as told:
        read_problem(path)
    assert str(path) in str(told.value)


def test_other_files_are_not_problems(tmp_path):
    (tmp_path / "README.md").write_text("3 1 0")
    assert problem_files(tmp_path) == []
    with pytest.raises(ValueError, match="not one of"):
        read_problem(tmp_path / "README.md")


def test_archives_put_the_normal_first(tmp_path):
    matrix = np.diag([1.0, 2, 3, 4, 5, 6])
    matrix[0, 5] = matrix[5, 0] = 0.5  # first tangent of one contact, normal of the other
    np.savez(tmp_path / "a.npz", G=matrix, g=np.arange(6.0)[:, None], mus=np.array([0.1, 0.2]), lam0=np.arange(6.0, 12))
    problem = read_problem(tmp_path / "a.npz")
    np.testing.assert_array_equal(np.diag(problem.matrix), [3, 1, 2, 6, 4, 5])
    assert problem.matrix[1, 3] == problem.matrix[3, 1] == 0.5
    np.testing.assert_array_equal(problem.free, [2, 0, 1, 5, 3, 4])
    np.testing.assert_array_equal(problem.impulse, [8, 6, 7, 11, 9, 10])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"G": None}, "no array G"),
        ({"G": np.eye(5)}, "1 contacts with a matrix"),
        ({"g": np.zeros(2)}, "2 free velocities"),
        ({"mus": np.zeros(0)}, "0 contacts"),
        ({"lam0": np.zeros(4)}, "4 impulses"),
    ],
)
def test_malformed_archives_are_told(tmp_path, change, message):
    arrays = {"G": np.eye(3), "g": np.zeros(3), "mus": np.ones(1)} | change
    np.savez(tmp_path / "a.npz", **{key: value for key, value in arrays.items() if value is not None})
    with pytest.raises(ValueError, match=message):
        read_problem(tmp_path / "a.npz")


def write_hdf5(path: Path, form: str, **changes) -> Path:
    """One contact of a body of two coordinates: W = H' M^-1 H; in the local form W in triplets."""
    h5py = pytest.importorskip("h5py")
    sets: dict = {"spacedim": 3, "vectors/mu": [0.5]}
    if form == "fclib_local":
        sets |= {"vectors/q": [1.0, 2, 3], "W/m": 3, "W/n": 3, "W/nz": 4}
        sets |= {"W/i": [0, 1, 2, 0], "W/p": [0, 1, 2, 1], "W/x": [1.0, 2, 3, 0.5]}
    else:
        sets |= {"vectors/f": [1.0, 2.0], "vectors/w": [0.0, 10, 20]}
        sets |= {"M/m": 2, "M/n": 2, "M/nz": 2, "M/i": [0, 1], "M/p": [0, 1], "M/x": [2.0, 4.0]}
        sets |= {"H/m": 2, "H/n": 3, "H/nz": -1, "H/i": [0, 1, 0, 1], "H/p": [0, 1, 2, 4], "H/x": [1.0, 2, 3, 4]}
    with h5py.File(path, "w") as file:
        for name, value in (sets | changes).items():
            if value is not None:
                file[f"{form}/{name}"] = value
    return path


def test_the_global_form_is_reduced_to_the_contacts(tmp_path):
    problem = read_problem(write_hdf5(tmp_path / "a.hdf5", "fclib_global"))
    jacobian = np.array([[1.0, 0, 3], [0, 2, 4]])
    np.testing.assert_allclose(problem.matrix, jacobian.T @ np.diag([0.5, 0.25]) @ jacobian, rtol=1e-15)
    np.testing.assert_allclose(problem.free, jacobian.T @ [0.5, 0.5] + [0, 10, 20], rtol=1e-15)


@pytest.mark.parametrize("kind", ["triplets", "rows", "columns"])
def test_the_three_sparse_forms_are_one_matrix(tmp_path, kind):
    changes = {
        "triplets": {},
        "rows": {"W/nz": -2, "W/p": [0, 2, 3, 4], "W/i": [0, 1, 1, 2], "W/x": [1.0, 0.5, 2, 3]},
        "columns": {"W/nz": -1, "W/p": [0, 1, 3, 4], "W/i": [0, 0, 1, 2], "W/x": [1.0, 0.5, 2, 3]},
    }[kind]
    problem = read_problem(write_hdf5(tmp_path / "a.h5", "fclib_local", **changes))
    np.testing.assert_array_equal(problem.matrix, [[1, 0.25, 0], [0.25, 2, 0], [0, 0, 3]])
    assert problem.asymmetry == 0.5 / 3.0


@pytest.mark.parametrize(
    ("form", "changes", "message"),
    [
        ("fclib_local", {"spacedim": 2}, "2 dimensions"),
        ("fclib_local", {"spacedim": None}, "no data set spacedim"),
        ("fclib_local", {"vectors/q": None}, "no data set vectors/q"),
        ("fclib_local", {"W/x": [1.0]}, "4 triplets are said to be there, 1 are"),
        ("fclib_local", {"W/i": [0, 1, 3, 0]}, "outside 3 by 3"),
        ("fclib_local", {"W/nz": -2}, "pointers do not belong"),
        ("fclib_local", {"W/nz": -2, "W/p": [0, 2, 3, 9]}, "9 entries are said to be there, 4 are"),
        ("fclib_local", {"W/nz": -3}, "kind -3"),
        ("fclib_local", {"vectors/mu": [0.5, 0.5]}, "2 contacts with a matrix"),
        ("fclib_global", {"vectors/f": [1.0]}, "1 forces"),
        ("fclib_global", {"M/x": [2.0, 0.0]}, "cannot be inverted"),
        ("somebodys", {}, "neither fclib_local nor fclib_global"),
    ],
)
def test_malformed_hdf5_is_told(tmp_path, form, changes, message):
    with pytest.raises(ValueError, match=message):
        read_problem(write_hdf5(tmp_path / "a.hdf5", form, **changes))


# -- the published ones ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problems():
    pytest.importorskip("h5py")
    return {problem.name: problem for problem in read_folder(DATA)}


@pytest.mark.usefixtures("problems")
class TestPublished:
    pytestmark = published

    def test_all_files_are_read(self, problems):
        """The numbers of contacts are those in the files' names, where they say so, and in the folder's own words."""
        assert {name: problem.contacts for name, problem in problems.items()} == CONTACTS

    def test_delassus_operators_have_no_negative_energy(self, problems):
        """W = J M^-1 J' is positive semi-definite, which a block in a wrong place would spoil."""
        for problem in problems.values():
            values = np.linalg.eigvalsh(problem.matrix)
            assert values[0] >= -1e-7 * values[-1], problem.name
            np.testing.assert_array_equal(problem.matrix, problem.matrix.T)

    def test_only_some_files_are_unsymmetric(self, problems):
        """By a few parts in a thousand at most, as the folder's notes say."""
        unsymmetric = {name for name, problem in problems.items() if problem.asymmetry > 1e-12}
        assert all(name.startswith(("Capsules", "OneObject", "Rover")) for name in unsymmetric)
        assert max(problem.asymmetry for problem in problems.values()) < 2e-3

    def test_gravity_is_along_the_normal_of_a_cube_on_the_ground(self, problems):
        """1 ms of free fall at 9.81 m/s^2, and slip along the tangents."""
        free = problems["sliding_cube"].free.reshape(-1, 3)
        np.testing.assert_allclose(free[:, 0], -9.81e-3, rtol=1e-8)
        assert (np.linalg.norm(free[:, 1:], axis=1) > 1.0).all()

    @pytest.mark.parametrize("name", ["Rover1039.dat", "Confeti-ex13-4contact-Fc3D-SBM.dat", "NESpheres_10_1.dat"])
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.97])
    def test_cut_text_is_told(self, tmp_path, name, share):
        path = writable(tmp_path, name)
        text = path.read_text()
        path.write_text(text[: int(share * len(text))])
        with pytest.raises(ValueError, match=name):
            read_problem(path)

    @pytest.mark.parametrize("name", ["sliding_cube.npz", "LMGC_100_PR_PerioBox-i00361-60-03000.hdf5"])
    @pytest.mark.parametrize("share", [0.01, 0.5, 0.95])
    def test_cut_binary_files_are_told(self, tmp_path, name, share):
        path = writable(tmp_path, name)
        whole = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match=name):
            read_problem(path)

    def test_a_wrong_count_is_told(self, tmp_path):
        path = writable(tmp_path, "Rover1039.dat")
        path.write_text(path.read_text().replace("3\n4\n", "3\n5\n", 1))
        with pytest.raises(ValueError, match="5 contacts with a matrix of 12 by 12"):
            read_problem(path)
