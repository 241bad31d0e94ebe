//! matmul: PyTorch's rules for one-dimensional and batched operands over [`super::dot`]'s product.
//!
//! A one-dimensional input is a row, a one-dimensional other a column; batch dimensions broadcast.

use ulpian_spec::ops::matmul::Matmul;

use super::Width;
use super::broadcast::Broadcast;
use super::dot::{self, Columns, Rows, product};
use super::tensor::Balls;
use super::wide::{self, Norms};
use crate::fast::gemm::Matrix;

pub(super) fn evaluate(args: &Matmul<&Balls>, shape: &[usize], width: Width) -> Balls {
    let (a, b) = (args.input, args.other);
    let (a_batch, m, k) = match a.shape() {
        [k] => (&[][..], 1, *k),
        [batch @ .., m, k] => (batch, *m, *k),
        [] => unreachable!("inference rejects 0-dimensional operands"),
    };
    let (b_batch, n) = match b.shape() {
        [_] => (&[][..], 1),
        [batch @ .., _, n] => (batch, *n),
        [] => unreachable!("inference rejects 0-dimensional operands"),
    };
    let trailing = usize::from(a.shape().len() > 1) + usize::from(b.shape().len() > 1);
    let batch = &shape[..shape.len() - trailing];
    let (of_a, of_b) = (Broadcast::new(batch, a_batch), Broadcast::new(batch, b_batch));
    // Inputs of one dimension or one shared matrix: the batch is more rows of one product.
    let (batches, rows) = if b_batch.is_empty() && a_batch == batch {
        (1, m * batch.iter().product::<usize>())
    } else {
        (batch.iter().product(), m)
    };
    let starts = |i: usize| {
        if batches == 1 { (0, 0) } else { (of_a.index(i) * m * k, of_b.index(i) * k * n) }
    };
    if width == Width::Wide {
        let (mut hi, mut radius) = (vec![0.0; batches * rows * n], vec![0.0; batches * rows * n]);
        let (a_rest, b_rest) = (wide::rest(a), wide::rest(b));
        let underflow = wide::underflows(a, b);
        for i in 0..batches {
            let (a_start, b_start) = starts(i);
            let of_rows = |data: &[f64]| wide::squares(&data[a_start..], rows, k, [k, 1]);
            let of_columns = |data: &[f64]| wide::squares(&data[b_start..][..k * n], n, k, [1, n]);
            let left = Norms::of_squares(of_rows(a.highs()), a_rest.as_deref().map(of_rows), k);
            let right = Norms::of_squares(of_columns(b.highs()), b_rest.as_deref().map(of_columns), k);
            let problem = wide::Problem {
                a: Matrix { data: &a.highs()[a_start..], row_stride: k, col_stride: 1 },
                b: &Matrix { data: &b.highs()[b_start..], row_stride: n, col_stride: 1 },
                left: &left,
                right: &right,
                rows,
                columns: n,
                terms: k,
                bias: wide::Bias::None,
                underflow,
                bands: rayon::current_num_threads(),
            };
            let to = i * rows * n..(i + 1) * rows * n;
            wide::product(&problem, &mut hi[to.clone()], &mut radius[to]);
        }
        return Balls::of_parts(shape, hi, radius);
    }
    let mut out = Balls::zeros(shape);
    let (hi, lo, radius) = out.parts_mut();
    let smallest = dot::smallest(b);
    for i in 0..batches {
        let (a_start, b_start) = starts(i);
        let to = i * rows * n..(i + 1) * rows * n;
        product(
            Rows::of(a, a_start, rows * k, k),
            &Columns {
                tensor: b,
                smallest,
                count: n,
                index: |row: usize, column: usize| Some(b_start + row * n + column),
            },
            &mut hi[to.clone()],
            &mut lo[to.clone()],
            &mut radius[to],
        );
    }
    out
}
