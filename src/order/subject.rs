//! What is probed: a call whose results are sums, which elements of its operands each sum holds, and cases with chosen terms.

use std::collections::BTreeMap;

use half::{bf16, f16};
use serde_json::{Map, Value, json};
use ulpian_spec::case::CaseBuilder;
use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;
use ulpian_spec::{Case, CaseError, DType, HostTensor, Op, OpKind, Storage, ValueRef};

use super::OrderError;

/// Terms of a sum where the call does not say.
pub const DEFAULT_TERMS: usize = 1024;

/// Most terms: the tree of one sum is held in memory, and up to the square of this number of pairs may be asked for.
pub const MOST_TERMS: usize = 1 << 14;

/// Most elements of a tensor that is made for a probe.
const MOST_ELEMENTS: usize = 1 << 28;

/// A call to be probed, as it is asked for.
#[derive(Debug, Clone)]
pub struct Call {
    /// The op.
    pub op: OpKind,
    /// Its arguments that are no tensors.
    pub literals: Map<String, Value>,
    /// The shapes of its tensors.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Number of terms, for shapes that are not given.
    pub terms: Option<usize>,
    /// The dtype of the tensors.
    pub dtype: DType,
}

/// A call whose results are sums.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The op.
    pub op: OpKind,
    /// The dtype of every tensor.
    pub dtype: DType,
    /// Its tensors' shapes.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Terms of each sum; the bias is the last one where there is one.
    pub terms: usize,
    /// Its other arguments.
    literals: Map<String, Value>,
    call: Op<ValueRef>,
    result: Vec<usize>,
}

/// Where a term comes from: positions in the tensors, row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
    /// A product of an element of the first operand and one of the second.
    Product(usize, usize),
    /// An element of the bias.
    Bias(usize),
    /// An element of the only operand.
    Element(usize),
}

