//! dropout: the identity in evaluation and with p = 0; x mask / (1 - p) in training.
//!
//! 1 - p is a double-double exactly. With p = 1 everything is dropped, mask or not. A dropped element is x * 0: zero with x's sign.

use ulpian_spec::ops::dropout::Dropout;

use super::ball::Ball;
use super::tensor::Balls;
use crate::dd::Dd;

pub(super) fn evaluate(args: &Dropout<&Balls>) -> Option<Balls> {
    if !args.training || args.p == 0.0 {
        return Some(args.input.clone());
    }
    let keep = Ball::new(Dd::sum(1.0, -args.p), 0.0);
    let all_dropped = args.p == 1.0;
    if args.mask.is_none() && !all_dropped {
        return None;
    }
    Some(Balls::generate(
        args.input.shape(),
        #[inline(always)]
        |i| {
            let x = args.input.get(i);
            let kept = !all_dropped && args.mask.is_some_and(|mask| mask.get(i).center.hi != 0.0);
            if kept {
                x.div(keep)
            } else if x.is_known() {
                Ball::exact(0.0f64.copysign(x.center.hi))
            } else {
                Ball::UNKNOWN
            }
        },
    ))
}
