"""What a model computes, call by call: its graph and what the inputs of every call looked like."""
