//! Positions in row-major tensors.

/// The position in an operand of shape `shape` that broadcasting to `out_shape` maps output position `index` to.
pub(super) fn broadcast(mut index: usize, out_shape: &[usize], shape: &[usize]) -> usize {
    let mut position = 0;
    let mut stride = 1;
    for (i, &size) in out_shape.iter().rev().enumerate() {
        let coordinate = index % size;
        index /= size;
        let Some(own) = shape.len().checked_sub(i + 1).map(|axis| shape[axis]) else {
            break;
        };
        if own != 1 {
            position += coordinate * stride;
        }
        stride *= own;
    }
    position
}

/// A dimension, where a negative one counts from the end.
pub(super) fn axis(dim: i64, dimensions: usize) -> usize {
    if dim < 0 { (dim + dimensions.max(1) as i64) as usize } else { dim as usize }
}

/// (planes, height, width) of a tensor (…, H, W).
pub(super) fn planes(shape: &[usize]) -> (usize, usize, usize) {
    let n = shape.len();
    (shape[..n - 2].iter().product(), shape[n - 2], shape[n - 1])
}
