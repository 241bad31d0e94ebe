"""The Python side of Ulpian: PyTorch and ONNX Runtime, heard through a pipe."""
