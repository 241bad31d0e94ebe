//! Every message between Ulpian and its Python workers, with its version. The Python side is `py/ulpian/protocol.py`; both
//! change together.
//!
//! A frame is the four bytes of [`MAGIC`], the length of the body (unsigned, 32 bits, little-endian) and the body, a JSON
//! object. Tensors never travel in it: they stand, dense, row-major and little-endian, in a file that it names.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
use ulpian_spec::ops::{GeluApproximate, Padding, RoundingMode, Scalar, TensorOrScalar};
use ulpian_spec::tensor::elements_of;
use ulpian_spec::{Case, DType, HostTensor, Op, Storage, ValueRef};

/// The version of this protocol.
pub const VERSION: u32 = 2;
/// How every frame starts.
pub const MAGIC: &[u8; 4] = b"ULPN";
/// Longest body of a frame, in bytes.
pub const MAX_BODY: u32 = 1 << 30;
/// Offsets of tensors in a file are multiples of this, which is what PyTorch aligns its own memory to.
pub const ALIGNMENT: usize = 64;

/// What Ulpian asks.
#[derive(Debug, Serialize)]
pub struct Request<'a> {
    /// Number of the request; the answer repeats it.
    pub id: u64,
    /// Folders in which the worker may write its results, in order of preference.
    pub results: Vec<String>,
    /// The question.
    #[serde(flatten)]
    pub ask: Ask<'a>,
}

/// The question of a [`Request`].
#[derive(Debug, Serialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Ask<'a> {
    /// Compute a case. Answered by [`Answer::Ran`], [`Answer::Unavailable`] or [`Answer::Failed`].
    Run {
        /// `cpu` or `cuda`.
        variant: &'a str,
        /// The executor's keys.
        keys: &'a std::collections::BTreeMap<String, String>,
        /// The case's tensors.
        tensors: Tensors,
        /// The case's nodes.
        nodes: Vec<Call>,
        /// Seed of PyTorch's generator.
        seed: u64,
    },
    /// Read a file that `torch.save` wrote. Answered by [`Answer::Loaded`], [`Answer::Unavailable`] or [`Answer::Failed`].
    LoadPt {
        /// The file.
        path: &'a str,
    },
    /// Fail in the way `how` names. A worker obeys only where `ULPIAN_WORKER_TEST=1` stands in its environment.
    Misbehave {
        /// `exit`, `segfault`, `garbage`, `print` or `hang`.
        how: &'a str,
    },
}

/// Tensors in a file.
#[derive(Debug, Serialize)]
pub struct Tensors {
    /// The file; none where no tensor holds an element.
    pub file: Option<String>,
    /// Where each stands.
    pub entries: Vec<Entry>,
}

/// One tensor in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// First byte.
    pub offset: usize,
    /// Length.
    pub bytes: usize,
}

impl Entry {
    /// The tensor, from the bytes of the file; `None` where the entry does not fit its own shape or the file.
    pub fn tensor(&self, file: &[u8]) -> Option<HostTensor> {
        let wanted = elements_of(&self.shape)?.checked_mul(self.dtype.size())?;
        let end = self.offset.checked_add(self.bytes)?;
        let part = match self.bytes {
            bytes if bytes != wanted => return None,
            // Nothing is written for it, so that its offset may lie beyond the end.
            0 => &[],
            _ => file.get(self.offset..end)?,
        };
        HostTensor::new(self.shape.clone(), Storage::from_le_bytes(self.dtype, part))
    }
}

/// One node.
#[derive(Debug, Serialize)]
pub struct Call {
    /// Its name.
    pub id: String,
    /// The op, by PyTorch's name.
    pub op: &'static str,
    /// Dtype of its first result.
    pub dtype: DType,
    /// Every argument, defaults filled in.
    pub args: std::collections::BTreeMap<&'static str, Argument>,
}

/// One argument of a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// A tensor of the case, by position.
    Input(usize),
    /// A result of an earlier node: the node's position and which of its results.
    Node(usize, usize),
    /// Python's `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A float, in the shortest decimal digits that give it back; `inf`, `-inf` or `NaN`.
    Float(String),
    /// A list of int or `None`.
    Ints(Vec<Option<i64>>),
    /// A string.
    Text(&'static str),
    /// A dtype.
    Dtype(DType),
}

/// The first frame of a worker.
#[derive(Debug, Deserialize)]
pub struct Hello {
    /// The worker's [`VERSION`].
    pub protocol: u32,
    /// `little` or `big`.
    pub byteorder: String,
    /// Versions and machine facts.
    pub facts: serde_json::Map<String, serde_json::Value>,
    /// Why what it should compute with cannot be imported.
    pub problem: Option<String>,
}

