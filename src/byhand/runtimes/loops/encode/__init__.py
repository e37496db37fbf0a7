"""Program to tables of integers, and the compiled loop that runs them."""
