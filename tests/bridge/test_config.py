"""A configuration is accepted whole or refused with file, key, value and what would be right."""

import json
import math
import tomllib
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.config import ConfigError, json_schema, load_config, parse_config, validate_config

ROOT = Path(__file__).resolve().parents[2]
BOX = '[[scene.body]]\nname = "a"\nprimitive = "box"\nsize = [1, 1, 1]\n'
BALL = '[tool]\nprimitive = "sphere"\nsize = [0.1]\n'
FIXTURE = "[[scene.fixture]]\nposition = [0, 0, 0]\n"
INERT = 'motion = "free"\nmass = 1\ncentre_of_mass = [0, 0, 0]\ninertia = {}\n' + BALL

WRONG = [
    ("density = -3\n", "scene.body[0] ('a').density", "-3", "must be greater than 0"),
    ("[coupling]\nstiffness = 0\n", "coupling.stiffness", "0", "must be at least 1e-06"),
    ("[coupling]\nstiffness = 1e-310\n", "coupling.stiffness", "1e-310", "must be at least 1e-06"),
    ("[coupling]\nworld_stiffness = 1e-9\n", "coupling.world_stiffness", "1e-09", "must be at least 1e-06"),
    ("[coupling]\ndamping = nan\n", "coupling.damping", "nan", "finite number"),
    ("[coupling]\nstiffness_fraction = 1.5\n", "coupling.stiffness_fraction", "1.5", "must be at most 1"),
    (
        "[coupling]\nstiffness = 400\nstiffness_fraction = 0.5\n",
        "coupling.stiffness_fraction",
        "0.5",
        "and `stiffness` say the same; give one of them",
    ),
    ("[rates]\ntick_hz = inf\n", "rates.tick_hz", "inf", "finite number"),
    ("[tool]\ntip_radius = -0.001\n", "tool.tip_radius", "-0.001", "must be at least 0"),
    ('[tool]\ntip_radius = "5 mm"\n', "tool.tip_radius", "'5 mm'", "must be a number"),
    ('[log]\nrecord = "yes"\n', "log.record", "'yes'", "must be true or false"),
    ("[budget]\npasses = 2.5\n", "budget.passes", "2.5", "whole number"),
    ("[budget]\npasses = 9\n", "budget.passes", "9", "must be at most 8"),
    ("[coupling]\nramp_fault_ms = 500\n", "coupling.ramp_fault_ms", "500", "must be at most 20"),
    ("frction_static = 1\n", "scene.body[0] ('a').frction_static", "1", "did you mean `friction_static`?"),
    ("[coupling]\nstifness = 10\n", "coupling.stifness", "10", "did you mean `stiffness`?"),
    ("[scen]\na = 1\n", "scen", "{'a': 1}", "did you mean `scene`?"),
    ("[tool]\nzzz = 1\n", "tool.zzz", "1", "tip_radius, tip_offset, pose, motion, mass, start, start_orientation"),
    ('motion = "statc"\n', "scene.body[0] ('a').motion", "'statc'", "did you mean 'static'?"),
    (
        "friction_static = 0.1\n",
        "scene.body[0] ('a').friction_kinetic",
        "0.3",
        "must not be above friction_static (0.1)",
    ),
    ("pose.orientation = [0, 0, 0, 2]\n", "scene.body[0] ('a').pose.orientation", "[0, 0, 0, 2]", "unit quaternion"),
    ("pose.orientation = [0, 1]\n", "scene.body[0] ('a').pose.orientation", "[0, 1]", "array of 4 numbers"),
    ("pose.position = [0, 1]\n", "scene.body[0] ('a').pose.position", "[0, 1]", "array of 3 numbers"),
    ("pose.position = [0, 1, 2, 3]\n", "scene.body[0] ('a').pose.position", "[0, 1, 2, 3]", "3 entries and no more"),
    ("scale = 0\n", "scene.body[0] ('a').scale", "0", "must be greater than 0"),
    ("scale = [1, 2]\n", "scene.body[0] ('a').scale", "[1, 2]", "array of 3 numbers"),
    ("scale = [1, 2, -3]\n", "scene.body[0] ('a').scale[2]", "-3", "must be greater than 0"),
    (
        'mesh = "x.obj"\n',
        "scene.body[0] ('a')",
        "`mesh` and `primitive`",
        "exactly one of `mesh`, `urdf` or `primitive`",
    ),
    ("joints = { j = 1.0 }\n", "scene.body[0] ('a').joints", "{'j': 1.0}", "belongs to a `urdf`"),
    ('[[scene.body]]\nname = "b"\n', "scene.body[1] ('b')", "none of them", "exactly one of"),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "cylinder"\nsize = [1]\n',
        "scene.body[1] ('b').size",
        "[1.0]",
        "2 number(s): radius and length",
    ),
    ('[[scene.body]]\nname = "b"\nprimitive = "sphere"\n', "scene.body[1] ('b').size", "", "is needed for a sphere"),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "sphere"\nsize = [-1]\n',
        "scene.body[1] ('b').size",
        "[-1.0]",
        "must be greater than 0",
    ),
    (
        '[[scene.body]]\nname = "b"\nmesh = "x.obj"\nsize = [1]\n',
        "scene.body[1] ('b').size",
        "[1.0]",
        "use `scale` for a mesh",
    ),
    (
        '[[scene.body]]\nname = "b"\nurdf = "x.urdf"\nscale = [1, 1, 2]\n',
        "scene.body[1] ('b').scale",
        "[1.0, 1.0, 2.0]",
        "must be one number",
    ),
    (
        '[[scene.body]]\nname = "a"\nprimitive = "sphere"\nsize = [1]\n',
        "scene.body[1].name",
        "'a'",
        "body[0] has the same name",
    ),
    ('[[scene.body]]\nprimitive = "sphere"\nsize = [1]\n', "scene.body[1].name", "", "is missing"),
    (
        '[[scene.body]]\nname = "a/b"\nprimitive = "sphere"\nsize = [1]\n',
        "scene.body[1] ('a/b').name",
        "'a/b'",
        "letters",
    ),
    (
        '[tool]\nmesh = "a.obj"\nprimitive = "box"\nsize = [1, 1, 1]\n',
        "tool",
        "`mesh` and `primitive`",
        "takes one of",
    ),
    ('[tool]\nmesh = "a.obj"\ntip_radius = 0.01\n', "tool.tip_radius", "0.01", "belongs to a sphere tip"),
    ('[tool]\nprimitive = "box"\nsize = [1, 1]\n', "tool.size", "[1.0, 1.0]", "must be 3 number(s)"),
    ("[safety]\nhold_after_ms = 50\n", "safety.stale_after_ms", "20.0", "greater than hold_after_ms (50)"),
    ("[rates]\ntick_hz = 250\n", "safety.hold_after_ms", "5.0", "at least 1.5 ticks, 6 ms at tick_hz = 250"),
    ("[safety]\nhold_after_ms = 1.4\n", "safety.hold_after_ms", "1.4", "at least 1.5 ticks, 1.5 ms"),
    (
        "[rates]\ntick_hz = 100\n[safety]\nhold_after_ms = 15\n",
        "safety.stale_after_ms",
        "20.0",
        "at least 3 ticks, 30 ms at tick_hz = 100",
    ),
    ("[coupling]\nvalid_for_ms = 1\n", "coupling.valid_for_ms", "1.0", "at least 1.5 ticks, 1.5 ms"),
    ("[safety]\nlease_ms = 10\n", "safety.lease_ms", "10.0", "greater than stale_after_ms (20)"),
    ('[sockets]\nhost = "0.0.0.0"\n', "sockets.host", "'0.0.0.0'", "must be a loopback address"),
    ('[sockets]\nhost = "192.168.1.7"\n', "sockets.host", "'192.168.1.7'", "other machines are refused"),
    ("[sockets]\nport = 80\n", "sockets.port", "80", "must be at least 1024"),
    ('[rates]\nclocking = "trigered"\n', "rates.clocking", "'trigered'", "did you mean 'triggered'?"),
    ('motion = "free"\nmass = 0\n' + BALL, "scene.body[0] ('a').mass", "0", "must be greater than 0"),
    ('motion = "free"\nmass = -1\n' + BALL, "scene.body[0] ('a').mass", "-1", "must be greater than 0"),
    ('motion = "free"\nmass = 1e-40\n' + BALL, "scene.body[0] ('a').mass", "1e-40", "must be at least 1e-30 kg"),
    ("mass = 2\n", "scene.body[0] ('a').mass", "2.0", 'belongs to a body with motion = "free"'),
    ('motion = "kinematic"\nlinear_drag = 1\n' + BALL, "scene.body[0] ('a').linear_drag", "1.0", "belongs to a body"),
    ("surface.height = 1e-3\n", "scene.body[0] ('a').surface.height", "0.001", "needs a `pattern`"),
    (
        'surface.pattern = "ridges"\n',
        "scene.body[0] ('a').surface.pattern",
        "'ridges'",
        "must be one of smooth, grating, bumps, noise",
    ),
    (
        'surface = { pattern = "grating", direction = [1, 1, 0] }\n',
        "scene.body[0] ('a').surface.direction",
        "[1.0, 1.0, 0.0]",
        "must have norm 1",
    ),
    (
        '[[scene.region]]\nkind = "magnet"\nposition = [0, 0, 0]\nreach = 0\nstrength = 1\n',
        "scene.region[0].reach",
        "0",
        "must be greater than 0",
    ),
    ('[[scene.region]]\nkind = "magnet"\nreach = 1\nstrength = 1\n', "scene.region[0].position", "", "is missing"),
    (FIXTURE + 'kind = "groove"\n', "scene.fixture[0].kind", "'groove'", "must be one of plane, line, tube, cone"),
    (FIXTURE + 'kind = "line"\n', "scene.fixture[0].direction", "", "is needed for a line"),
    (
        FIXTURE + 'kind = "line"\ndirection = [0, 0, 0]\n',
        "scene.fixture[0].direction",
        "[0.0, 0.0, 0.0]",
        "not be zero",
    ),
    (FIXTURE + 'kind = "tube"\ndirection = [0, 0, 1]\n', "scene.fixture[0].radius", "", "is needed for a tube"),
    (
        FIXTURE + 'kind = "cone"\ndirection = [0, 0, 1]\nangle_deg = 90\n',
        "scene.fixture[0].angle_deg",
        "90",
        "must be less than 90",
    ),
    (
        FIXTURE + 'kind = "plane"\ndirection = [0, 0, 1]\nradius = 0.1\n',
        "scene.fixture[0].radius",
        "0.1",
        "does not belong to a plane",
    ),
    (FIXTURE + 'kind = "forbidden"\n', "scene.fixture[0].shape", "", "half-space, ball or box"),
    (
        FIXTURE + 'kind = "plane"\nshape = "ball"\n',
        "scene.fixture[0].shape",
        "'ball'",
        'belongs to a fixture with kind = "forbidden"',
    ),
    (FIXTURE + 'kind = "forbidden"\nshape = "box"\n', "scene.fixture[0].size", "", "is needed for a box"),
    (
        FIXTURE + 'kind = "forbidden"\nshape = "ball"\nradius = 0.1\norientation = [0, 0, 0, 1]\n',
        "scene.fixture[0].orientation",
        "[0.0, 0.0, 0.0, 1.0]",
        "does not belong to a ball",
    ),
    (
        FIXTURE + 'kind = "plane"\ndirection = [0, 0, 1]\nstrength = 1\n',
        "scene.fixture[0].strength",
        "1.0",
        "belongs to a soft fixture",
    ),
    ("restitution = 1.5\n", "scene.body[0] ('a').restitution", "1.5", "must be at most 1"),
    ("friction_kinetic = -1\n", "scene.body[0] ('a').friction_kinetic", "-1", "must be at least 0"),
    ("torsional_friction = -1\n", "scene.body[0] ('a').torsional_friction", "-1", "must be at least 0"),
    ("rolling_friction = -1\n", "scene.body[0] ('a').rolling_friction", "-1", "must be at least 0"),
    ("velocity = [0, 1, 0]\n", "scene.body[0] ('a').velocity", "[0.0, 1.0, 0.0]", "belongs to a body with motion"),
    (
        'motion = "held"\nangular_velocity = [0, 1, 0]\n',
        "scene.body[0] ('a').angular_velocity",
        "[0.0, 1.0, 0.0]",
        'belongs to a body with motion = "free" or "kinematic"',
    ),
    ('motion = "free"\n', "scene.body[0] ('a').motion", "'free'", 'set `[tool] primitive = "sphere"`'),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "ball"\nsize = [1, 2]\n' + BALL,
        "scene.body[1] ('b').size",
        "[1.0, 2.0]",
        "of a ball must be 1 number(s): the radius",
    ),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "capsule"\nsize = [1]\n' + BALL,
        "scene.body[1] ('b').size",
        "[1.0]",
        "of a capsule must be 2 number(s): radius and length",
    ),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "capsule"\nsize = [1, 0]\n' + BALL,
        "scene.body[1] ('b').size",
        "[1.0, 0.0]",
        "must be greater than 0",
    ),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "ball"\nsize = [1]\nsubdivisions = 2\n' + BALL,
        "scene.body[1] ('b').subdivisions",
        "2",
        "a ball is exactly round",
    ),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "capsule"\nsize = [1, 1]\nscale = 2.0\n' + BALL,
        "scene.body[1] ('b').scale",
        "2.0",
        "does not belong to a capsule",
    ),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "ball"\nsize = [1]\nscale = [1, 1, 2]\n' + BALL,
        "scene.body[1] ('b').scale",
        "[1.0, 1.0, 2.0]",
        "which is as large as its `size` says",
    ),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "ball"\nsize = [1]\n',
        "scene.body[1] ('b').primitive",
        "'ball'",
        'needs a tool with a surface (`[tool] mesh` or `primitive`); beside a sphere tip use `primitive = "sphere"`;',
    ),
    (
        '[[scene.body]]\nname = "b"\nprimitive = "capsule"\nsize = [1, 1]\n',
        "scene.body[1] ('b').primitive",
        "'capsule'",
        'beside a sphere tip use `primitive = "sphere"` or "cylinder"',
    ),
    (
        '[tool]\nprimitive = "ball"\nsize = [1]\n',
        "tool.primitive",
        "'ball'",
        'belongs to a body of the scene; a tool may be a "sphere" or "cylinder"',
    ),
    (
        'motion = "kinematic"\n' + BALL + 'motion = "carried"\n',
        "scene.body[0] ('a').motion",
        "'kinematic'",
        'set `[tool] motion = "sliding"`',
    ),
    (
        '[[scene.body]]\nname = "r"\nurdf = "x.urdf"\nmotion = "free"\n' + BALL,
        "scene.body[1] ('r').motion",
        "'free'",
        "of a urdf must be static or held",
    ),
    (INERT.format("[1, 1]"), "scene.body[0] ('a').inertia", "[1, 1]", "three principal moments or three rows"),
    (INERT.format("3"), "scene.body[0] ('a').inertia", "3", "three principal moments or three rows"),
    (INERT.format("[[1, 0], [0, 1], [0, 0]]"), "scene.body[0] ('a').inertia", "[[1, 0]", "three rows of three numbers"),
    (INERT.format("[1, 1, 3]"), "scene.body[0] ('a').inertia", "(1.0, 1.0, 3.0)", "no body has the principal moment"),
    (INERT.format("[1, 1, 0]"), "scene.body[0] ('a').inertia", "(1.0, 1.0, 0.0)", "must be positive"),
    (
        INERT.format("[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]"),
        "scene.body[0] ('a').inertia",
        "((1.0, 0.1, 0.0)",
        "must be symmetric",
    ),
    (INERT.format("[1e40, 1e40, 1e40]"), "scene.body[0] ('a').inertia", "(1e+40", "radii of gyration"),
    (
        'motion = "free"\ninertia = [1, 1, 1]\n' + BALL,
        "scene.body[0] ('a').inertia",
        "(1.0, 1.0, 1.0)",
        "needs `mass` and `centre_of_mass`",
    ),
    (
        'motion = "free"\ncentre_of_mass = [0, 0, 0]\n' + BALL,
        "scene.body[0] ('a').centre_of_mass",
        "[0.0, 0.0, 0.0]",
        "belongs to a body with `inertia`",
    ),
    ("[tool]\nmass = 1\n", "tool.mass", "1.0", "a sphere tip has no inertia"),
    (BALL + "mass = -1\n", "tool.mass", "-1", "must be at least 0"),
    (BALL + "mass = 1e-40\n", "tool.mass", "1e-40", "must be at least 1e-30 kg"),
    (BALL + 'mass = 1\nmotion = "carried"\n', "tool.mass", "1.0", "a carried one has no inertia"),
    ("[budget]\nvisits = -1\n", "budget.visits", "-1", "must be at least 0"),
    ("[scene]\ngravity = [0, 1]\n", "scene.gravity", "[0, 1]", "array of 3 numbers"),
    ("[scene]\neps_alert = 1e-4\neps_safety = 1e-5\n", "scene.eps_safety", "1e-05", "greater than eps_alert (0.0001)"),
    ("[scene]\neps_safety = 1e-4\neps_break = 1e-4\n", "scene.eps_break", "0.0001", "greater than eps_safety (0.0001)"),
]