/// What a worker answers.
#[derive(Debug, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Results of a case.
    Ran {
        /// The file of the results; none where they hold no element.
        file: Option<String>,
        /// Each result.
        entries: Vec<ResultEntry>,
        /// Seconds of the computation, where they could be told.
        seconds: Option<f64>,
        /// Facts worth showing.
        notes: Vec<String>,
    },
    /// The tensors of a file.
    Loaded {
        /// The file of the tensors; none where they hold no element.
        file: Option<String>,
        /// Each tensor.
        entries: Vec<NamedEntry>,
    },
    /// It cannot be done here.
    Unavailable {
        /// Why.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// An exception.
    Failed {
        /// The node that raised it, where it was one.
        node: Option<String>,
        /// The exception's class.
        r#type: String,
        /// Its text.
        message: String,
        /// The file of the results before it, as in [`Answer::Ran`].
        #[serde(default)]
        file: Option<String>,
        /// Each result before it.
        #[serde(default)]
        entries: Vec<ResultEntry>,
    },
}

/// An [`Answer`] and the request it belongs to.
#[derive(Debug, Deserialize)]
pub struct Reply {
    /// Number of the request.
    pub id: u64,
    /// The answer.
    #[serde(flatten)]
    pub answer: Answer,
}

/// One result of a case.
#[derive(Debug, Deserialize)]
pub struct ResultEntry {
    /// The node's position and which of its results.
    pub at: (usize, usize),
    /// Where it stands.
    #[serde(flatten)]
    pub entry: Entry,
}

/// One tensor of a loaded file.
#[derive(Debug, Deserialize)]
pub struct NamedEntry {
    /// Its name: the keys that lead to it, joined by dots.
    pub name: String,
    /// Where it stands.
    #[serde(flatten)]
    pub entry: Entry,
}

/// Writes one frame.
///
/// # Errors
/// Those of the stream; `InvalidData` where the message is longer than [`MAX_BODY`].
pub fn write_frame(stream: &mut impl Write, message: &impl Serialize) -> std::io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|&n| n <= MAX_BODY).ok_or_else(|| {
        std::io::Error::new(std::io::ErrorKind::InvalidData, format!("a message of {} bytes", body.len()))
    })?;
    let mut frame = Vec::with_capacity(8 + body.len());
    frame.extend_from_slice(MAGIC);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&body);
    stream.write_all(&frame)?;
    stream.flush()
}

/// Reads the body of the next frame; `None` at the end of the stream.
///
/// # Errors
/// Those of the stream; `InvalidData`, with the bytes, where what comes is no frame.
pub fn read_frame(stream: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut header = Vec::with_capacity(8);
    stream.by_ref().take(8).read_to_end(&mut header)?;
    if header.is_empty() {
        return Ok(None);
    }
    let (magic, length) = header.split_at(header.len().min(4));
    let length = length.try_into().map(u32::from_le_bytes);
    match (magic == MAGIC, length) {
        (true, Ok(length)) if length <= MAX_BODY => {
            let mut body = Vec::new();
            stream.by_ref().take(u64::from(length)).read_to_end(&mut body)?;
            Ok((body.len() == length as usize).then_some(body))
        }
        _ => Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("no frame: \"{}\"", header.escape_ascii()),
        )),
    }
}

/// The nodes of a case as a worker receives them, and the positions in [`Case::tensors`] of the tensors that they use: a worker
/// receives these only, in this order.
pub fn calls(case: &Case) -> (Vec<usize>, Vec<Call>) {
    let mut used = Vec::new();
    let mut position = std::collections::HashMap::new();
    let mut sent = |at: ValueRef| match at {
        ValueRef::Input(i) => ValueRef::Input(*position.entry(i).or_insert_with(|| {
            used.push(i);
            used.len() - 1
        })),
        node @ ValueRef::Node { .. } => node,
    };
    let calls = case
        .nodes
        .iter()
        .map(|node| Call {
            id: node.id.clone(),
            op: node.op.kind().name(),
            dtype: node.types[0].dtype,
            args: arguments(&node.op.clone().map(|_, at| sent(at))),
        })
        .collect();
    (used, calls)
}

impl From<ValueRef> for Argument {
    fn from(at: ValueRef) -> Argument {
        match at {
            ValueRef::Input(i) => Argument::Input(i),
            ValueRef::Node { node, output } => Argument::Node(node, output),
        }
    }
}

