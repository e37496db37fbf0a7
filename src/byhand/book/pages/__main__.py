"""`python -m byhand.book.pages`: write every stale page, or with --check name them."""

import sys

from byhand.book.pages.filling import main
from byhand.errors import ByhandError

try:
    raise SystemExit(main(sys.argv[1:]))
except ByhandError as error:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2) from None
