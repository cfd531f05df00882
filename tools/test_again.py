"""Run the tests that failed last once more, one by one: what passes alone is shaky, what fails twice is broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
MOST = 5  # more than that is no matter of a busy machine


def main() -> int:
    failed = sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if not failed or len(failed) > MOST:
        print(f"{len(failed)} tests failed; at most {MOST} are run again.")
        return 1
    print("These failed among the others, and are run again alone:", *failed, sep="\n  ")
    code = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:xdist", *failed], check=False).returncode
    if code == 0:
        print(
            "SHAKY: they passed alone. Mend them: a test waits for a fact, never for seconds.",
            *failed,
            sep="\n  ",
        )
    return code


if __name__ == "__main__":
    sys.exit(main())