@pytest.mark.parametrize(("extra", "key", "value", "right"), WRONG, ids=[w[1] + "=" + w[2] for w in WRONG])
def test_an_error_names_file_key_value_and_what_would_be_right(extra, key, value, right):
    text = extra + BOX if extra.startswith("[scene]\n") else BOX + extra
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "scene.toml")
    message = str(caught.value)
    assert message.count("\n") == 0
    assert message.startswith(f"scene.toml: {key}: ")
    assert value in message
    assert right in message


def test_all_problems_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        parse_config(BOX + 'density = "x"\n[coupling]\nstiffness = -1\n', "c.toml")
    assert [p.split(":")[0] for p in caught.value.problems] == ["scene.body[0] ('a').density", "coupling.stiffness"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "scene: is missing"),
        ("scene = 3", "scene: must be a table; given 3"),
        ("[scene]\nbody = []", "scene.body: must have at least 1 entries"),
        ("a = 1\nb = = 2\n", "is not valid TOML"),
        ("a = 1\na = 2\n", "is not valid TOML"),
        ("a = " + "[" * 5000, "is not valid TOML"),
    ],
)
def test_what_is_no_configuration(text, said):
    with pytest.raises(ConfigError, match=r"^c\.toml: ") as caught:
        parse_config(text, "c.toml")
    assert said in str(caught.value)


