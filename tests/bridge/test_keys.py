"""Key files: what is made can be read, by ZeroMQ's own reader too, and what cannot be trusted is refused."""

import json
import os
import stat

import pytest
import zmq.auth
from command_line import called, one_sentence

from bridge import keys
from bridge.keys import KeysError


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "keys"


def test_a_pair_comes_back_and_its_secret_is_its_owners_alone(folder):
    pair = keys.make_pair(folder, "alice")
    secret, public = folder / "alice.key_secret", folder / "alice.key"
    assert keys.read_pair(secret) == pair
    assert keys.read_public(public) == keys.read_public(pair.public.decode()) == keys.read_public(secret) == pair.public
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert pair.secret not in public.read_bytes() and pair.secret.decode() not in repr(pair)
    assert zmq.auth.load_certificate(secret) == (pair.public, pair.secret)
    assert zmq.auth.load_certificate(public) == (pair.public, None)


def test_a_certificate_of_zeromq_is_read(tmp_path):
    public, secret = zmq.auth.create_certificates(tmp_path, "bob")
    os.chmod(secret, 0o600)
    assert keys.read_pair(secret).public == keys.read_public(public)


def test_nothing_is_written_over(folder):
    keys.make_pair(folder, "alice")
    before = (folder / "alice.key_secret").read_bytes()
    with pytest.raises(KeysError, match="exists already"):
        keys.make_pair(folder, "alice")
    assert (folder / "alice.key_secret").read_bytes() == before


def test_a_pair_is_made_whole_or_not_at_all(folder, monkeypatch):
    """A secret key without its public one would be in the way of the next attempt."""
    folder.mkdir()
    public = folder / "bob.key"
    public.write_text("something of bob's")
    with pytest.raises(KeysError, match=r"bob\.key exists already"):
        keys.make_pair(folder, "bob")
    assert os.listdir(folder) == ["bob.key"]
    public.unlink()

    whole = keys._write

    def secret_only(path, text, mode):
        if path == public:
            raise KeysError("no room")
        whole(path, text, mode)

    monkeypatch.setattr(keys, "_write", secret_only)
    with pytest.raises(KeysError, match="no room"):
        keys.make_pair(folder, "bob")
    assert os.listdir(folder) == []
    monkeypatch.undo()
    keys.make_pair(folder, "bob")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o602])
def test_a_secret_that_others_can_read_is_refused(folder, mode):
    keys.make_pair(folder, "alice")
    (folder / "alice.key_secret").chmod(mode)
    with pytest.raises(KeysError, match="by others; `chmod 600"):
        keys.read_pair(folder / "alice.key_secret")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_list_that_others_can_write_is_refused(folder, mode):
    keys.write_allowed(folder / "allowed", {})
    (folder / "allowed").chmod(mode)
    with pytest.raises(KeysError, match="written by others"):
        keys.read_allowed(folder / "allowed")


def test_what_is_no_pair_is_told(folder):
    one, other = keys.make_pair(folder, "one"), keys.make_pair(folder, "other")
    with pytest.raises(KeysError, match="does not exist"):
        keys.read_pair(folder / "none.key_secret")
    with pytest.raises(KeysError, match="not a file"):
        keys.read_public(folder)
    mixed = folder / "mixed.key_secret"
    for text, said in (
        ("", "no public key"),
        (f'public-key = "{one.public.decode()}"\n', "public key only"),
        (f'public-key = "{one.public.decode()}"\nsecret-key = "{other.secret.decode()}"\n', "do not belong together"),
        (f'public-key = "{one.public.decode()}"\n' * 2, "two keys of one kind"),
        (f'public-key = "{one.public.decode()[:-1]}"\n', "not a CURVE key"),
        (f'public-key = "{"#" * 40}"\n', "not a CURVE key"),
        ("public-key = \u00fc\n", "other characters"),
    ):
        mixed.unlink(missing_ok=True)
        mixed.write_text(text, encoding="utf-8")
        mixed.chmod(0o600)
        with pytest.raises(KeysError, match=said):
            keys.read_pair(mixed)
    mixed.write_bytes(b"\n" * (keys.LARGEST_FILE + 1))
    with pytest.raises(KeysError, match="much shorter"):
        keys.read_pair(mixed)


