//! The arithmetic an op is documented to compute in, and the roundings it makes.

use ulpian_reference::round;
use ulpian_spec::DType;
use ulpian_spec::dtype::FloatFormat;

/// Relative widening of every bound for the roundings of its own computation.
const WIDEN: f64 = 1.0 + 1.0 / (1u64 << 40) as f64;

/// How an op with results of one dtype computes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arithmetic {
    /// Unit roundoff of the arithmetic.
    pub u: f64,
    /// Half the least subnormal number of the arithmetic: the error of a rounding that underflows.
    pub eta: f64,
    /// Greatest finite number of the arithmetic.
    pub max: f64,
    /// Unit roundoff of the result's dtype.
    pub u_out: f64,
    /// Half the least subnormal number of the result's dtype.
    pub eta_out: f64,
    /// The result's format; `None` for integers and bool.
    pub out: Option<FloatFormat>,
    /// The result is stored narrower than it is computed.
    pub narrow: bool,
}

impl Arithmetic {
    /// That of results of dtype `out`: float64 for float64, float32 for the narrower floats, exact for integers and bool.
    pub(crate) fn of(out: DType) -> Arithmetic {
        let Some(format) = out.float_format() else {
            return Arithmetic {
                u: 0.0,
                eta: 0.0,
                max: f64::MAX,
                u_out: 0.0,
                eta_out: 0.0,
                out: None,
                narrow: false,
            };
        };
        let compute = if out == DType::F64 { DType::F64 } else { DType::F32 };
        let computed = compute.float_format().unwrap_or(format);
        Arithmetic {
            u: computed.unit_roundoff(),
            eta: half_least(computed),
            max: round::max_finite(computed),
            u_out: format.unit_roundoff(),
            eta_out: half_least(format),
            out: Some(format),
            narrow: compute != out,
        }
    }

    /// gamma_n = n u / (1 - n u); infinite from n u = 1 on.
    pub(crate) fn gamma(&self, n: f64) -> f64 {
        let nu = n * self.u;
        if nu < 1.0 { nu / (1.0 - nu) } else { f64::INFINITY }
    }

    /// The bound on the stored result y where `error` bounds the computed one's.
    pub(crate) fn stored(&self, y: f64, error: f64) -> f64 {
        if !y.is_finite() {
            return 0.0;
        }
        let rounding = if self.narrow { self.u_out * (y.abs() + error) + self.eta_out } else { 0.0 };
        (error + rounding) * WIDEN
    }

    /// Error of converting `v` to the result's dtype; 0 where it is representable there.
    pub(crate) fn conversion(&self, v: f64) -> f64 {
        match self.out {
            Some(format) if round::round_f64(format, v) != v && v.is_finite() => {
                self.u_out * v.abs() + self.eta_out
            }
            _ => 0.0,
        }
    }
}

/// Half the least subnormal number; for float64, where that is no number, the least itself.
fn half_least(format: FloatFormat) -> f64 {
    round::exp2i(i64::from(format.least_exponent()) - 1).max(f64::from_bits(1))
}
