"""`python -m byhand.book.pages`: write every stale page, or with --check name them."""

import sys

from byhand.book.pages.filling import main

raise SystemExit(main(sys.argv[1:]))
