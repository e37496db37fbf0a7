"""From a graph to kernel calls on buffers, and to tables of integers."""
