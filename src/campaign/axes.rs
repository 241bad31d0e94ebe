//! One call with its operands, and the axes along which it can be cut: operands that share an axis are cut together, so that
//! what is left is a valid call.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_spec::case::CaseBuilder;
use ulpian_spec::ops::TensorOrScalar;
use ulpian_spec::{Case, HostTensor, Op, Storage};

/// An operand and one of its axes.
pub(super) type Axis = (&'static str, usize);

/// A call of an op on tensors.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The node's id.
    pub id: String,
    /// The op.
    pub op: Op<Arc<HostTensor>>,
}

impl Call {
    /// The call as a case of its own; `None` where PyTorch's rules reject it.
    pub(super) fn case(&self, name: &str, source: &str) -> Option<Case> {
        let mut builder = CaseBuilder::new(name);
        builder.source(source);
        let op = self.op.clone().try_map(|argument, t| builder.tensor(argument, t)).ok()?;
        builder.node(&self.id, op).ok()?;
        builder.finish().ok()
    }

    /// Elements of all operands.
    pub(super) fn elements(&self) -> usize {
        self.op.operands().iter().map(|(_, t)| t.len()).sum()
    }

    fn shapes(&self) -> BTreeMap<&'static str, Vec<usize>> {
        self.op.operands().into_iter().map(|(name, t)| (name, t.shape().to_vec())).collect()
    }

    /// Each group of axes that are one dimension of the computation, longer than 1, with its size.
    pub(super) fn axes(&self) -> Vec<(usize, Vec<Axis>)> {
        let shapes = self.shapes();
        let dims = |name: &str| shapes.get(name).map_or(0, Vec::len);
        let x = dims("input");
        let each = |from: usize, to: usize| (from..to).map(|i| vec![("input", i)]);
        let mut groups: Vec<Vec<Axis>> = Vec::new();
        match &self.op {
            Op::Linear(_) => {
                groups.extend(each(0, x.saturating_sub(1)));
                let w = dims("weight");
                groups.push(vec![("input", x.saturating_sub(1)), ("weight", w.saturating_sub(1))]);
                if w > 1 {
                    groups.push(vec![("weight", 0), ("bias", 0)]);
                }
            }
            Op::Matmul(_) => {
                let y = dims("other");
                groups.push(vec![("input", x.saturating_sub(1)), ("other", y.saturating_sub(2))]);
                if x > 1 {
                    groups.push(vec![("input", x - 2)]);
                }
                if y > 1 {
                    groups.push(vec![("other", y - 1)]);
                }
                for back in 3..=x.max(y) {
                    groups.push(from_the_right(&[("input", x), ("other", y)], back));
                }
            }
            Op::Conv2d(conv) => {
                let planes = x.saturating_sub(3);
                groups.extend(each(0, planes));
                if conv.groups == 1 {
                    groups.push(vec![("input", planes), ("weight", 1)]);
                    groups.push(vec![("weight", 0), ("bias", 0)]);
                } else {
                    // Depthwise: a channel is its own group.
                    groups.push(vec![("input", planes), ("weight", 0), ("bias", 0)]);
                }
                groups.extend(each(planes + 1, x));
                groups.extend([vec![("weight", 2)], vec![("weight", 3)]]);
            }
            Op::BatchNorm(_) => {
                groups.extend(each(0, 1));
                let of_channels = ["running_mean", "running_var", "weight", "bias"];
                groups.push([("input", 1)].into_iter().chain(of_channels.map(|name| (name, 0))).collect());
                groups.extend(each(2, x));
            }
            Op::LayerNorm(norm) => {
                let from = x.saturating_sub(norm.normalized_shape.len());
                groups.extend(each(0, from));
                groups
                    .extend((from..x).map(|i| vec![("input", i), ("weight", i - from), ("bias", i - from)]));
            }
            Op::Mul(_) | Op::Add(_) | Op::Div(_) => {
                let y = dims("other");
                groups.extend((1..=x.max(y)).map(|back| from_the_right(&[("input", x), ("other", y)], back)));
            }
            Op::Dropout(_) => groups.extend((0..x).map(|i| vec![("input", i), ("mask", i)])),
            Op::Flatten(_)
            | Op::Softmax(_)
            | Op::AdaptiveAvgPool2d(_)
            | Op::MaxPool2d(_)
            | Op::Relu(_)
            | Op::Gelu(_) => groups.extend(each(0, x)),
        }
        let size = |&(name, axis): &Axis| shapes.get(name).and_then(|s| s.get(axis)).copied();
        let mut cuttable = Vec::new();
        for group in groups {
            let mut axes: Vec<Axis> = group.into_iter().filter(|a| size(a).is_some_and(|n| n > 1)).collect();
            let sizes: Vec<usize> = axes.iter().filter_map(size).collect();
            axes.sort_unstable();
            if let Some(&n) = sizes.first().filter(|n| sizes.iter().all(|m| m == *n)) {
                cuttable.push((n, axes));
            }
        }
        cuttable
    }

    /// The call on these positions of a group of axes alone.
    pub(super) fn cut(&self, axes: &[Axis], keep: &[usize]) -> Call {
        let op = self.op.clone().map(|argument, tensor| {
            let cut = axes.iter().filter(|(name, _)| *name == argument);
            cut.fold(tensor, |t, &(_, axis)| Arc::new(select(&t, axis, keep)))
        });
        Call { id: self.id.clone(), op: settled(op) }
    }

    /// The same call with other elements in an operand.
    pub(super) fn with(&self, argument: &str, change: impl Fn(&HostTensor) -> HostTensor) -> Call {
        let op = self.op.clone().map(|name, t| if name == argument { Arc::new(change(&t)) } else { t });
        Call { id: self.id.clone(), op }
    }

    /// The call without each of the operands that it can do without.
    pub(super) fn without_an_operand(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut push = |op| calls.push(Call { id: self.id.clone(), op });
        match &self.op {
            Op::Linear(a) if a.bias.is_some() => {
                push(Op::Linear(ulpian_spec::ops::linear::Linear { bias: None, ..a.clone() }))
            }
            Op::Conv2d(a) if a.bias.is_some() => {
                push(Op::Conv2d(ulpian_spec::ops::conv2d::Conv2d { bias: None, ..a.clone() }))
            }
            Op::LayerNorm(a) => {
                use ulpian_spec::ops::layer_norm::LayerNorm;
                if a.bias.is_some() {
                    push(Op::LayerNorm(LayerNorm { bias: None, ..a.clone() }));
                }
                if a.weight.is_some() {
                    push(Op::LayerNorm(LayerNorm { weight: None, ..a.clone() }));
                }
            }
            Op::BatchNorm(a) => {
                use ulpian_spec::ops::batch_norm::BatchNorm;
                if a.bias.is_some() {
                    push(Op::BatchNorm(BatchNorm { bias: None, ..a.clone() }));
                }
                if a.weight.is_some() {
                    push(Op::BatchNorm(BatchNorm { weight: None, ..a.clone() }));
                }
            }
            _ => {}
        }
        calls
    }
}

