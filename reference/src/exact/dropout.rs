//! dropout: in training x * (mask / (1 - p)), p the exact float64; otherwise x.
//!
//! Special values: those of the product: a dropped infinity or NaN is NaN, as in PyTorch 2.11 on CPU. A dropped number is a zero
//! of free sign. p = 1 drops everything (x * 0), p = 0 nothing, whatever the mask. Without a mask and with 0 < p < 1 the result
//! depends on chance.

use ulpian_spec::ops::dropout::Dropout;

use super::{Context, Source, Value};

pub(super) fn element(args: &Dropout<Source<'_>>, index: usize, cx: &Context<'_>) -> Value {
    let x = cx.get(&args.input, index);
    if !args.training || args.p == 0.0 {
        return x;
    }
    let kept = if args.p == 1.0 {
        Value::ZERO
    } else {
        match &args.mask {
            Some(mask) => cx.get(mask, index),
            None => return cx.undetermined(),
        }
    };
    if kept.is_zero() {
        return match x.mul(&Value::ZERO, cx.prec) {
            Value::Zero { sign, .. } => Value::Zero { sign, free: true },
            other => other,
        };
    }
    let keep = Value::from_int(1).sub(&Value::from_f64(args.p), cx.prec);
    cx.finish(x.mul(&kept.div(&keep, cx.prec), cx.prec))
}