def test_a_syntax_error_has_its_line():
    with pytest.raises(ConfigError, match="at line 3"):
        parse_config("a = 1\n\nb = = 2\n", "c.toml")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "bunny.toml").write_text(BOX)
    with pytest.raises(ConfigError, match=r"buny\.toml: does not exist; did you mean .*bunny\.toml\?"):
        load_config(tmp_path / "buny.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b'name = "\xff\xfe"\n')
    with pytest.raises(ConfigError, match="line 1 is not UTF-8"):
        load_config(tmp_path / "binary.toml")
    (tmp_path / "long.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigError, match="at most a megabyte"):
        load_config(tmp_path / "long.toml")


def test_a_quaternion_within_a_thousandth_is_normalised():
    config = parse_config(BOX + "pose.orientation = [0, 0, 0.6004, 0.8]\n")
    quaternion = config.scene.bodies[0].pose.orientation
    assert math.sqrt(sum(c * c for c in quaternion)) == pytest.approx(1.0, abs=1e-15)
    assert quaternion[2] / quaternion[3] == pytest.approx(0.6004 / 0.8)


def test_a_configuration_survives_its_own_json():
    config = parse_config(BOX + "scale = [1, 2, 3]\n[safety]\nstale_after_ms = 30\n")
    assert validate_config(json.loads(config.model_dump_json(by_alias=True))) == config


def test_an_inertia_may_be_moments_or_a_tensor():
    moments = parse_config(BOX + INERT.format("[1, 2, 3]")).scene.bodies[0]
    assert moments.inertia_tensor.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    tensor = parse_config(BOX + INERT.format("[[2, 0.5, 0], [0.5, 2, 0], [0, 0, 3]]")).scene.bodies[0]
    assert tensor.inertia_tensor.tolist() == [[2, 0.5, 0], [0.5, 2, 0], [0, 0, 3]]
    assert parse_config(BOX).scene.bodies[0].inertia_tensor is None
    config = parse_config(BOX + INERT.format("[[2, 0.5, 0], [0.5, 2, 0], [0, 0, 3]]"))
    jsonschema.validate(config.model_dump(mode="json", by_alias=True), json_schema())


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.toml")), ids=lambda p: p.stem)
def test_the_projects_configurations_are_valid_and_satisfy_the_schema(path):
    load_config(path)
    jsonschema.validate(tomllib.loads(path.read_text()), json_schema())


def test_the_schema_is_valid_and_describes_every_key():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, section in {"": schema, **schema["$defs"]}.items():
        for key, entry in section["properties"].items():
            described = "description" in entry or "$ref" in entry
            assert described, f"{name}.{key} has no description"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"scene": {"body": [{"name": "a", "density": -1}]}}, schema)


leaf = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5)
tree = st.recursive(
    leaf,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(
        ["scene", "tool", "coupling", "workspace", "safety", "device", "budget", "rates", "log", "sockets"]
    ),
    st.sampled_from(
        ["body", "scale", "pose", "start", "size", "units", "stiffness", "card", "name", "host", "gravity", "mass"]
    ),
    st.sampled_from(["scale", "motion", "mass", "inertia", "centre_of_mass", "velocity", "restitution"]),
    tree,
)
def test_no_value_makes_it_fail_otherwise_than_with_a_config_error(section, key, own, value):
    data = tomllib.loads(BOX + INERT.format("[1, 1, 1]"))
    data["scene"]["body"][0][own] = value
    data.setdefault(section, {})[key] = value
    try:
        validate_config(data, "c.toml")
    except ConfigError as error:
        assert error.problems and all(": " in problem for problem in error.problems)