/// The axes that lie `back` from the right, as broadcasting lines them up.
fn from_the_right(operands: &[(&'static str, usize)], back: usize) -> Vec<Axis> {
    operands.iter().filter_map(|&(name, dims)| Some((name, dims.checked_sub(back)?))).collect()
}

/// Arguments that follow from the operands' sizes.
fn settled(op: Op<Arc<HostTensor>>) -> Op<Arc<HostTensor>> {
    match op {
        Op::LayerNorm(mut a) => {
            let from = a.input.shape().len().saturating_sub(a.normalized_shape.len());
            a.normalized_shape = a.input.shape()[from..].iter().map(|&n| n as i64).collect();
            Op::LayerNorm(a)
        }
        Op::Conv2d(mut a) if a.groups > 1 => {
            a.groups = a.weight.shape().first().map_or(1, |&n| n as i64);
            Op::Conv2d(a)
        }
        // A divisor or factor that became a tensor of one element stays a tensor: a scalar promotes differently.
        Op::Div(ref a) if matches!(a.other, TensorOrScalar::Tensor(_)) => op,
        other => other,
    }
}

/// Positions `keep` of one axis.
fn select(tensor: &HostTensor, axis: usize, keep: &[usize]) -> HostTensor {
    let shape = tensor.shape();
    let (outer, size): (usize, usize) = (shape[..axis].iter().product(), shape[axis]);
    let inner = shape[axis + 1..].iter().product::<usize>() * tensor.dtype().size();
    let bytes = tensor.storage().to_le_bytes();
    let mut kept = Vec::with_capacity(outer * keep.len() * inner);
    for o in 0..outer {
        for &k in keep {
            let from = (o * size + k) * inner;
            kept.extend_from_slice(&bytes[from..from + inner]);
        }
    }
    let mut shape = shape.to_vec();
    shape[axis] = keep.len();
    HostTensor::new(shape, Storage::from_le_bytes(tensor.dtype(), &kept))
        .expect("as many elements were copied as the shape has")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ulpian_spec::ops::linear::Linear;

    #[test]
    fn operands_that_share_an_axis_are_cut_together() {
        let tensor = |shape: &[usize]| {
            let n: usize = shape.iter().product();
            Arc::new(HostTensor::f32(shape, &(0..n).map(|i| i as f32).collect::<Vec<_>>()))
        };
        let op =
            Op::Linear(Linear { input: tensor(&[2, 3]), weight: tensor(&[4, 3]), bias: Some(tensor(&[4])) });
        let call = Call { id: "y".to_owned(), op };
        let axes = call.axes();
        assert_eq!(axes[0], (2, vec![("input", 0)]));
        assert_eq!(axes[1], (3, vec![("input", 1), ("weight", 1)]));
        assert_eq!(axes[2], (4, vec![("bias", 0), ("weight", 0)]));
        let cut = call.cut(&axes[1].1, &[0, 2]).cut(&axes[2].1, &[3]);
        let Op::Linear(a) = &cut.op else { panic!("it is still a linear") };
        assert_eq!(*a.input, HostTensor::f32(&[2, 2], &[0.0, 2.0, 3.0, 5.0]));
        assert_eq!(*a.weight, HostTensor::f32(&[1, 2], &[9.0, 11.0]));
        assert_eq!(cut.case("y", "").unwrap().nodes[0].types[0].shape, [2, 1]);
    }
}
