"""The table [access] of a configuration: which addresses it opens, and what is refused before anything starts."""

import pytest
from command_line import called, one_sentence

from bridge import keys
from bridge.access import AccessError, load_access
from bridge.config import Access, ConfigError, parse_config

SCENE = '[[scene.body]]\nname = "a"\nprimitive = "box"\nsize = [1, 1, 1]\n'


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "keys"


def test_the_section_reads_its_files_beside_the_configuration(folder, monkeypatch):
    pair = keys.make_pair(folder, "server")
    keys.write_allowed(folder / "allowed", {})
    section = Access(keys="server.key_secret", allow="allowed")
    found = load_access(section, folder)
    assert found is not None and (found.keys, found.allow_path) == (pair, folder / "allowed")
    monkeypatch.setenv("HAPTICD_KEYS_DIR", str(folder))
    assert load_access(Access(), "/") == found
    assert load_access(None, folder) is None
    for broken, said in ((Access(keys="none"), "none does not exist"), (Access(allow="no"), "no does not exist")):
        with pytest.raises(AccessError, match=said):
            load_access(broken, folder)
    (folder / "server.key_secret").chmod(0o644)
    with pytest.raises(AccessError, match="can be read by others"):
        load_access(section, folder)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ('[sockets]\ntransport = "tcp"\nhost = "0.0.0.0"\n', "`hapticd keys` makes keys and a table \\[access\\]"),
        ('[sockets]\ntransport = "tcp"\nhost = "example.org"\n[access]\n', "must be an IP address of this machine"),
        ('[sockets]\ntransport = "tcp"\nhost = "fe80::1%eth0"\n[access]\n', "must be an IP address of this machine"),
        ("[access]\n", "access: guards sockets on tcp"),
        ('[access]\nkey = "x"\n', "did you mean `keys`"),
    ],
)
def test_addresses_and_keys_that_do_not_fit_are_refused(extra, said):
    with pytest.raises(ConfigError, match=said):
        parse_config(SCENE + extra)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "192.168.1.7", "localhost"])
def test_with_keys_any_address_will_do(host):
    config = parse_config(SCENE + f'[sockets]\ntransport = "tcp"\nhost = "{host}"\n[access]\n')
    assert config.access == Access() and config.sockets.host == host


def test_a_daemon_whose_keys_are_missing_is_refused_before_anything_is_compiled(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(SCENE + '[sockets]\ntransport = "tcp"\n[access]\nkeys = "no.key_secret"\n')
    done = called(tmp_path, "run", config)
    assert done.returncode == 3
    assert "[access]" in one_sentence(done) and "no.key_secret does not exist" in one_sentence(done)