impl Subject {
    /// Fills in the shapes that are not given, and checks the call as a case is checked.
    ///
    /// # Errors
    /// [`OrderError`], naming the argument.
    pub fn new(call: Call) -> Result<Subject, OrderError> {
        let Call { op, mut literals, mut shapes, terms, dtype } = call;
        if !dtype.is_float() {
            return Err(OrderError::Dtype(dtype));
        }
        let k = terms.unwrap_or(DEFAULT_TERMS);
        let last = |shapes: &BTreeMap<String, Vec<usize>>, name: &str| {
            shapes.get(name).and_then(|s| s.last().copied())
        };
        let mut default = |name: &str, shape: Vec<usize>| {
            shapes.entry(name.to_owned()).or_insert(shape);
        };
        match op {
            OpKind::Matmul => {
                let inner = shapes.get("other").map(|s| s[s.len().saturating_sub(2)]);
                let k = last(&shapes, "input").or(inner).unwrap_or(k);
                shapes.entry("input".to_owned()).or_insert(vec![k, k]);
                shapes.entry("other".to_owned()).or_insert(vec![k, k]);
            }
            OpKind::Linear => {
                let k = last(&shapes, "input").or(last(&shapes, "weight")).unwrap_or(k);
                shapes.entry("input".to_owned()).or_insert(vec![k, k]);
                shapes.entry("weight".to_owned()).or_insert(vec![k, k]);
            }
            OpKind::Conv2d => {
                if terms.is_some() {
                    return Err(OrderError::Shape(
                        "conv2d sums channels times kernel: give --shape weight=OxCxHxW instead of --k"
                            .to_owned(),
                    ));
                }
                default("weight", vec![32, 16, 3, 3]);
                let weight = shapes["weight"].clone();
                let groups = literals.get("groups").and_then(Value::as_u64).unwrap_or(1) as usize;
                let channels = weight.get(1).map_or(1, |c| c.saturating_mul(groups));
                let side = |i: usize| weight.get(i).map_or(1, |n| n.saturating_add(13));
                shapes.entry("input".to_owned()).or_insert(vec![1, channels, side(2), side(3)]);
            }
            OpKind::AdaptiveAvgPool2d => {
                literals.entry("output_size").or_insert(json!(1));
                let plane = if terms.is_some() { [1, k] } else { [14, 14] };
                default("input", vec![1, 64, plane[0], plane[1]]);
            }
            OpKind::LayerNorm => {
                let width = literals.get("normalized_shape").and_then(|v| v.as_array()?.last()?.as_u64());
                let k = last(&shapes, "input").or(width.map(|n| n as usize)).unwrap_or(k);
                shapes.entry("input".to_owned()).or_insert(vec![64, k]);
                literals.entry("normalized_shape").or_insert(json!([k]));
            }
            other => return Err(OrderError::Op(other)),
        }
        if let Some((name, shape)) =
            shapes.iter().find(|(_, s)| ulpian_spec::tensor::elements_of(s).is_none_or(|n| n > MOST_ELEMENTS))
        {
            return Err(OrderError::Shape(format!(
                "{name}: {shape:?} has more than {MOST_ELEMENTS} elements; give a smaller shape"
            )));
        }
        if let (Some(bias), DType::F16) = (shapes.get("bias"), dtype) {
            return Err(OrderError::Shape(format!(
                "bias {bias:?}: float16's range is too narrow to probe a bias; leave it out, or use bfloat16 or float32"
            )));
        }
        if (op, dtype) == (OpKind::AdaptiveAvgPool2d, DType::F16) {
            return Err(OrderError::Shape(
                "float16's range is too narrow to probe a mean; use --dtype bfloat16 or float32".to_owned(),
            ));
        }
        let zeros = shapes.iter().map(|(name, s)| {
            let len = s.iter().product();
            (name.clone(), Storage::zeros(dtype, len))
        });
        let mut subject = Subject {
            op,
            dtype,
            terms: 0,
            call: Op::Relu(ulpian_spec::ops::relu::Relu { input: ValueRef::Input(0) }),
            result: Vec::new(),
            literals,
            shapes: shapes.clone(),
        };
        let case = subject.build(zeros.collect())?;
        subject.call = case.nodes[0].op.clone();
        subject.result = case.nodes[0].types[0].shape.clone();
        subject.count_terms()?;
        Ok(subject)
    }

    fn count_terms(&mut self) -> Result<(), OrderError> {
        let shape = |text: String| Err(OrderError::Shape(text));
        if let Some(weight) = self.shapes.get("weight")
            && self.op == OpKind::LayerNorm
        {
            return shape(format!("weight {weight:?}: the mean does not depend on it; leave it out"));
        }
        if self.result.contains(&0) {
            return shape(format!("the result {:?} has no elements; give larger shapes", self.result));
        }
        if let Op::AdaptiveAvgPool2d(_) = self.call {
            let (input, output) = (&self.shapes["input"], &self.result);
            let uneven = input.iter().zip(output).any(|(i, o)| i % o != 0);
            if uneven {
                return shape(format!(
                    "input {input:?} has windows of several sizes for {output:?}; give sizes that divide"
                ));
            }
        }
        let terms = (0..self.elements()).find_map(|element| self.sum(element)).map_or(0, |sum| sum.len());
        if terms == 0 {
            return shape(
                "there is nothing to add up: no result is a whole sum of at least one term".to_owned(),
            );
        }
        if terms > MOST_TERMS {
            return shape(format!("{terms} terms are more than {MOST_TERMS}; give smaller shapes"));
        }
        self.terms = terms;
        Ok(())
    }

    /// Number of elements of the result.
    pub(super) fn elements(&self) -> usize {
        self.result.iter().product()
    }

    /// The shape of the result.
    pub(super) fn result_shape(&self) -> &[usize] {
        &self.result
    }

