"""`python -m holdfast` is the command line."""

import sys

from holdfast.runtime.cli import main

sys.exit(main())
