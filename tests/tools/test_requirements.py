"""The lock names every package with its hashes, and no address or path of whoever made it."""

from __future__ import annotations

import re
import tomllib

from tools.sources import ROOT

LOCK = (ROOT / "requirements" / "dev.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked() -> dict[str, str]:
    """Each package with all that belongs to it."""
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", LOCK, flags=re.MULTILINE).strip())
    return {entry.split("==")[0].split("[")[0]: entry for entry in entries}


def test_every_package_has_one_version_and_hashes():
    for entry in locked().values():
        assert re.match(r"[a-z0-9-]+(\[[a-z,]+\])?==[\w.]+( ; [^\\]+)? \\\n", entry), entry.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry)


def test_no_address_and_no_path():
    text = "\n".join(line for line in LOCK.splitlines() if "--hash=" not in line)
    assert not re.search(r"://|@|/|\.(com|org|net|io)\b|--(index|extra-index|find-links|trusted)", text)


def test_everything_declared_is_locked():
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    wanted += [each for extra in extras.values() for each in extra if not each.startswith("holdfast")]
    names = {re.split(r"[\[<>=~!; ]", each)[0].lower() for each in wanted}
    assert names <= locked().keys()


def test_what_the_build_needs_is_locked_too():
    assert {"hatchling", "editables"} <= locked().keys()
