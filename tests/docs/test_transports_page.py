"""What the page on transports shows works when it is pasted, and says of loss what a server says."""

from __future__ import annotations

import subprocess
import sys

from docs_examples import blocks

from holdfast.transport.redis import RedisTransport


def test_the_page_on_transports_prints_what_it_says(tmp_path):
    (tmp_path / "page.py").write_text("\n".join(blocks("docs/transports.md", "python")))
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == blocks("docs/transports.md", "text")[1]


async def test_what_may_be_lost_is_shown_as_it_is_said(own_valkey):
    transport = RedisTransport(own_valkey.url)
    await transport.open()
    await transport._link.call("CONFIG", "SET", "appendonly", "yes")
    await transport.open()
    await transport.close()
    assert f"{transport.loss}\n" == blocks("docs/transports.md", "text")[0]
