//! The judge: from values to a verdict. It receives values and asks for others; it calls no executor.
