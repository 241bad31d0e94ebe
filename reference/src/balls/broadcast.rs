//! PyTorch's broadcasting: which element of an operand belongs to an element of the result.

/// From row-major positions of the result to those of one operand.
pub(super) enum Broadcast {
    /// The operand has the result's shape.
    Same,
    /// The operand has one element.
    One,
    /// Per dimension of the result, innermost first: its size and the operand's step.
    Steps(Vec<(usize, usize)>),
}

impl Broadcast {
    pub(super) fn new(result: &[usize], operand: &[usize]) -> Broadcast {
        if result == operand {
            return Broadcast::Same;
        }
        if operand.iter().all(|&s| s == 1) {
            return Broadcast::One;
        }
        let mut stride = 1;
        let steps = result
            .iter()
            .rev()
            .enumerate()
            .map(|(d, &size)| match operand.len().checked_sub(d + 1).map(|d| operand[d]) {
                Some(s) if s > 1 => {
                    let step = stride;
                    stride *= s;
                    (size, step)
                }
                _ => (size, 0),
            })
            .collect();
        Broadcast::Steps(steps)
    }

    #[inline(always)]
    pub(super) fn index(&self, i: usize) -> usize {
        match self {
            Broadcast::Same => i,
            Broadcast::One => 0,
            Broadcast::Steps(steps) => {
                let mut rest = i;
                let mut at = 0;
                for &(size, step) in steps {
                    at += rest % size * step;
                    rest /= size;
                }
                at
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_shapes() {
        let b = Broadcast::new(&[2, 3, 4], &[3, 1]);
        let at: Vec<usize> = (0..24).map(|i| b.index(i)).collect();
        assert_eq!(at, [[0; 4], [1; 4], [2; 4], [0; 4], [1; 4], [2; 4]].concat());
        assert_eq!(Broadcast::new(&[2, 3], &[1, 1]).index(5), 0);
        assert_eq!(Broadcast::new(&[2, 3], &[2, 1]).index(5), 1);
    }
}
