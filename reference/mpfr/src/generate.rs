//! Random calls of every op: shapes, attributes and data, edge values among them.

use half::{bf16, f16};
use ulpian_spec::ops::*;
use ulpian_spec::{DType, HostTensor, Op, OpKind, Storage};

/// splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in low..=high.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() >> 1) as i64 % (high - low + 1)
    }

    pub fn chance(&mut self, one_in: i64) -> bool {
        self.range(1, one_in) == 1
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.range(0, items.len() as i64 - 1) as usize]
    }

    fn size(&mut self, high: i64) -> usize {
        self.range(1, high) as usize
    }
}

/// What the elements of a tensor look like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Profile {
    /// Full significands, exponents -3 to 3.
    Ordinary,
    /// Full significands, exponents -20 to 20.
    Wide,
    /// Few significant bits: sums and products are often ties.
    Coarse,
    /// Whole numbers up to 16: rational squares, zeros, equal elements.
    Small,
    /// Any bit pattern that is a number.
    Any,
    /// Zeros, subnormals, the greatest number, one, and their neighbours.
    Edge,
    /// Large and cancelling: one value and its negative, and small changes.
    Cancelling,
    /// One value for all.
    Constant,
}

pub const PROFILES: [Profile; 8] = [
    Profile::Ordinary,
    Profile::Wide,
    Profile::Coarse,
    Profile::Small,
    Profile::Any,
    Profile::Edge,
    Profile::Cancelling,
    Profile::Constant,
];

fn finite(dtype: DType, rng: &mut Rng, profile: Profile) -> f64 {
    let (precision, least, greatest, low) = match dtype {
        DType::F64 => (53, -1022, 1023, -1074),
        DType::F32 => (24, -126, 127, -149),
        DType::F16 => (11, -14, 15, -24),
        _ => (8, -126, 127, -133),
    };
    let sign = if rng.chance(2) { -1.0 } else { 1.0 };
    let significand =
        |rng: &mut Rng, bits: i64| ((1u64 << (bits - 1)) | (rng.next() & ((1u64 << (bits - 1)) - 1))) as f64;
    let mut full = |low: i64, high: i64| {
        let e = rng.range(low, high) - precision + 1;
        significand(rng, precision) * 2f64.powi(e as i32)
    };
    let magnitude = match profile {
        Profile::Ordinary => full(-3, 3),
        Profile::Wide => full(-13, 13),
        Profile::Coarse => {
            let e = rng.range(-4, 4) as i32;
            let bits = rng.range(1, (precision / 2).max(3));
            significand(rng, bits) * 2f64.powi(e)
        }
        Profile::Small => rng.range(0, 16) as f64,
        Profile::Any => loop {
            let x = match dtype {
                DType::F64 => f64::from_bits(rng.next()),
                DType::F32 => f64::from(f32::from_bits(rng.next() as u32)),
                DType::F16 => f64::from(f16::from_bits(rng.next() as u16)),
                _ => f64::from(bf16::from_bits(rng.next() as u16)),
            };
            if x.is_finite() {
                break x.abs();
            }
        },
        Profile::Edge => {
            let unit = 2f64.powi((low / 2) as i32) * 2f64.powi((low - low / 2) as i32);
            let max = ((1u64 << precision) - 1) as f64 * 2f64.powi((greatest - precision + 1) as i32);
            let normal = 2f64.powi(least);
            let eps = 2f64.powi((1 - precision) as i32);
            rng.pick(&[
                0.0,
                0.0,
                unit,
                2.0 * unit,
                3.0 * unit,
                normal,
                normal - unit,
                normal + unit,
                max,
                max,
                max / 2.0,
                1.0,
                1.0 + eps,
                1.0 - eps / 2.0,
                2.0,
                0.5,
                3.0,
                1.0 + 2.0 * eps,
            ])
        }
        Profile::Cancelling => {
            let e = (precision - 1) as i32;
            rng.pick(&[2f64.powi(e), 2f64.powi(e) + 1.0, 1.0, 3.0, 1.0 + 2f64.powi(-e), 2f64.powi(e.min(14))])
        }
        Profile::Constant => full(-3, 3),
    };
    sign * magnitude
}

