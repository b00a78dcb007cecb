"""The command line without processes: help, exit codes, and one-sentence errors."""

import functools
import importlib
import json
import tomllib

import pytest
from command_line import ROOT, called, one_sentence

COMMANDS = [
    ["run"],
    ["link"],
    ["hand", "sim"],
    ["hand", "recorded"],
    ["hand", "scripted"],
    ["hand", "mouse"],
    ["adapter"],
    ["adapter-test"],
    ["follow"],
    ["view"],
    ["play"],
    ["reexec"],
    ["diff"],
    ["plot"],
    ["snapshot"],
    ["inspect"],
    ["ccd"],
    ["certify"],
    ["keys", "server"],
    ["keys", "client"],
    ["keys", "allow"],
    ["keys", "revoke"],
    ["keys", "list"],
    ["keys", "show"],
    ["schema"],
    ["doctor"],
    ["status"],
    ["stop"],
    ["reset"],
    ["compile"],
    ["demo"],
]


@pytest.fixture
def hapticd(tmp_path_factory):
    """Carry out ``hapticd`` with arguments, in this process."""
    return functools.partial(called, tmp_path_factory.mktemp("h", numbered=True))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_an_example(hapticd, command):
    done = hapticd(*command, "--help")
    assert done.returncode == 0, done.stderr
    assert "hapticd " + " ".join(command) in done.stdout
    assert "Examples" in done.stdout


def test_the_help_lists_every_command(hapticd):
    text = hapticd("--help").stdout + hapticd("hand", "--help").stdout
    text += hapticd("keys", "--help").stdout
    assert [c for c in COMMANDS if c[-1] not in text] == []