    /// The terms of a result element; `None` where its window reaches into the padding.
    pub(super) fn sum(&self, element: usize) -> Option<Vec<Term>> {
        match &self.call {
            Op::Matmul(_) => {
                let (a, b) = (&self.shapes["input"], &self.shapes["other"]);
                let (k, m) = (a[a.len() - 1], if a.len() > 1 { a[a.len() - 2] } else { 1 });
                let n = if b.len() > 1 { b[b.len() - 1] } else { 1 };
                let (batch, i, j) = (element / (m * n), element / n % m, element % n);
                // Either operand may be one for all of the batch; sizes that broadcast otherwise were refused.
                let of = |shape: &[usize], block: usize| if shape.len() > 2 { batch * block } else { 0 };
                let (a0, b0) = (of(a, m * k), of(b, k * n));
                Some((0..k).map(|t| Term::Product(a0 + i * k + t, b0 + t * n + j)).collect())
            }
            Op::Linear(args) => {
                let w = &self.shapes["weight"];
                let (k, n) = (w[w.len() - 1], if w.len() > 1 { w[0] } else { 1 });
                let (i, j) = (element / n, element % n);
                let mut terms: Vec<Term> = (0..k).map(|t| Term::Product(i * k + t, j * k + t)).collect();
                let bias = args.bias.map(|_| Term::Bias(if self.shapes["bias"].is_empty() { 0 } else { j }));
                terms.extend(bias);
                Some(terms)
            }
            Op::Conv2d(args) => self.window(args, element),
            Op::AdaptiveAvgPool2d(_) => {
                let input = &self.shapes["input"];
                let (h, w) = (input[input.len() - 2], input[input.len() - 1]);
                let (oh, ow) = (self.result[input.len() - 2], self.result[input.len() - 1]);
                let (kh, kw) = (h / oh, w / ow);
                let (plane, r, c) = (element / (oh * ow), element / ow % oh, element % ow);
                let at = |i: usize, j: usize| plane * h * w + (r * kh + i) * w + c * kw + j;
                Some((0..kh).flat_map(|i| (0..kw).map(move |j| Term::Element(at(i, j)))).collect())
            }
            Op::LayerNorm(args) => {
                let k: usize = args.normalized_shape.iter().map(|&n| n as usize).product();
                Some((0..k).map(|t| Term::Element(element / k * k + t)).collect())
            }
            _ => None,
        }
    }

    /// Where the window of a result element begins, if it lies within the input.
    fn corner(&self, args: &Conv2d<ValueRef>, element: usize) -> Option<[usize; 2]> {
        let (input, weight) = (&self.shapes["input"], &self.shapes["weight"]);
        let ([.., height, width], [.., kh, kw]) = (&input[..], &weight[..]) else { return None };
        let [.., oh, ow] = self.result[..] else { return None };
        let pair = |v: [i64; 2]| v.map(|x| usize::try_from(x).unwrap_or(0));
        let (stride, dilation) = (pair(args.stride), pair(args.dilation));
        let reach = [dilation[0] * kh.saturating_sub(1), dilation[1] * kw.saturating_sub(1)];
        let before = match args.padding {
            Padding::Explicit(p) => pair(p),
            Padding::Same => reach.map(|r| r / 2),
            Padding::Valid => [0, 0],
        };
        let top = (element / ow % oh * stride[0]).checked_sub(before[0])?;
        let left = (element % ow * stride[1]).checked_sub(before[1])?;
        (top + reach[0] < *height && left + reach[1] < *width).then_some([top, left])
    }