impl From<Option<ValueRef>> for Argument {
    fn from(at: Option<ValueRef>) -> Argument {
        at.map_or(Argument::None, Argument::from)
    }
}

impl From<Scalar> for Argument {
    fn from(scalar: Scalar) -> Argument {
        match scalar {
            Scalar::Bool(b) => Argument::Bool(b),
            Scalar::Int(i) => Argument::Int(i),
            Scalar::Float(x) => Argument::from(x),
        }
    }
}

impl From<TensorOrScalar<ValueRef>> for Argument {
    fn from(value: TensorOrScalar<ValueRef>) -> Argument {
        match value {
            TensorOrScalar::Tensor(at) => at.into(),
            TensorOrScalar::Scalar(scalar) => scalar.into(),
        }
    }
}

impl From<f64> for Argument {
    fn from(x: f64) -> Argument {
        Argument::Float(format!("{x:?}"))
    }
}

impl From<i64> for Argument {
    fn from(i: i64) -> Argument {
        Argument::Int(i)
    }
}

impl From<bool> for Argument {
    fn from(b: bool) -> Argument {
        Argument::Bool(b)
    }
}

impl From<[i64; 2]> for Argument {
    fn from(pair: [i64; 2]) -> Argument {
        Argument::Ints(pair.map(Some).to_vec())
    }
}

/// Every argument of an op, by PyTorch's name.
fn arguments(op: &Op<ValueRef>) -> std::collections::BTreeMap<&'static str, Argument> {
    macro_rules! list {
        ($($name:ident),*) => { [$((stringify!($name), Argument::from($name.clone()))),*].into() };
    }
    use ulpian_spec::ops;
    match op {
        Op::Flatten(ops::flatten::Flatten { input, start_dim, end_dim }) => list!(input, start_dim, end_dim),
        Op::Mul(ops::mul::Mul { input, other }) => list!(input, other),
        Op::Div(ops::div::Div { input, other, rounding_mode }) => {
            let rounding_mode = match rounding_mode {
                None => Argument::None,
                Some(RoundingMode::Trunc) => Argument::Text("trunc"),
                Some(RoundingMode::Floor) => Argument::Text("floor"),
            };
            list!(input, other, rounding_mode)
        }
        Op::Softmax(ops::softmax::Softmax { input, dim, dtype }) => {
            let dtype = dtype.map_or(Argument::None, Argument::Dtype);
            list!(input, dim, dtype)
        }
        Op::AdaptiveAvgPool2d(ops::adaptive_avg_pool2d::AdaptiveAvgPool2d { input, output_size }) => {
            let output_size = Argument::Ints(output_size.to_vec());
            list!(input, output_size)
        }
        Op::Matmul(ops::matmul::Matmul { input, other }) => list!(input, other),
        Op::MaxPool2d(ops::max_pool2d::MaxPool2d {
            input,
            kernel_size,
            stride,
            padding,
            dilation,
            ceil_mode,
            return_indices,
        }) => list!(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices),
        Op::BatchNorm(ops::batch_norm::BatchNorm {
            input,
            running_mean,
            running_var,
            weight,
            bias,
            training,
            momentum,
            eps,
        }) => list!(input, running_mean, running_var, weight, bias, training, momentum, eps),
        Op::Dropout(ops::dropout::Dropout { input, mask, p, training }) => list!(input, mask, p, training),
        Op::Relu(ops::relu::Relu { input }) => list!(input),
        Op::Conv2d(ops::conv2d::Conv2d { input, weight, bias, stride, padding, dilation, groups }) => {
            let padding = match padding {
                Padding::Explicit(sides) => Argument::from(*sides),
                Padding::Same => Argument::Text("same"),
                Padding::Valid => Argument::Text("valid"),
            };
            list!(input, weight, bias, stride, padding, dilation, groups)
        }
        Op::Gelu(ops::gelu::Gelu { input, approximate }) => {
            let approximate = Argument::Text(match approximate {
                GeluApproximate::None => "none",
                GeluApproximate::Tanh => "tanh",
            });
            list!(input, approximate)
        }
        Op::Linear(ops::linear::Linear { input, weight, bias }) => list!(input, weight, bias),
        Op::LayerNorm(ops::layer_norm::LayerNorm { input, weight, bias, normalized_shape, eps }) => {
            let normalized_shape = Argument::Ints(normalized_shape.iter().copied().map(Some).collect());
            list!(input, weight, bias, normalized_shape, eps)
        }
        Op::Add(ops::add::Add { input, other, alpha }) => list!(input, other, alpha),
    }
}