def test_every_error_with_an_exit_code_exists():
    """They are named by text, so that the command line need not import them, and by the module that defines them."""
    from bridge.cli.errors import CODES

    for name in CODES:
        module, _, error = name.rpartition(".")
        kind = getattr(importlib.import_module(module), error)
        assert issubclass(kind, Exception)
        assert kind.__module__ == module, "an error is looked up by where it is defined"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "missing.toml"], 3, "missing.toml"),
        (["run", "missing.toml", "--name", "../x"], 2, "daemon name '../x' is not usable"),
        (["status"], 8, "no daemon"),
        (["status", "--name", "left"], 8, "left"),
        (["stop"], 8, "no daemon"),
        (["stop", "--forces"], 8, "no daemon"),
        (["reset"], 8, "no daemon"),
        (["hand", "sim"], 8, "no daemon"),
        (["hand", "recorded", "motion.csv"], 8, "no daemon"),
        (["hand", "mouse"], 8, "no daemon"),
        (["view"], 8, "no daemon"),
        (["view", "--log", "missing.mcap"], 1, "display"),
        (["play", "missing.mcap"], 4, "missing.mcap"),
        (["reexec", "missing.mcap"], 4, "missing.mcap"),
        (["diff", "missing.mcap", "other.mcap"], 4, "missing.mcap"),
        (["plot", "missing.mcap"], 4, "missing.mcap"),
        (["snapshot", "missing.mcap"], 4, "missing.mcap"),
        (["inspect", "missing.obj"], 4, "missing.obj"),
        (["ccd", "missing.obj", "sphere:1", "--from", "0,0,3", "--to", "0,0,0"], 4, "missing.obj"),
        (["ccd", "box:1,1", "sphere:1", "--from", "0,0,3", "--to", "0,0,0"], 4, "3 positive size"),
        (["ccd", "box:1,1,1", "sphere:r", "--from", "0,0,3", "--to", "0,0,0"], 4, "sphere:r"),
        (["ccd", "box:1,1,1", "sphere:1", "--from", "0,0", "--to", "0,0,0"], 2, "--from '0,0' is not a pose"),
        (["ccd", "box:1,1,1", "sphere:1", "--from", "0,0,3", "--to", "0,0,0,0,0,0,2"], 2, "norm of the quaternion"),
        (["ccd", "box:1,1,1", "sphere:1", "--from", "0,0,3", "--to", "0,0,0", "--scale-a", "0"], 4, "above 0"),
        (["status", "--name", "../x"], 8, "../x"),
        (["status", "--name", "tcp://nonsense"], 4, "is no address of a daemon's socket: tcp://HOST"),
        (["status", "--name", "ipc:///" + "x" * 200], 4, "is no address of a daemon's socket"),
        (["hand", "sim", "--name", "tcp://127.0.0.1:0"], 4, "is no address of a daemon's socket"),
        (["hand", "sim", "--name", "fly://x"], 4, "is no address of a daemon's socket"),
        (["inspect", "nofile"], 4, "nofile: does not exist"),
        (["inspect", "/tmp"], 4, "/tmp: is not a file"),
        (["inspect", ""], 4, "the name of the file to inspect is empty"),
        (["inspect", "x.obj", "--scale", "0"], 2, "--scale: a scale must be a number above 0, not 0"),
        (["inspect", "x.obj", "--scale", "-1"], 2, "--scale: a scale must be a number above 0, not -1"),
        (["inspect", "x.obj", "--scale", "nan"], 2, "--scale: a scale must be a number above 0, not nan"),
        (["inspect", "x.obj", "--scale", "inf"], 2, "--scale: a scale must be a number above 0, not inf"),
        (["inspect", "x.obj", "--density", "-1"], 2, "--density: a density must be a number above 0, not -1"),
        (["inspect", "x.obj", "--density", "nan"], 2, "--density: a density must be a number above 0, not nan"),
        (["link", "left", "right"], 8, "left"),
        (["link", "../x", "right"], 8, "../x"),
        (["link", "ipc:///tmp/a", "ipc:///tmp/a"], 4, "both ends are ipc:///tmp/a"),
        (["link", "fly://x", "ipc:///tmp/a"], 4, "is no address of a peer socket"),
        (["link", "a", "b", "--loss", "101"], 2, "--loss 101 must be from 0 to 100 percent"),
        (["link", "a", "b", "--delay", "-1"], 2, "--delay -1 must be from 0"),
        (["link", "a", "b", "--jitter", "nan"], 2, "--jitter nan must be from 0"),
        (["link", "a", "b", "--burst", "0.5"], 2, "--burst 0.5 must be at least 1"),
        (["link", "a", "b", "--loss", "90", "--burst", "2"], 2, "--burst 2 is too short for a loss of 90 percent"),
        (["link", "tcp://127.0.0.1:1", "ipc:///tmp/a", "--server-key-a", "x"], 9, "key file is missing"),
        (["snapshot", "x.mcap", "--size", "big"], 2, "--size"),
        (["link", "ipc:///tmp/a", "left", "--keys", "nofile"], 2, "--keys is for an end that is a tcp:// address"),
        (["link", "ipc:///tmp/a", "left", "--server-key-b", "x"], 2, "left is no tcp:// address"),
        (["certify", "touch", "--hand", "light"], 2, "--yes are for --daemon"),
        (["certify", "touch", "--to", "900"], 2, "--yes are for --daemon"),
        (["certify", "touch", "--show", "--picture", "x.png"], 2, "--show finds no rows"),
        (["certify", "touch", "--write", "--check"], 2, "give one of the two"),
        (["certify", "touch", "--daemon", "d", "--yes", "--rate", "500"], 2, "--rate and --delay are the running"),
        (["hand", "sim", "--point", "1,2"], 2, "--point"),
        (["hand", "sim", "--point", "nan,0,0"], 2, "--point 'nan,0,0' is not finite"),
        (["hand", "sim", "--normal", "0,0,inf"], 2, "--normal '0,0,inf' is not finite"),
        (["hand", "sim", "--normal", "0,0,0"], 2, "--normal '0,0,0' must have a length above 0"),
        (["hand", "sim", "--depth", "nan"], 2, "--depth: a depth must be a number above 0, not nan"),
        (["hand", "recorded", "motion.csv", "--depth", "-1"], 2, "--depth: a depth must be a number above 0, not -1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_gets_one_sentence_and_its_exit_code(hapticd, arguments, code, said):
    done = hapticd(*arguments)
    assert done.returncode == code, done.stderr
    assert said in one_sentence(done)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["certify", "touch", "--picture", "nodir/x.png"], "--picture nodir/x.png: nodir does not exist"),
        (["certify", "touch", "--picture", "."], "--picture .: is a folder; name a file"),
        (["ccd", "sphere:1", "sphere:1", "--from", "3,0,0", "--to", "0,0,0", "--png", "."], "--png .: is a folder"),
        (
            ["ccd", "sphere:1", "sphere:1", "--from", "3,0,0", "--to", "0,0,0", "--png", "/dev/null/x/y.png"],
            "--png /dev/null/x/y.png: /dev/null is not a folder",
        ),
    ],
)
def test_where_a_picture_cannot_go_is_told_before_the_work(hapticd, monkeypatch, option, said):
    def work(*_, **__):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("bridge.cli.certify._find", work)
    monkeypatch.setattr("bridge.ccd.first_time", work)
    done = hapticd(*option)
    assert done.returncode == 4, done.stderr
    assert said in one_sentence(done)


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["fly"], ["run", "x.toml", "--wings"], ["hand", "sim", "--path", "fly"], ["follow", "--mirror", "q"]],
)
def test_a_command_line_that_is_not_understood_is_a_usage_error(hapticd, arguments):
    done = hapticd(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and done.stderr
    assert "Value error" not in done.stderr


def test_an_unknown_key_is_named_with_the_nearest_known_one(hapticd, tmp_path):
    text = (ROOT / "configs" / "demo.toml").read_text().replace("tip_radius", "tip_radios")
    config = tmp_path / "typo.toml"
    config.write_text(text)
    done = hapticd("run", config)
    assert done.returncode == 3
    assert all(word in done.stderr for word in ("typo.toml", "tip_radios", "tip_radius"))
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_log_is_refused(hapticd, tmp_path):
    path = tmp_path / "garbage.mcap"
    path.write_bytes(bytes(range(256)) * 8)
    for arguments in (["reexec", path], ["plot", path], ["snapshot", path], ["play", path]):
        done = hapticd(*arguments)
        assert done.returncode == 4
        assert "garbage.mcap" in one_sentence(done)


def test_what_a_terminal_would_obey_is_shown_instead(capsys):
    from bridge.cli.printing import print_map

    print_map({"owner": "\x1b[31mred\nstate  9", "Jürgen": {"\x07": ["\r"]}, "list": [{"\x1b": "\x1b"}]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("\\x1b[31mred\\nstate  9") and "Jürgen" in lines[1]
    assert len(lines) == 5 and all(line.isprintable() for line in lines)


def test_the_schema_accepts_the_demo_configuration_and_refuses_a_typo(hapticd):
    import jsonschema

    schema = json.loads(hapticd("schema").stdout)
    good = tomllib.loads((ROOT / "configs" / "demo.toml").read_text())
    jsonschema.validate(good, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, "tool": {"tip_radios": 0.01}}, schema)


def test_inspect_tells_programs_what_it_tells_people(hapticd):
    report = json.loads(hapticd("inspect", "pybullet_data:duck.obj", "--scale", "0.09", "--json").stdout)
    assert report["meshes"][0]["triangles"] == 4212
    assert "4212 triangles" in hapticd("inspect", "pybullet_data:duck.obj").stdout
