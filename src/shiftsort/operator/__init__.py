"""The channel-wise sample permutation itself. Imports torch, and nothing else of this package."""
