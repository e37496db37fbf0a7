"""What `byhand where` searches in: its answers and their tables, and the index that the package keeps of them."""