def test_a_list_is_written_read_and_changed(folder):
    one, other = keys.new_pair().public, keys.new_pair().public
    path = folder / "allowed"
    keys.allow(path, "one", one)
    keys.allow(path, "other", other)
    keys.allow(path, "one", one)
    assert keys.read_allowed(path) == {"one": one, "other": other}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(KeysError, match="another key for 'one'"):
        keys.allow(path, "one", keys.new_pair().public)
    with pytest.raises(KeysError, match="already, as 'one'"):
        keys.allow(path, "twin", one)
    assert keys.revoke(path, "one") == one
    with pytest.raises(KeysError, match="no client 'one'; there are: other"):
        keys.revoke(path, "one")
    assert keys.read_allowed(path) == {"other": other}
    assert sorted(os.listdir(folder)) == ["allowed"]


def test_lines_that_are_none_are_told_with_their_number():
    key = keys.new_pair().public.decode()
    assert keys.parse_allowed(f"# a remark\n\n  a  {key} \n", "list") == {"a": key.encode()}
    for text, said in (
        ("a\n", "line 1: a line is a name and a key"),
        (f"\na {key} b\n", "line 2"),
        (f"-a {key}\n", "is no name"),
        (f"a {key}\na {key}\n", "line 2: 'a' is no name, or stands twice"),
        (f"a {key[:-1]}\n", "line 1: the second word is not a CURVE key"),
        ("".join(f"a{i} {key}\n" for i in range(keys.MAX_ALLOWED + 1)), "more than 4096 clients"),
    ):
        with pytest.raises(KeysError, match=said):
            keys.parse_allowed(text, "list")


def test_fingerprints_tell_keys_apart():
    found = {keys.fingerprint(keys.new_pair().public) for _ in range(20)}
    assert len(found) == 20 and all(len(digits) == 39 for digits in found)


@pytest.mark.parametrize("name", ["", "a/b", "../a", "-a", "a" * 49, "a b"])
def test_names_that_could_leave_the_folder_are_refused(folder, name):
    with pytest.raises(KeysError, match="no name for a key"):
        keys.make_pair(folder, name)


def test_the_name_of_a_daemons_own_programs_is_no_clients(folder):
    with pytest.raises(KeysError, match="'local' is how a daemon calls programs of its own user"):
        keys.make_pair(folder, "local")
    with pytest.raises(KeysError, match="'local' is how"):
        keys.allow(folder / "allowed", "local", keys.new_pair().public)
    assert not folder.exists()


def test_what_is_no_key_is_named_and_the_others_are_listed(tmp_path):
    folder = tmp_path / "k"
    pair = keys.make_pair(folder, "alice")
    (folder / "junk.key").write_text("nothing")
    done = called(tmp_path, "keys", "list", "--dir", folder)
    assert done.returncode == 0, done.stderr
    assert keys.fingerprint(pair.public) in done.stdout
    assert f"not read: {folder / 'junk.key'} holds no public key" in done.stdout
    told = json.loads(called(tmp_path, "keys", "list", "--dir", folder, "--json").stdout)
    assert list(told["keys"]) == ["alice"] and list(told["unread"]) == ["junk.key"]
    done = called(tmp_path, "keys", "list", "--dir", folder / "junk.key")
    assert done.returncode == 4 and "junk.key is not a folder" in one_sentence(done)
    assert "XDG_CONFIG_HOME" in called(tmp_path, "keys", "list", "--help").stdout


def test_the_commands_make_allow_list_and_revoke(tmp_path):
    folder = tmp_path / "k"

    def run(*words):
        done = called(tmp_path, "keys", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "fingerprint" in run("server", "--dir", folder)
    digits = run("client", "alice", "--dir", tmp_path / "other").split("fingerprint")[1].split()[0]
    public = tmp_path / "other" / "alice.key"
    assert run("show", public).strip() == digits
    assert digits in run("allow", public, "--dir", folder)
    key = public.read_text().split('"')[1]
    assert keys.read_allowed(folder / "allowed") == {"alice": key.encode()}
    listed = run("list", "--dir", folder)
    assert "server" in listed and digits in listed
    assert "until they end" in run("revoke", "alice", "--dir", folder)
    assert "let in: none" in run("list", "--dir", folder)
    again = called(tmp_path, "keys", "server", "--dir", folder)
    assert again.returncode == 4 and "exists already" in one_sentence(again)
    nameless = called(tmp_path, "keys", "allow", "--dir", folder, "--", key)
    assert nameless.returncode == 4 and "--as NAME" in one_sentence(nameless)
    for command in ("server", "client", "allow", "revoke", "list", "show"):
        text = called(tmp_path, "keys", command, "--help").stdout
        assert f"hapticd keys {command}" in text and "Examples" in text
