//! Any element of any chain in arbitrary precision: the definition of every op.
//!
//! An element is computed lazily, from the case's exact inputs, over the real numbers: rational numbers exactly, the rest
//! as balls at a working precision that doubles until the rounding is unique. One file per op states its formula and special
//! values; nothing is rounded to a dtype between ops. Conversions of dtype (promotion, softmax's `dtype`) change no real
//! number; results of an integer dtype are reduced modulo 2^n, as PyTorch's are.
//!
//! Ties: where a result is rational its tie is seen, since rational operations are exact (and so is the square root of a
//! rational square). From [`form::FORM_PRECISION`] on irrational numbers keep their expressions beside their balls, so that one which
//! cancels, as in a product of two norms or in gelu(x) - gelu(-x), leaves a rational number, and equal maxima are seen as equal.
//! Where exp or the error function take part in earnest, their values at rational arguments other than 0 are irrational
//! (Lindemann-Weierstrass for exp; for x Phi(x) no proof is known, and none is needed: a tie would be reported as undecided,
//! never rounded wrongly). Undecided remain ties and equal maxima by identities that [`form`] does not know, and those of sums
//! of more irrational terms than it keeps.
//!
//! Zero: an exact zero of a sum of several terms is +0 with a free sign; pointwise ops follow IEEE 754. A real number other
//! than zero that rounds to zero keeps its sign. A number whose ball around zero never shows a sign is a zero of free sign.

mod adaptive_avg_pool2d;
mod add;
mod ball;
mod batch_norm;
mod conv2d;
mod div;
mod dropout;
mod flatten;
mod form;
mod functions;
mod gelu;
mod index;
mod layer_norm;
mod linear;
mod matmul;
mod max_pool2d;
mod memo;
mod mul;
mod norm;
mod ratio;
mod relu;
mod resolve;
mod softmax;
mod sum;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ulpian_spec::{DType, HostTensor, Op, TensorType, for_each_op};

use crate::{EvaluateError, Settings};
use memo::Memo;
pub(crate) use resolve::Resolved;
use value::Value;

/// Where an operand comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// A tensor, taken exactly.
    Tensor(&'a HostTensor),
    /// A result of an earlier node.
    Node {
        /// Position of the node.
        node: usize,
        /// Which of its results.
        output: usize,
    },
}

/// One call: the op over its sources, and the type of every result.
#[derive(Debug, Clone)]
pub(crate) struct GraphNode<'a> {
    pub(crate) op: Op<Source<'a>>,
    pub(crate) types: Vec<TensorType>,
}

/// Evaluates elements of a graph, each node of which uses earlier ones only. It may be shared between threads.
pub(crate) struct Evaluator<'a> {
    nodes: Vec<GraphNode<'a>>,
    max_precision: usize,
    memo: Memo,
    division_by_zero: AtomicBool,
    undetermined: AtomicBool,
}

/// First working precision, in bits.
const FIRST_PRECISION: usize = 128;

/// Working precision up to which the sign of a number that rounds to zero is looked for.
const SIGN_PRECISION: usize = 1024;

impl<'a> Evaluator<'a> {
    /// An evaluator of these nodes. A quarter of `settings.max_bytes` goes to remembered intermediate values.
    pub(crate) fn new(nodes: Vec<GraphNode<'a>>, settings: &Settings) -> Evaluator<'a> {
        Evaluator {
            nodes,
            max_precision: (settings.max_precision as usize).clamp(FIRST_PRECISION, 1 << 16),
            memo: Memo::new(settings.max_bytes / 4),
            division_by_zero: AtomicBool::new(false),
            undetermined: AtomicBool::new(false),
        }
    }

    /// An evaluator of one op over exact tensors; the results are those of node 0.
    pub(crate) fn single(
        op: &Op<&'a HostTensor>,
        types: Vec<TensorType>,
        settings: &Settings,
    ) -> Evaluator<'a> {
        Evaluator::new(vec![GraphNode { op: op.clone().map(|_, t| Source::Tensor(t)), types }], settings)
    }

    /// Element `index` (row-major) of a node's result, correctly rounded and enclosed.
    ///
    /// # Errors
    /// [`EvaluateError::DivisionByZero`] where an integer is divided by zero on the way, and [`EvaluateError::Undetermined`]
    /// where the element depends on a dropout in training without a mask.
    pub(crate) fn resolve(
        &self,
        node: usize,
        output: usize,
        index: usize,
    ) -> Result<Resolved, EvaluateError> {
        let dtype = self.nodes[node].types[output].dtype;
        let mut prec = FIRST_PRECISION;
        loop {
            let value = self.compute(node, output, index, prec);
            if self.division_by_zero.load(Ordering::Relaxed) {
                return Err(EvaluateError::DivisionByZero);
            }
            if self.undetermined.load(Ordering::Relaxed) {
                return Err(EvaluateError::Undetermined);
            }
            let last = prec >= self.max_precision;
            let resolved = Resolved::new(&value, dtype, prec < SIGN_PRECISION && !last);
            if resolved.decided || last {
                return Ok(resolved);
            }
            prec = (2 * prec).min(self.max_precision);
        }
    }

    /// An element at a working precision, not remembered.
    fn compute(&self, node: usize, output: usize, index: usize, prec: usize) -> Value {
        let cx = Context { evaluator: self, node, output, prec };
        macro_rules! dispatch {
            ($(($variant:ident, $stem:ident, [$($alias:literal),*]),)*) => {
                match &self.nodes[node].op { $(Op::$variant(args) => $stem::element(args, index, &cx),)* }
            };
        }
        for_each_op!(dispatch)
    }
}

