"""Tests of the engine: it records, walks back, and checks derivatives, whatever the equations are."""
