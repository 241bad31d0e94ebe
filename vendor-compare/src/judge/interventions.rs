//! Interventions: one call run again by the same executor with one switch thrown, its inputs held fixed.

use std::collections::VecDeque;
use std::sync::Arc;

use ulpian_spec::case::{CaseTensor, Node};
use ulpian_spec::{Case, DType, ExecutorId, HostTensor, Op, OpKind, ValueRef};

use super::standing::is_exact_op;

/// What an executor's family lets be done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// PyTorch on this CPU.
    TorchCpu,
    /// PyTorch on the GPU.
    TorchCuda,
    /// ONNX Runtime.
    Ort,
    /// A vendor's library called directly.
    GpuLibrary,
    /// This project's own kernels.
    GpuNative,
    /// Observations: nothing can be run again.
    Recorded,
    /// A named hypothesis.
    Replay,
    /// Something else.
    Other,
}

impl Family {
    pub(super) fn of(id: &ExecutorId) -> Family {
        match (id.family.as_str(), id.variant.as_str()) {
            ("torch", "cpu") => Family::TorchCpu,
            ("torch", "cuda") => Family::TorchCuda,
            ("ort", _) => Family::Ort,
            ("gpu", "native") => Family::GpuNative,
            ("gpu", _) => Family::GpuLibrary,
            ("recorded", _) => Family::Recorded,
            ("replay", _) => Family::Replay,
            _ => Family::Other,
        }
    }
}

/// The executors to hear about a call that is to be explained, cheapest first.
pub(super) fn plan(id: &ExecutorId, op: &Op<Arc<HostTensor>>, dtype: DType) -> VecDeque<ExecutorId> {
    let kind = op.kind();
    // Another path through the same function is no explanation of a wrong copy.
    if is_exact_op(kind, dtype) && Family::of(id) != Family::Recorded {
        return VecDeque::new();
    }
    let switch = |key: &str, value: &str| id.key(key).is_none().then(|| id.clone().with(key, value));
    let first = op.operands().first().map(|(_, t)| t.shape().to_vec()).unwrap_or_default();
    let layout = first.len() == 4
        && matches!(kind, OpKind::Conv2d | OpKind::MaxPool2d | OpKind::AdaptiveAvgPool2d | OpKind::BatchNorm);
    // Where oneDNN may compute a convolution, NNPACK is not asked.
    let nnpack = kind == OpKind::Conv2d && dtype == DType::F32 && id.key("mkldnn").is_some();
    let rows = first.first().is_some_and(|&n| n > 1) && separable(op);
    let list: Vec<Option<ExecutorId>> = match Family::of(id) {
        Family::TorchCpu => vec![
            switch("mkldnn", "off"),
            nnpack.then(|| switch("nnpack", "off")).flatten(),
            switch("isa", "default"),
            switch("isa", "avx2"),
            layout.then(|| switch("layout", "channels_last")).flatten(),
            rows.then(|| switch("batch", "1")).flatten(),
            switch("threads", "1"),
            switch("compile", "on"),
        ],
        Family::TorchCuda => vec![
            matches!(kind, OpKind::Matmul | OpKind::Linear | OpKind::Conv2d)
                .then(|| switch("tf32", "off"))
                .flatten(),
            switch("cudnn", "off"),
            switch("deterministic", "on"),
            layout.then(|| switch("layout", "channels_last")).flatten(),
            switch("compile", "on"),
        ],
        Family::Recorded => vec![
            Some(ExecutorId::new("torch", "cpu")),
            Some(ExecutorId::new("torch", "cpu").with("mkldnn", "off")),
            Some(ExecutorId::new("ort", "cpu")),
        ],
        Family::Ort | Family::GpuLibrary | Family::GpuNative | Family::Replay | Family::Other => vec![],
    };
    list.into_iter().flatten().collect()
}

/// Can the first operand's rows be computed apart?
fn separable(op: &Op<Arc<HostTensor>>) -> bool {
    match op {
        Op::Linear(_)
        | Op::Conv2d(_)
        | Op::Gelu(_)
        | Op::Relu(_)
        | Op::MaxPool2d(_)
        | Op::AdaptiveAvgPool2d(_) => true,
        Op::LayerNorm(args) => args.input.shape().len() > args.normalized_shape.len(),
        Op::BatchNorm(args) => !args.training,
        Op::Matmul(args) => args.input.shape().len() >= 2 && args.other.shape().len() <= 2,
        _ => false,
    }
}

/// The call as a case of its own.
pub(super) fn single_node(case: &Case, node: usize, op: &Op<Arc<HostTensor>>) -> Case {
    let mut tensors = Vec::new();
    let op = op.clone().map(|argument, value| {
        tensors.push(CaseTensor { name: argument.to_owned(), inline: false, value });
        ValueRef::Input(tensors.len() - 1)
    });
    let Node { id, types, .. } = &case.nodes[node];
    Case {
        name: format!("{}.{id}", case.name),
        source: format!("node {id} of case {}, on the inputs that one executor had", case.name),
        tensors,
        nodes: vec![Node { id: id.clone(), op, types: types.clone() }],
        outputs: (0..types.len()).map(|output| ValueRef::Node { node: 0, output }).collect(),
        observed: Vec::new(),
        expect: None,
    }
}

/// The switch that tells `id` from `tried`, as `key=value`; the whole name where they are different executors.
pub(super) fn switch_name(id: &ExecutorId, tried: &ExecutorId) -> String {
    if (&id.family, &id.variant) != (&tried.family, &tried.variant) {
        return tried.to_string();
    }
    tried
        .keys
        .iter()
        .find(|(k, v)| id.keys.get(*k) != Some(v))
        .map_or_else(|| tried.to_string(), |(k, v)| format!("{k}={v}"))
}

#[cfg(test)]
mod tests {
    use ulpian_spec::ops::GeluApproximate;
    use ulpian_spec::ops::gelu::Gelu;
    use ulpian_spec::ops::relu::Relu;

    use super::*;

    fn gelu() -> Op<Arc<HostTensor>> {
        Op::Gelu(Gelu {
            input: Arc::new(HostTensor::f32(&[1, 2], &[1.0, 2.0])),
            approximate: GeluApproximate::None,
        })
    }

    #[test]
    fn switches_come_cheapest_first_and_none_twice() {
        let plan = |id: &str| {
            let id: ExecutorId = id.parse().expect("a name");
            plan(&id, &gelu(), DType::F32).iter().map(|e| switch_name(&id, e)).collect::<Vec<_>>()
        };
        assert_eq!(plan("torch:cpu"), ["mkldnn=off", "isa=default", "isa=avx2", "threads=1", "compile=on"]);
        assert_eq!(plan("torch:cpu?isa=default&mkldnn=off"), ["threads=1", "compile=on"]);
        assert_eq!(plan("recorded:x"), ["torch:cpu", "torch:cpu?mkldnn=off", "ort:cpu"]);
        assert!(plan("ort:cpu").is_empty());
    }

    #[test]
    fn a_wrong_copy_is_not_intervened_on() {
        let op = Op::Relu(Relu { input: Arc::new(HostTensor::f32(&[1], &[1.0])) });
        assert!(plan(&ExecutorId::new("torch", "cpu"), &op, DType::F32).is_empty());
    }
}
