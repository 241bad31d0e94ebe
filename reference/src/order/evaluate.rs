//! A sum or a dot product computed in a given order, in a named arithmetic.
//!
//! | arithmetic | products | sums | for inputs in |
//! |---|---|---|---|
//! | fused | not rounded where a product is added to a sum (FMA); of two products, the later one | own precision | float32, float64 |
//! | rounded | rounded, then added | own precision | float32, float64 |
//! | float64 sums | exact | float64, rounded once at the end | float32 |
//! | float32 sums | exact in float32 | float32, rounded once at the end | float16, bfloat16 |
//! | 16-bit sums | exact in float32, the first one rounded | rounded to 16 bits after each addition | float16, bfloat16 |
//!
//! Every operation is IEEE's, rounded to nearest even. Products of two float16 or bfloat16 numbers have at most 22 significand
//! bits and are exact in float32 but for those below its least numbers.

use half::{bf16, f16};
use ulpian_spec::DType;

use super::Tree;

/// How the products of a dot product and their sums are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Fused multiply-add wherever a product joins a sum.
    Fused,
    /// Products rounded, then added.
    Rounded,
    /// Exact products, sums in float64.
    Float64Sums,
    /// Exact products, sums in float32.
    Float32Sums,
    /// Exact products, each sum rounded to the inputs' 16 bits.
    InputSums,
}

impl Arithmetic {
    /// Those that inputs of a dtype may be computed in; none for dtypes that are not floating-point.
    pub fn of(dtype: DType) -> &'static [Arithmetic] {
        match dtype {
            DType::F64 => &[Arithmetic::Fused, Arithmetic::Rounded],
            DType::F32 => &[Arithmetic::Fused, Arithmetic::Rounded, Arithmetic::Float64Sums],
            DType::F16 | DType::BF16 => &[Arithmetic::Float32Sums, Arithmetic::InputSums],
            _ => &[],
        }
    }

    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::Fused => "fused multiply-add",
            Arithmetic::Rounded => "rounded products",
            Arithmetic::Float64Sums => "float64 sums",
            Arithmetic::Float32Sums => "float32 sums",
            Arithmetic::InputSums => "16-bit sums",
        }
    }

    /// The dot product of `a` and `b`, whose elements are numbers of `dtype`, rounded to it; the term `addend`, if there is one, is
    /// no product but a number of its own, times 1. `None` where a node adds more than two numbers at once, which no IEEE
    /// operation does, or where this is no arithmetic for the dtype.
    pub fn dot(self, tree: &Tree, dtype: DType, a: &[f64], b: &[f64], addend: Option<usize>) -> Option<f64> {
        let fold = Fold { tree, addend };
        let single = |k: usize| (a[k] as f32, b[k] as f32);
        let product = |k: usize| {
            let (a, b) = single(k);
            a * b
        };
        match (self, dtype) {
            (Arithmetic::Fused, DType::F64) => {
                fold.run(|k| a[k] * b[k], |x, y| x + y, |s, k| a[k].mul_add(b[k], s))
            }
            (Arithmetic::Rounded, DType::F64) => {
                fold.run(|k| a[k] * b[k], |x, y| x + y, |s, k| s + a[k] * b[k])
            }
            (Arithmetic::Fused, DType::F32) => {
                let fuse = |s: f32, k| {
                    let (a, b) = single(k);
                    a.mul_add(b, s)
                };
                fold.run(product, |x, y| x + y, fuse).map(f64::from)
            }
            (Arithmetic::Rounded, DType::F32) => {
                fold.run(product, |x, y| x + y, |s, k| s + product(k)).map(f64::from)
            }
            (Arithmetic::Float64Sums, DType::F32) => {
                let sum = fold.run(|k| a[k] * b[k], |x, y| x + y, |s, k| s + a[k] * b[k])?;
                Some(f64::from(sum as f32))
            }
            (Arithmetic::Float32Sums, DType::F16 | DType::BF16) => {
                let sum = fold.run(product, |x, y| x + y, |s, k| s + product(k))?;
                Some(f64::from(to_16_bits(dtype, sum)))
            }
            (Arithmetic::InputSums, DType::F16 | DType::BF16) => {
                let to = |x: f32| to_16_bits(dtype, x);
                let sum = fold.run(|k| to(product(k)), |x, y| to(x + y), |s, k| to(s + product(k)))?;
                Some(f64::from(sum))
            }
            _ => None,
        }
    }

    /// The sum of `x`, whose elements are numbers of `dtype`, before any rounding to it. `None` as for [`Arithmetic::dot`].
    pub fn sum(self, tree: &Tree, dtype: DType, x: &[f64]) -> Option<f64> {
        let fold = Fold { tree, addend: None };
        let single = |k: usize| x[k] as f32;
        match (self, dtype) {
            (Arithmetic::Rounded, DType::F64) | (Arithmetic::Float64Sums, DType::F32) => {
                fold.run(|k| x[k], |x, y| x + y, |s, k| s + x[k])
            }
            (Arithmetic::Rounded, DType::F32) | (Arithmetic::Float32Sums, DType::F16 | DType::BF16) => {
                fold.run(single, |x, y| x + y, |s, k| s + single(k)).map(f64::from)
            }
            (Arithmetic::InputSums, DType::F16 | DType::BF16) => {
                let to = |x: f32| to_16_bits(dtype, x);
                fold.run(single, |x, y| to(x + y), |s, k| to(s + single(k))).map(f64::from)
            }
            _ => None,
        }
    }
}

fn to_16_bits(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f32(),
        _ => bf16::from_f32(x).to_f32(),
    }
}

/// A tree to be computed.
struct Fold<'a> {
    tree: &'a Tree,
    addend: Option<usize>,
}

impl Fold<'_> {
    /// `fuse` adds a term to a sum; of two terms the first is taken as the sum, or the one that is no product.
    fn run<T: Copy>(
        &self,
        term: impl Fn(usize) -> T,
        add: impl Fn(T, T) -> T,
        fuse: impl Fn(T, usize) -> T,
    ) -> Option<T> {
        let terms = self.tree.terms();
        let mut sums: Vec<T> = Vec::with_capacity(self.tree.sums().len());
        let value = |sums: &[T], node: usize| match node.checked_sub(terms) {
            Some(s) => sums[s],
            None => term(node),
        };
        for operands in self.tree.sums() {
            let &[x, y] = &operands[..] else { return None };
            let sum = match (x < terms, y < terms) {
                (true, true) if self.addend == Some(y) => fuse(value(&sums, y), x),
                (_, true) => fuse(value(&sums, x), y),
                (true, false) => fuse(value(&sums, y), x),
                (false, false) => add(value(&sums, x), value(&sums, y)),
            };
            sums.push(sum);
        }
        Some(sums.last().copied().unwrap_or_else(|| term(0)))
    }
}
