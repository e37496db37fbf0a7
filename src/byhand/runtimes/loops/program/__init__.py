"""A plan's program, data only: kernel calls on buffers, and the builder to which rules append them."""
