"""`python -m extcli`: the same as `extcli`."""

from __future__ import annotations

import sys

from extcli.main import main

sys.exit(main())
