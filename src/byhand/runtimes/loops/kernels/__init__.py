"""The kernels: plain loops, one file for each equation that they serve, with the rule that puts them into a plan.

Every array is a place in one flat float32 `memory`, row-major; token ids lie in the same arena, seen as int32
`words`. A kernel's arguments are offsets and lengths, so that a plan is a table of integers.
"""
