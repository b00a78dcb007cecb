"""The table [link] of a configuration: what it becomes, which addresses it opens, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from command_line import called, one_sentence

from bridge import keys
from bridge.access import AccessError, load_link_keys
from bridge.assemble import assemble
from bridge.config import Access, ConfigError, Link, parse_config
from bridge.runtime import RuntimeDirectory
from haptics.link_codes import FOUR_CHANNEL, POSITION_FORCE_FOLLOWER, TANK
from haptics.tables import LINK_SETTINGS

SCENE = '[[scene.body]]\nname = "a"\nprimitive = "box"\nsize = [1, 1, 1]\n[tool]\nstart = [0, 0, 1]\n'


def made(extra: str):
    return assemble(parse_config(SCENE + extra), Path())


def test_without_the_table_there_is_no_link():
    assembly = made("")
    assert assembly.config.link is None
    assert assembly.settings["link"].tobytes() == np.zeros(1, LINK_SETTINGS).tobytes()


def test_every_key_arrives_in_the_settings():
    assembly = made(
        """[link]
law = "four-channel"
method = "tank"
stiffness = 150.0
damping = 0.5
force_gain = 0.25
impedance = 3.0
rotational_impedance = 0.005
scale = 2.0
mirror = "y"
align_speed = 0.02
distance_max = 0.05
tank = 0.2
tank_damping = 1.5
dead_band = 0.1
share = 0.5
stale_after_ms = 200.0
ramp_up_ms = 300.0
ramp_down_ms = 50.0
"""
    )
    end = assembly.settings["link"][0]
    assert (end["on"], end["law"], end["method"], end["dt"]) == (1, FOUR_CHANNEL, TANK, 1e-3)
    assert (end["stiffness"], end["damping"], end["force_gain"]) == (150.0, 0.5, 0.25)
    assert end["impedance"].tolist() == [3.0, 0.005] and end["mirror"].tolist() == [1.0, -1.0, 1.0]
    assert (end["scale"], end["align_speed"], end["distance_max"]) == (2.0, 0.02, 0.05)
    assert (end["tank"], end["tank_damping"], end["dead_band"], end["share"]) == (0.2, 1.5, 0.1, 0.5)
    assert (end["stale_after_ns"], end["ramp_up_ticks"], end["ramp_down_ticks"]) == (200_000_000, 300, 50)


def test_gains_that_are_left_out_are_those_of_the_coupling():
    assembly = made("[coupling]\nstiffness = 222.0\ndamping = 0.75\n[link]\n")
    end = assembly.settings["link"][0]
    assert (end["stiffness"], end["damping"]) == (222.0, 0.75)


def test_turning_is_capped_by_the_card():
    text = '[device]\ncard = "sigma7"\n[link]\nrotational_stiffness = 1e3\n'
    assembly = made(text)
    assert assembly.settings["link"]["rotational_stiffness"][0] == assembly.card.rotational_stiffness_max


def test_a_follower_says_so():
    assembly = made('[link]\nlaw = "position-force"\nrole = "follower"\n')
    assert assembly.settings["link"]["law"][0] == POSITION_FORCE_FOLLOWER


TCP = '[sockets]\ntransport = "tcp"\n'


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ('[link]\nlaw = "position-force"\n', "link.role: is needed with law"),
        ('[link]\nrole = "leader"\n', "link.role: belongs to law"),
        ('[link]\nlaw = "positon-position"\n', "link.law: must be one of .*did you mean 'position-position'"),
        ('[link]\nmethod = "hope"\n', "link.method: must be one of waves, tank, none"),
        ("[link]\nstifness = 5.0\n", "did you mean `stiffness`"),
        ("[link]\nscale = 0.0\n", "link.scale: must be at least 0.001"),
        ('[link]\nmirror = "w"\n', "link.mirror: must be one of"),
        ("[link]\nforce_gain = 0.5\n", "link.force_gain = 0.5 belongs to 'four-channel'"),
        ("[link]\nimpedance = 1e4\n", "link.impedance = 10000 must be at most"),
        ("[link]\nstale_after_ms = 1.0\n", "link.stale_after_ms = 1.0 must be from 2"),
        ("[link]\ndead_band = 0.9\n", "link.dead_band: must be at most 0.5"),
        ('[link]\nconnect = "example"\n', "link.connect: must be the other end's peer socket"),
        ('[link]\nconnect = "tcp://:5554"\n', "link.connect: must be the other end's peer socket"),
        ('[link]\nconnect = "tcp://127.0.0.1"\n', "link.connect: must be the other end's peer socket"),
        ('[link]\nconnect = "tcp://127.0.0.1:70000"\n', "link.connect: must be the other end's peer socket"),
        (f'[link]\nconnect = "tcp://127.0.0.1:{"9" * 5000}"\n', "link.connect: must be the other end's peer socket"),
        ('[link]\nconnect = "tcp://a b:5554"\nserver_key = "x"\n', "link.connect: must be the other end's peer socket"),
        ('[link]\nconnect = "ipc://"\n', "link.connect: must be the other end's peer socket"),
        ('[link]\nconnect = "tcp://192.168.1.7:5554"\n', "link.connect: needs `server_key`"),
        ('[link]\nconnect = "tcp://example.org:5554"\n', "link.connect: needs `server_key`"),
        ('[link]\nserver_key = "x"\n', "link.server_key: belongs to `connect"),
        ('[link]\nconnect = "ipc:///tmp/x"\nserver_key = "x"\n', "link.server_key: belongs to `connect"),
        ('[link]\nconnect = "tcp://127.0.0.1:5554"\nkeys = "x"\n', "link.keys: needs `server_key` beside it"),
        ('[sockets]\npeer = "tcp://127.0.0.1:6000"\n', r"sockets.peer: belongs to a `\[link\]` without `connect`"),
        (
            '[sockets]\npeer = "tcp://127.0.0.1:6000"\n[link]\nconnect = "ipc:///tmp/x"\n',
            r"sockets.peer: belongs to a `\[link\]` without `connect`",
        ),
        ('[sockets]\npeer = "ipc:///tmp/x"\n[link]\n', "sockets.peer: must be tcp://HOST:PORT"),
        ('[sockets]\npeer = "tcp://127.0.0.1:80"\n[link]\n', "sockets.peer: must be tcp://HOST:PORT"),
        ('[sockets]\npeer = "tcp://example.org:6000"\n[link]\n', "sockets.peer: must be tcp://HOST:PORT"),
        ('[sockets]\npeer = "tcp://0.0.0.0:6000"\n[link]\n', "sockets.peer: must be on a loopback address"),
    ],
)
def test_what_does_not_fit_is_one_sentence(extra, said):
    with pytest.raises(ConfigError, match=said) as caught:
        made(extra)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:5554", "tcp://[::1]:5554", "tcp://localhost:1", "ipc:///tmp/x"])
def test_ends_on_this_machine_need_no_keys(address):
    assert parse_config(SCENE + f'[link]\nconnect = "{address}"\n').link == Link(connect=address)


def test_with_a_key_the_other_end_may_be_anywhere():
    config = parse_config(SCENE + '[link]\nconnect = "tcp://robot.example.org:5554"\nserver_key = "robot.key"\n')
    assert config.link is not None and config.link.server_key == "robot.key"


def test_where_the_peer_socket_is(tmp_path):
    runtime = RuntimeDirectory("one", tmp_path)
    assert "peer" not in runtime.endpoints()
    assert runtime.endpoints(None, link=Link())["peer"] == runtime.ipc("peer")
    assert "peer" not in runtime.endpoints(None, link=Link(connect="ipc:///tmp/x"))
    config = parse_config(SCENE + TCP + "port = 6000\n[link]\n")
    assert runtime.endpoints(config.sockets, link=config.link)["peer"] == "tcp://127.0.0.1:6004"
    config = parse_config(SCENE + '[sockets]\npeer = "tcp://127.0.0.1:7000"\n[link]\n')
    found = runtime.endpoints(config.sockets.model_dump(), link=config.link.model_dump())
    assert found["peer"] == "tcp://127.0.0.1:7000" and found["device"] == runtime.ipc("device")


def test_clients_find_the_peer_socket(tmp_path):
    runtime = RuntimeDirectory("one", tmp_path).create()
    with runtime.lock():
        for link in (None, Link()):
            wanted = runtime.endpoints(None, link=link)
            runtime.write_endpoints(wanted)
            assert runtime.read_endpoints() == wanted


def test_keys_of_the_connecting_end(tmp_path, monkeypatch):
    own, other = keys.make_pair(tmp_path, "server"), keys.new_pair()
    (tmp_path / "other.key").write_text(f'public-key = "{other.public.decode()}"\n')
    link = Link(connect="tcp://10.0.0.1:5554", server_key="other.key", keys="server.key_secret")
    found = load_link_keys(link, None, tmp_path)
    assert found is not None and (found.server, found.own) == (other.public, own)
    text = Link(connect="tcp://10.0.0.1:5554", server_key=other.public.decode())
    assert load_link_keys(text, Access(keys="server.key_secret"), tmp_path) == found
    monkeypatch.setenv("HAPTICD_KEYS_DIR", str(tmp_path))
    assert load_link_keys(text.model_dump(), Access().model_dump(), "/") == found
    assert load_link_keys(None, None, tmp_path) is None
    assert load_link_keys(Link(connect="ipc:///tmp/x"), Access(), tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"keys": None}, "`keys` is missing"),
        ({"keys": "no.key_secret"}, "no.key_secret does not exist"),
        ({"server_key": "no.key"}, "no.key does not exist"),
        ({"server_key": "broken.key"}, "broken.key holds no public key"),
    ],
)
def test_keys_that_cannot_be_used_are_one_sentence(tmp_path, changes, said):
    keys.make_pair(tmp_path, "server")
    (tmp_path / "broken.key").write_text("nothing\n")
    fields = {"connect": "tcp://10.0.0.1:5554", "server_key": "server.key", "keys": "server.key_secret", **changes}
    with pytest.raises(AccessError, match=said) as caught:
        load_link_keys(Link(**{k: v for k, v in fields.items() if v is not None}), None, tmp_path)
    assert str(caught.value).startswith("[link]: ")


def test_a_daemon_whose_link_has_no_keys_is_refused_before_anything_is_compiled(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(
        SCENE + '[link]\nconnect = "tcp://10.0.0.1:5554"\nserver_key = "no.key"\nkeys = "no.key_secret"\n'
    )
    done = called(tmp_path, "run", config)
    assert done.returncode == 3
    assert "[link]" in one_sentence(done) and "no.key does not exist" in one_sentence(done)
