"""The parts of pages that code writes: the steps of lessons."""