    fn window(&self, args: &Conv2d<ValueRef>, element: usize) -> Option<Vec<Term>> {
        let (input, weight) = (&self.shapes["input"], &self.shapes["weight"]);
        let [.., channels, height, width] = input[..] else { return None };
        let [filters, group_channels, kh, kw] = weight[..] else { return None };
        let [.., oh, ow] = self.result[..] else { return None };
        let dilation = args.dilation.map(|x| usize::try_from(x).unwrap_or(0));
        let [top, left] = self.corner(args, element)?;
        let (filter, image) = (element / (oh * ow) % filters, element / (oh * ow * filters));
        let first = filter / (filters / usize::try_from(args.groups).ok()?) * group_channels;
        let mut terms = Vec::with_capacity(group_channels * kh * kw + 1);
        for channel in 0..group_channels {
            for (i, j) in (0..kh).flat_map(|i| (0..kw).map(move |j| (i, j))) {
                let (y, x) = (top + i * dilation[0], left + j * dilation[1]);
                let place = ((image * channels + first + channel) * height + y) * width + x;
                terms.push(Term::Product(place, ((filter * group_channels + channel) * kh + i) * kw + j));
            }
        }
        terms.extend(args.bias.map(|_| Term::Bias(filter)));
        Some(terms)
    }

    /// The tensors in the order of their arguments: what is held alike in every sum, what differs, the bias.
    pub(super) fn roles(&self) -> (Option<&'static str>, &'static str) {
        match self.op {
            OpKind::Matmul => (Some("input"), "other"),
            OpKind::Linear | OpKind::Conv2d => (Some("input"), "weight"),
            _ => (None, "input"),
        }
    }

    /// Result elements that can have terms of their own, the first of each: they share no varying operand.
    pub(super) fn columns(&self) -> Vec<usize> {
        let mut seen = vec![false; self.varying_size()];
        let first = |&element: &usize| {
            self.column_of(element).is_some_and(|place| !std::mem::replace(&mut seen[place], true))
        };
        (0..self.elements()).filter(first).collect()
    }

    /// Elements of the varying operand.
    pub(super) fn varying_size(&self) -> usize {
        self.shapes[self.roles().1].iter().product()
    }

    /// What tells columns apart: where the varying operand of an element's first term stands. `None` for an element without a
    /// whole sum.
    pub(super) fn column_of(&self, element: usize) -> Option<usize> {
        match &self.call {
            Op::Matmul(_) => {
                let (a, b) = (&self.shapes["input"], &self.shapes["other"]);
                let (k, m) = (a[a.len() - 1], if a.len() > 1 { a[a.len() - 2] } else { 1 });
                let n = if b.len() > 1 { b[b.len() - 1] } else { 1 };
                let batch = if b.len() > 2 { element / (m * n) } else { 0 };
                Some(batch * k * n + element % n)
            }
            Op::Linear(_) => {
                let w = &self.shapes["weight"];
                Some(element % if w.len() > 1 { w[0] } else { 1 } * w[w.len() - 1])
            }
            Op::Conv2d(args) => {
                let [.., filters, oh, ow] = self.result[..] else { return None };
                self.corner(args, element).map(|_| {
                    element / (oh * ow) % filters * self.shapes["weight"][1..].iter().product::<usize>()
                })
            }
            Op::LayerNorm(_) => Some(element / self.terms.max(1) * self.terms.max(1)),
            _ => match self.sum(element)?.first()? {
                Term::Product(_, place) | Term::Element(place) | Term::Bias(place) => Some(*place),
            },
        }
    }

    /// A case in which the sums of these elements have these terms, and every other one none but zeros. The fixed operand is 1.
    pub(super) fn case_of(&self, columns: &[(usize, Vec<f64>)]) -> Result<Case, OrderError> {
        let (fixed, varying) = self.roles();
        let size = |name: &str| self.shapes.get(name).map_or(0, |s| s.iter().product());
        let mut values = vec![0.0; size(varying)];
        let mut bias = vec![0.0; size("bias")];
        for (element, terms) in columns {
            for (term, &value) in self.sum(*element).unwrap_or_default().iter().zip(terms) {
                match *term {
                    Term::Product(_, place) | Term::Element(place) => values[place] = value,
                    Term::Bias(place) => bias[place] = value,
                }
            }
        }
        let mut tensors = vec![(varying.to_owned(), store(self.dtype, &values))];
        if let Some(name) = fixed {
            tensors.push((name.to_owned(), store(self.dtype, &vec![1.0; size(name)])));
        }
        if self.shapes.contains_key("bias") {
            tensors.push(("bias".to_owned(), store(self.dtype, &bias)));
        }
        self.build(tensors)
    }