fn store(dtype: DType, shape: &[usize], data: Vec<f64>) -> HostTensor {
    let storage = match dtype {
        DType::F64 => Storage::F64(data),
        DType::F32 => Storage::F32(data.iter().map(|&x| x as f32).collect()),
        DType::F16 => Storage::F16(data.iter().map(|&x| f16::from_f32(x as f32)).collect()),
        DType::BF16 => Storage::BF16(data.iter().map(|&x| bf16::from_f32(x as f32)).collect()),
        DType::I64 => Storage::I64(data.iter().map(|&x| x as i64).collect()),
        DType::I32 => Storage::I32(data.iter().map(|&x| x as i32).collect()),
        DType::I16 => Storage::I16(data.iter().map(|&x| x as i16).collect()),
        DType::I8 => Storage::I8(data.iter().map(|&x| x as i8).collect()),
        DType::U8 => Storage::U8(data.iter().map(|&x| x as u8).collect()),
        DType::Bool => Storage::Bool(data.iter().map(|&x| u8::from(x != 0.0)).collect()),
    };
    HostTensor::new(shape, storage).expect("one element for each position")
}

/// A tensor of this profile; `specials` lets infinities and NaN in.
pub fn tensor(dtype: DType, shape: &[usize], rng: &mut Rng, profile: Profile, specials: bool) -> HostTensor {
    let count: usize = shape.iter().product();
    if let Some((low, high)) = dtype.integer_range() {
        let near = rng.chance(2);
        let data =
            (0..count).map(|_| if near { rng.range(low.max(-20), high.min(20)) } else { rng.next() as i64 });
        return match dtype {
            DType::I64 => HostTensor::new(shape, Storage::I64(data.collect())).expect("fits"),
            _ => store(
                dtype,
                shape,
                data.map(|n| (n as f64) % 1e9).map(|x| x.clamp(low as f64, high as f64)).collect(),
            ),
        };
    }
    let constant = finite(dtype, rng, profile);
    let data = (0..count)
        .map(|_| {
            if specials && rng.chance(6) {
                rng.pick(&[
                    f64::NAN,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    -0.0,
                ])
            } else if profile == Profile::Constant {
                constant
            } else {
                finite(dtype, rng, profile)
            }
        })
        .collect();
    store(dtype, shape, data)
}

struct Make<'r> {
    dtype: DType,
    rng: &'r mut Rng,
    profile: Profile,
    specials: bool,
}

impl Make<'_> {
    fn tensor(&mut self, shape: &[usize]) -> HostTensor {
        // Operands of one call are mostly alike.
        let profile = if self.rng.chance(4) { self.rng.pick(&PROFILES) } else { self.profile };
        tensor(self.dtype, shape, self.rng, profile, self.specials)
    }

    fn optional(&mut self, shape: &[usize]) -> Option<HostTensor> {
        if self.rng.chance(3) { None } else { Some(self.tensor(shape)) }
    }

    fn other(&mut self, shape: &[usize]) -> TensorOrScalar<HostTensor> {
        if self.rng.chance(8) {
            let x = match self.dtype.is_float() {
                true => Scalar::Float(finite(DType::F64, self.rng, Profile::Ordinary)),
                false => Scalar::Int(self.rng.range(1, 9)),
            };
            return TensorOrScalar::Scalar(x);
        }
        let mut shape = shape.to_vec();
        if self.rng.chance(3) {
            let keep = self.rng.range(1, shape.len() as i64) as usize;
            shape.drain(..shape.len() - keep);
            let i = self.rng.range(0, keep as i64 - 1) as usize;
            shape[i] = 1;
        }
        TensorOrScalar::Tensor(self.tensor(&shape))
    }

    fn positive(&mut self, shape: &[usize]) -> HostTensor {
        let t = self.tensor(shape);
        if self.rng.chance(8) {
            return t;
        }
        store(self.dtype, shape, t.to_f64_vec().into_iter().map(f64::abs).collect())
    }
}