/// What an op's definition sees: its place, the working precision and its operands' elements.
struct Context<'e> {
    evaluator: &'e Evaluator<'e>,
    node: usize,
    output: usize,
    prec: usize,
}

impl Context<'_> {
    /// Element `index` of an operand.
    fn get(&self, source: &Source<'_>, index: usize) -> Value {
        match *source {
            Source::Tensor(t) => Value::from_tensor(t, index),
            Source::Node { node, output } => {
                let key = memo::Key { node, output, index, prec: self.prec };
                self.evaluator.memo.value(key, || self.evaluator.compute(node, output, index, self.prec))
            }
        }
    }

    /// Sizes of an operand.
    fn shape<'s>(&'s self, source: &'s Source<'_>) -> &'s [usize] {
        match source {
            Source::Tensor(t) => t.shape(),
            Source::Node { node, output } => &self.evaluator.nodes[*node].types[*output].shape,
        }
    }

    /// Sizes of the result.
    fn out_shape(&self) -> &[usize] {
        &self.evaluator.nodes[self.node].types[self.output].shape
    }

    /// Dtype of the result.
    fn out_dtype(&self) -> DType {
        self.evaluator.nodes[self.node].types[self.output].dtype
    }

    /// A result in its dtype: integers wrap.
    fn finish(&self, value: Value) -> Value {
        if self.out_dtype().is_float() { value } else { value.wrapped(self.out_dtype()) }
    }

    /// Values that all elements of one row or channel share, computed once.
    fn shared(&self, row: usize, compute: impl FnOnce() -> Vec<Value>) -> Arc<[Value]> {
        let key = memo::Key { node: self.node, output: usize::MAX, index: row, prec: self.prec };
        self.evaluator.memo.shared(key, compute)
    }

    /// Notes a division of an integer by zero, which PyTorch rejects.
    fn division_by_zero(&self) -> Value {
        self.evaluator.division_by_zero.store(true, Ordering::Relaxed);
        Value::Unknown
    }

    /// Notes a result that depends on chance.
    fn undetermined(&self) -> Value {
        self.evaluator.undetermined.store(true, Ordering::Relaxed);
        Value::Unknown
    }
}

#[cfg(test)]
mod tests {
    use ulpian_spec::ops::batch_norm::BatchNorm;
    use ulpian_spec::ops::gelu::Gelu;
    use ulpian_spec::ops::{GeluApproximate, div};

    use super::*;
    use ulpian_spec::Storage;

    fn resolve(op: &Op<&HostTensor>) -> Vec<Resolved> {
        let types = op.clone().map(|_, t| t.tensor_type()).infer().expect("a valid call");
        let elements = types[0].elements().expect("small");
        let evaluator = Evaluator::single(op, types, &Settings::default());
        (0..elements).map(|i| evaluator.resolve(0, 0, i).expect("determined")).collect()
    }

    /// An irrational deviation, a difference of 673 bits and a weight of 2^-1022: the radius must follow the precision.
    #[test]
    fn small_results_of_irrational_factors_are_decided() {
        let t = |x: f64| HostTensor::f64(&[1], &[x]);
        let input = HostTensor::f64(&[1, 1], &[2f64.powi(-669)]);
        let (mean, var) = (t(-9.0), t(9.0));
        let (weight, bias) = (t(2f64.powi(-1022)), t(-2f64.powi(-1022)));
        let op = Op::BatchNorm(BatchNorm {
            input: &input,
            running_mean: Some(&mean),
            running_var: Some(&var),
            weight: Some(&weight),
            bias: Some(&bias),
            training: false,
            momentum: 0.1,
            eps: 0.25,
        });
        let y = resolve(&op)[0];
        // (9 / sqrt(9.25) - 1) 2^-1022, to 17 digits by mpmath.
        assert!(y.decided);
        assert_eq!(y.value, 4.359_324_143_820_538_4e-308);
        assert_eq!(y.radius, f64::from_bits(1));
    }

    /// x / 2 is a tie of the subnormals; x^2 phi(0) above it decides.
    #[test]
    fn gelu_beside_a_tie() {
        let tiny = f64::from_bits(1);
        let input = HostTensor::f64(&[6], &[tiny, -tiny, 3.0 * tiny, -0.0, f64::NEG_INFINITY, -1e300]);
        for approximate in [GeluApproximate::None, GeluApproximate::Tanh] {
            let y = resolve(&Op::Gelu(Gelu { input: &input, approximate }));
            assert!(y.iter().all(|r| r.decided));
            let bits: Vec<u64> = y.iter().map(|r| r.value.to_bits()).collect();
            let minus_zero = 1 << 63;
            assert_eq!(bits, [1, minus_zero, 2, minus_zero, minus_zero, minus_zero]);
        }
    }

    #[test]
    fn an_integer_divided_by_zero_is_an_error() {
        let one = HostTensor::new([1], Storage::I64(vec![1])).expect("one element");
        let zero = HostTensor::new([1], Storage::I64(vec![0])).expect("one element");
        let op = Op::Div(div::Div {
            input: &one,
            other: ulpian_spec::ops::TensorOrScalar::Tensor(&zero),
            rounding_mode: Some(ulpian_spec::ops::RoundingMode::Floor),
        });
        let types = vec![one.tensor_type()];
        let evaluator = Evaluator::single(&op, types, &Settings::default());
        assert_eq!(evaluator.resolve(0, 0, 0), Err(EvaluateError::DivisionByZero));
    }
}
