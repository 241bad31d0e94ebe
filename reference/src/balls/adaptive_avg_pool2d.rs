//! adaptive_avg_pool2d: the mean over windows [floor(i H / o), ceil((i + 1) H / o)) in both directions.
//!
//! Radii: the mean of the radii, a sum's rounding per term and one quotient's.

use ulpian_spec::ops::adaptive_avg_pool2d::AdaptiveAvgPool2d;

use super::ball::Ball;
use super::tensor::Balls;

pub(super) fn evaluate(args: &AdaptiveAvgPool2d<&Balls>, shape: &[usize]) -> Balls {
    let [.., height, width] = *args.input.shape() else {
        unreachable!("inference demands three or four dimensions")
    };
    let [.., out_h, out_w] = *shape else { unreachable!("inference gives three or four dimensions") };
    Balls::generate(
        shape,
        #[inline(always)]
        |i| {
            let (plane, row, column) = (i / (out_h * out_w), i / out_w % out_h, i % out_w);
            let rows = row * height / out_h..((row + 1) * height).div_ceil(out_h);
            let columns = column * width / out_w..((column + 1) * width).div_ceil(out_w);
            let count = rows.len() * columns.len();
            let mut sum = Ball::ZERO;
            for y in rows {
                for x in columns.clone() {
                    sum = sum.add(args.input.get((plane * height + y) * width + x));
                }
            }
            sum.div(Ball::exact(count as f64))
        },
    )
}
