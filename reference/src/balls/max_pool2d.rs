//! max_pool2d: the maximum over windows; the padding is minus infinity.
//!
//! Radii: the maximum lies in [max (c - r), max (c + r)]. Around the greatest centre m with radius r_m that is
//! max(r_m, max over the others of (c + r) - m). Nothing is rounded but the radius.
//! Special values: an unknown element (NaN among them) leaves its window unknown; elements known to be minus infinity are passed
//! over while there are others. Positions: the first maximum's, exactly, where no other element of the window reaches into its
//! ball; otherwise unknown.

use ulpian_spec::ops::max_pool2d::MaxPool2d;

use super::ball::{Ball, UP};
use super::tensor::Balls;

pub(super) fn evaluate(args: &MaxPool2d<&Balls>, shape: &[usize]) -> Vec<Balls> {
    let windows = Windows::new(args, shape);
    let x = args.input;
    let values = Balls::generate(
        shape,
        #[inline(always)]
        |i| {
            let Some((_, greatest)) = windows.greatest(x, i) else { return Ball::UNKNOWN };
            let radius = windows.of(x, i).fold(greatest.radius, |radius, at| {
                let x = x.get(at);
                radius.max((excess(x, greatest) + x.radius) * UP)
            });
            Ball { center: greatest.center, radius }
        },
    );
    if !args.return_indices {
        return vec![values];
    }
    let positions = Balls::generate(
        shape,
        #[inline(always)]
        |i| {
            let Some((first, greatest)) = windows.greatest(x, i) else { return Ball::UNKNOWN };
            let alone = windows.of(x, i).all(|at| {
                let other = x.get(at);
                let reach = other.radius + greatest.radius;
                at == first || excess(other, greatest) + reach * UP < 0.0 || (reach == 0.0 && at > first)
            });
            if alone { Ball::exact((first % windows.plane) as f64) } else { Ball::UNKNOWN }
        },
    );
    vec![values, positions]
}

/// At least x - greatest for the centres, of which the second is not less.
#[inline(always)]
fn excess(x: Ball, greatest: Ball) -> f64 {
    x.center.sub(greatest.center).hi * (2.0 - UP)
}

/// Which elements of the input belong to an element of the result.
struct Windows {
    input: [usize; 2],
    output: [usize; 2],
    plane: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

impl Windows {
    fn new(args: &MaxPool2d<&Balls>, shape: &[usize]) -> Windows {
        let last_two = |shape: &[usize]| match *shape {
            [.., height, width] => [height, width],
            _ => unreachable!("inference demands three or four dimensions"),
        };
        let input = last_two(args.input.shape());
        Windows {
            input,
            output: last_two(shape),
            plane: input[0] * input[1],
            kernel: args.kernel_size.map(|x| x as usize),
            stride: args.stride.map(|x| x as usize),
            padding: args.padding.map(|x| x as usize),
            dilation: args.dilation.map(|x| x as usize),
        }
    }

    /// In row-major order, without those known to be minus infinity.
    #[inline(always)]
    fn of<'a>(&'a self, x: &'a Balls, i: usize) -> impl Iterator<Item = usize> + 'a {
        let [height, width] = self.input;
        let [out_h, out_w] = self.output;
        let (plane, row, column) = (i / (out_h * out_w), i / out_w % out_h, i % out_w);
        let along = move |at: usize, d: usize, size: usize| {
            (0..self.kernel[d])
                .filter_map(move |k| {
                    (at * self.stride[d] + k * self.dilation[d]).checked_sub(self.padding[d])
                })
                .filter(move |&y| y < size)
        };
        along(row, 0, height)
            .flat_map(move |y| along(column, 1, width).map(move |x| (plane * height + y) * width + x))
            .filter(|&at| !x.is_minus_infinity(at))
    }

    /// The first of the greatest centres and its ball; `None` where the window is empty or holds an unknown element.
    #[inline(always)]
    fn greatest(&self, x: &Balls, i: usize) -> Option<(usize, Ball)> {
        let mut greatest: Option<(usize, Ball)> = None;
        for at in self.of(x, i) {
            let x = x.get(at);
            if !x.is_known() {
                return None;
            }
            if greatest.is_none_or(|(_, g)| g.center.lt(x.center)) {
                greatest = Some((at, x));
            }
        }
        greatest
    }
}
