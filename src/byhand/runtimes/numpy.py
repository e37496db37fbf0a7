"""The reference runtime: NumPy arrays, eager, one equation at a time.

Equations find NumPy through the arrays themselves; what is here is how to keep the allocator from handing pages back
after every step.
"""

import ctypes
import sys


def keep_pages() -> bool:
    """Ask glibc to keep freed pages for the next step instead of returning them; True where it could be asked.

    Each step frees and allocates the same few megabytes; without this the kernel zeroes them anew every time.
    """
    if not sys.platform.startswith("linux"):
        return False
    m_trim_threshold, m_mmap_threshold = -1, -3  # from malloc.h
    try:
        libc = ctypes.CDLL(None)
        return all(libc.mallopt(option, 1 << 30) for option in (m_mmap_threshold, m_trim_threshold))
    except (OSError, AttributeError):  # no glibc, as on Alpine
        return False
