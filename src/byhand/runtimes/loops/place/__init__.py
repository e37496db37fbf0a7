"""Where everything lies: lifetimes become offsets."""