    /// The case that reads all pairs at once: `m` on the first operand's diagonal, `-m` on the second one's, ones elsewhere, so
    /// that result (i, j) has `m` at term i and `-m` at term j. `None` unless it is a product of two matrices large enough.
    pub(super) fn all_pairs(&self, m: f64) -> Option<Result<Case, OrderError>> {
        let (fixed, varying) = self.roles();
        let fixed = fixed?;
        let (&[rows, k], &[p, q]) = (&self.shapes[fixed][..], &self.shapes[varying][..]) else { return None };
        let columns = if self.op == OpKind::Linear { p } else { q };
        if self.op == OpKind::Conv2d || self.shapes.contains_key("bias") || rows < k || columns < k {
            return None;
        }
        let (mut a, mut b) = (vec![1.0; rows * k], vec![1.0; p * q]);
        for i in 0..k {
            a[i * k + i] = m;
            b[i * q + i] = -m;
        }
        let tensors =
            vec![(fixed.to_owned(), store(self.dtype, &a)), (varying.to_owned(), store(self.dtype, &b))];
        Some(self.build(tensors))
    }

    /// A case over these tensors, by argument.
    pub(super) fn case_over(&self, tensors: &BTreeMap<String, Vec<f64>>) -> Result<Case, OrderError> {
        self.build(tensors.iter().map(|(name, v)| (name.clone(), store(self.dtype, v))).collect())
    }

    fn build(&self, tensors: Vec<(String, Storage)>) -> Result<Case, OrderError> {
        let mut builder = CaseBuilder::new("order");
        builder.file(format!("order {}", self.op));
        let mut args = self.literals.clone();
        for (name, storage) in tensors {
            if args.contains_key(&name) {
                return Err(OrderError::Shape(format!("{name}: given as a value and as a shape")));
            }
            let shape = self.shapes.get(&name).cloned().unwrap_or_default();
            let tensor = HostTensor::new(shape, storage)
                .ok_or_else(|| OrderError::Shape(format!("{name}: its values do not fill its shape")))?;
            builder.tensor(name.clone(), tensor)?;
            args.insert(name.clone(), Value::String(format!("@{name}")));
        }
        builder.node_from_json("y", self.op.name(), &Value::Object(args).to_string())?;
        Ok(builder.finish()?)
    }

    /// Do both operands of a batched product have the same batch, or one of them none?
    pub(super) fn check_batch(&self) -> Result<(), OrderError> {
        if self.op != OpKind::Matmul {
            return Ok(());
        }
        let batch = |name: &str| {
            let shape = &self.shapes[name];
            shape[..shape.len().saturating_sub(2)].to_vec()
        };
        let (a, b) = (batch("input"), batch("other"));
        if a == b || a.is_empty() || b.is_empty() {
            return Ok(());
        }
        Err(OrderError::Shape(format!(
            "batches {a:?} and {b:?}: give both the same batch, or one of them none"
        )))
    }
}

impl From<CaseError> for OrderError {
    fn from(error: CaseError) -> OrderError {
        OrderError::Case(error)
    }
}

/// Values that are numbers of the dtype as its elements.
fn store(dtype: DType, values: &[f64]) -> Storage {
    match dtype {
        DType::F64 => Storage::F64(values.to_vec()),
        DType::F16 => Storage::F16(values.iter().map(|&x| f16::from_f32(x as f32)).collect()),
        DType::BF16 => Storage::BF16(values.iter().map(|&x| bf16::from_f32(x as f32)).collect()),
        _ => Storage::F32(values.iter().map(|&x| x as f32).collect()),
    }
}
