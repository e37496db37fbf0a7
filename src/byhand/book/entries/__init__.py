"""Worked numbers, one file for each equation: `worked`, in the contract of `byhand.book.entries.contract`."""
