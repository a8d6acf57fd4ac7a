"""Speed and memory, side by side with what people would use instead."""