/// One random call of an op; every floating-point operand has this dtype.
pub fn call(kind: OpKind, dtype: DType, rng: &mut Rng) -> Op<HostTensor> {
    let profile = rng.pick(&PROFILES);
    let specials = rng.chance(8);
    let mut m = Make { dtype, rng, profile, specials };
    let rows = m.rng.size(6);
    let columns = m.rng.size(12);
    let eps = m.rng.pick(&[1e-5, 1e-5, 1e-12, 0.0, 1.0, 0.25, 3.0]);
    match kind {
        OpKind::Flatten => {
            let shape = [m.rng.size(3), m.rng.size(4), m.rng.size(3)];
            let start = m.rng.range(0, 2);
            let end = m.rng.range(start, 2);
            let end = if m.rng.chance(2) { end - 3 } else { end };
            Op::Flatten(flatten::Flatten { input: m.tensor(&shape), start_dim: start, end_dim: end })
        }
        OpKind::Add => {
            let alpha = if m.rng.chance(2) || !dtype.is_float() {
                Scalar::Int(m.rng.pick(&[1, 1, 2, -3]))
            } else {
                // PyTorch takes no alpha beyond the dtype's range.
                Scalar::Float(finite(DType::F64, m.rng, Profile::Coarse) % 1000.0)
            };
            Op::Add(add::Add { input: m.tensor(&[rows, columns]), other: m.other(&[rows, columns]), alpha })
        }
        OpKind::Mul => {
            Op::Mul(mul::Mul { input: m.tensor(&[rows, columns]), other: m.other(&[rows, columns]) })
        }
        OpKind::Div => {
            let modes = [None, Some(RoundingMode::Floor), Some(RoundingMode::Trunc)];
            let mut other = m.other(&[rows, columns]);
            let mut mode = m.rng.pick(&modes);
            if !dtype.is_float() {
                mode = m.rng.pick(&modes[1..]);
                if let TensorOrScalar::Tensor(t) = &other {
                    let data = t.to_f64_vec().iter().map(|&x| if x == 0.0 { 3.0 } else { x }).collect();
                    other = TensorOrScalar::Tensor(store(dtype, t.shape(), data));
                }
            }
            Op::Div(div::Div { input: m.tensor(&[rows, columns]), other, rounding_mode: mode })
        }
        OpKind::Softmax => {
            let shape = [rows, columns, m.rng.size(2)];
            Op::Softmax(softmax::Softmax { input: m.tensor(&shape), dim: m.rng.range(-3, 2), dtype: None })
        }
        OpKind::Relu => Op::Relu(relu::Relu { input: m.tensor(&[rows, columns]) }),
        OpKind::Gelu => Op::Gelu(gelu::Gelu {
            input: m.tensor(&[rows, columns]),
            approximate: m.rng.pick(&[GeluApproximate::None, GeluApproximate::Tanh]),
        }),
        OpKind::Dropout => {
            let mask: Vec<f64> = (0..rows * columns).map(|_| m.rng.range(0, 1) as f64).collect();
            let mask = m.rng.chance(6).then_some(DType::F32).map_or_else(
                || store(DType::Bool, &[rows, columns], mask.clone()),
                |d| store(d, &[rows, columns], mask.clone()),
            );
            let p = m.rng.pick(&[0.5, 0.1, 0.9, 0.0, 1.0, 0.3]);
            let training = !m.rng.chance(5);
            Op::Dropout(dropout::Dropout { input: m.tensor(&[rows, columns]), mask: Some(mask), p, training })
        }
        OpKind::Matmul => {
            let (i, k, j) = (m.rng.size(5), m.rng.size(20), m.rng.size(5));
            let (a, b): (Vec<usize>, Vec<usize>) = match m.rng.range(0, 4) {
                0 => (vec![k], vec![k]),
                1 => (vec![i, k], vec![k]),
                2 => (vec![k], vec![2, k, j]),
                3 => (vec![2, 1, i, k], vec![3, k, j]),
                _ => (vec![i, k], vec![k, j]),
            };
            Op::Matmul(matmul::Matmul { input: m.tensor(&a), other: m.tensor(&b) })
        }
        OpKind::Linear => {
            let (i, k, j) = (m.rng.size(6), m.rng.size(20), m.rng.size(6));
            Op::Linear(linear::Linear {
                input: m.tensor(&[i, k]),
                weight: m.tensor(&[j, k]),
                bias: m.optional(&[j]),
            })
        }
        OpKind::Conv2d => {
            let groups = m.rng.pick(&[1usize, 1, 2]);
            let kernel = [m.rng.size(3), m.rng.size(3)];
            let (c, o) = (m.rng.size(2), m.rng.size(2));
            let padding = match m.rng.range(0, 3) {
                0 => Padding::Same,
                1 => Padding::Valid,
                _ => Padding::Explicit([m.rng.range(0, 2), m.rng.range(0, 2)]),
            };
            // Among the integers PyTorch dilates int64 alone.
            let most = if dtype.is_float() || dtype == DType::I64 { 2 } else { 1 };
            let dilation = [m.rng.range(1, most), m.rng.range(1, most)];
            let stride =
                if padding == Padding::Same { [1, 1] } else { [m.rng.range(1, 2), m.rng.range(1, 3)] };
            let mut shape = vec![m.rng.size(2), groups * c, 4 + m.rng.size(3), 4 + m.rng.size(3)];
            if m.rng.chance(4) {
                shape.remove(0);
            }
            Op::Conv2d(conv2d::Conv2d {
                input: m.tensor(&shape),
                weight: m.tensor(&[groups * o, c, kernel[0], kernel[1]]),
                bias: m.optional(&[groups * o]),
                stride,
                padding,
                dilation,
                groups: groups as i64,
            })
        }
        OpKind::AdaptiveAvgPool2d => {
            let shape = [m.rng.size(2), m.rng.size(2), m.rng.size(7), m.rng.size(7)];
            let size =
                [Some(m.rng.range(1, 4)), if m.rng.chance(4) { None } else { Some(m.rng.range(1, 9)) }];
            Op::AdaptiveAvgPool2d(adaptive_avg_pool2d::AdaptiveAvgPool2d {
                input: m.tensor(&shape),
                output_size: size,
            })
        }
        OpKind::MaxPool2d => {
            let kernel_size = [m.rng.range(1, 3), m.rng.range(1, 3)];
            let shape = [m.rng.size(2), m.rng.size(2), 5 + m.rng.size(4), 5 + m.rng.size(4)];
            Op::MaxPool2d(max_pool2d::MaxPool2d {
                input: m.tensor(&shape),
                kernel_size,
                stride: [m.rng.range(1, 3), m.rng.range(1, 3)],
                padding: [m.rng.range(0, kernel_size[0] / 2), m.rng.range(0, kernel_size[1] / 2)],
                dilation: [m.rng.range(1, 2), m.rng.range(1, 2)],
                ceil_mode: m.rng.chance(2),
                return_indices: m.rng.chance(2),
            })
        }
        OpKind::LayerNorm => Op::LayerNorm(layer_norm::LayerNorm {
            input: m.tensor(&[rows, columns]),
            weight: m.optional(&[columns]),
            bias: m.optional(&[columns]),
            normalized_shape: vec![columns as i64],
            eps,
        }),
        OpKind::BatchNorm => {
            let c = m.rng.size(3);
            let shape = [1 + m.rng.size(2), c, m.rng.size(3), m.rng.size(3)];
            let training = m.rng.chance(2);
            let with_running = !training || m.rng.chance(2);
            Op::BatchNorm(batch_norm::BatchNorm {
                input: m.tensor(&shape),
                running_mean: with_running.then(|| m.tensor(&[c])),
                running_var: with_running.then(|| m.positive(&[c])),
                weight: m.optional(&[c]),
                bias: m.optional(&[c]),
                training,
                momentum: m.rng.pick(&[0.1, 0.1, 0.5, 1.0, 0.0]),
                // PyTorch takes no eps of 0 here.
                eps: if eps == 0.0 { 1e-5 } else { eps },
            })
        }
    }
}
