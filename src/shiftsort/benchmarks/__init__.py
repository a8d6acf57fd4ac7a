"""Speed and memory, side by side with what people would use instead.

case.py           what is measured: a shape, a group size, a dtype, a device
candidate.py      what takes part: a name, its inputs, and a function of them
permutations.py   candidates: CSP, and other ways to move the same values
cub.py            candidate: CUB's block radix sort, where nvcc is found
attention.py      candidates: scaled_dot_product_attention on the same tokens
layers.py         candidates: whole layers, and projections
clock.py          time, on the CPU or on the GPU
memory.py         peak memory, bytes saved for backward, memory that stays mapped
measure.py        candidates x cases -> measurements, in two rounds
record.py         measurements -> ratios, and JSON
targets.py        ratios -> what is met and what is missed
table.py, plot.py to look at
trainees.py       whole models, and what they read
train_step.py     training steps a second and peak memory of these
plot_train_step.py to look at
"""
