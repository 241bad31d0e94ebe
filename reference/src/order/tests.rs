use ulpian_spec::DType;

use super::{Arithmetic, RecoverError, Tree, TreeBuilder, name, recover, text};
use crate::random::Random;

fn tree(terms: usize, build: impl FnOnce(&mut TreeBuilder) -> usize) -> Tree {
    let mut builder = TreeBuilder::new(terms);
    let root = build(&mut builder);
    builder.finish(root).expect("every term is there once")
}

/// The sum in float64 by an order of its own, written independently of the trees.
type Sum = fn(&[f64]) -> f64;

fn left_to_right(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |s, &v| s + v)
}

fn right_to_left(x: &[f64]) -> f64 {
    x.iter().rev().fold(0.0, |s, &v| s + v)
}

fn halves(x: &[f64]) -> f64 {
    match x {
        [only] => *only,
        _ => {
            let (left, right) = x.split_at(x.len().div_ceil(2));
            halves(left) + halves(right)
        }
    }
}

/// Eight lanes joined by halves, then the rest.
fn lanes(x: &[f64]) -> f64 {
    let (body, rest) = x.split_at(x.len() / 8 * 8);
    let mut sums = [0.0; 8];
    for row in body.chunks(8) {
        for (s, v) in sums.iter_mut().zip(row) {
            *s += v;
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    let joined = ((a + e) + (c + g)) + ((b + f) + (d + h));
    rest.iter().fold(joined, |s, &v| s + v)
}

/// Blocks of 48 from left to right.
fn blocked(x: &[f64]) -> f64 {
    x.chunks(48).map(left_to_right).fold(0.0, |s, v| s + v)
}

/// Four terms and the sum so far, exactly but for what is below the last place of the largest, as a tensor core does.
fn four_at_once(x: &[f64]) -> f64 {
    x.chunks(4).fold(0.0, |s, chunk| {
        let all = [&[s], chunk].concat();
        let largest = all.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if largest >= M { all.iter().filter(|v| v.abs() >= M).sum() } else { all.iter().sum() }
    })
}

const M: f64 = 1e100;

/// What a probe finds for a sum.
fn probe(sum: impl Fn(&[f64]) -> f64, terms: usize) -> Result<Tree, RecoverError<String>> {
    recover(terms, |i, js| {
        Ok(js
            .iter()
            .map(|&j| {
                let mut x = vec![1.0; terms];
                (x[i], x[j]) = (M, -M);
                terms - sum(&x) as usize
            })
            .collect())
    })
}

#[test]
fn known_sums_are_recovered_and_named() {
    let known: [(Sum, usize, &str, &str); 9] = [
        (left_to_right, 100, "left to right", "[0..99]"),
        (right_to_left, 100, "right to left", "[99..0]"),
        (halves, 64, "pairwise by halves", "[[[[[[0, 1] x2 by 2] x2 by 4] x2 by 8] x2 by 16] x2 by 32]"),
        (lanes, 64, "8 lanes joined by halves", "[[[[0..56 by 8] x2 by 4] x2 by 2] x2 by 1]"),
        (
            lanes,
            67,
            "8 lanes joined by halves, then the rest from left to right",
            "[[[[[0..56 by 8] x2 by 4] x2 by 2] x2 by 1], 64..66]",
        ),
        (
            blocked,
            4 * 48 + 5,
            "blocks of 48, each left to right, added from left to right",
            "[[0..47] x4 by 48, [192..196]]",
        ),
        (four_at_once, 12, "4 at a time, added at once to the sum so far", "{{{0..3}, 4..7}, 8..11}"),
        (left_to_right, 2, "one addition", "[0, 1]"),
        (left_to_right, 1, "a single term", "0"),
    ];
    for (sum, terms, called, written) in known {
        let tree = probe(sum, terms).expect("the sizes are those of a tree");
        assert_eq!(name(&tree).as_deref(), Some(called));
        assert_eq!(text(&tree), written, "{called}");
    }
}

#[test]
fn depth_and_width_are_those_of_the_order() {
    for (sum, terms, depth, widest) in [
        (left_to_right as Sum, 100, 99, 2),
        (halves, 64, 6, 2),
        (lanes, 64, 10, 2),
        (four_at_once, 12, 3, 5),
        (left_to_right, 1, 0, 0),
    ] {
        let tree = probe(sum, terms).expect("a tree");
        assert_eq!((tree.depth(), tree.widest()), (depth, widest));
    }
}

#[test]
fn an_order_without_a_name_has_none() {
    let odd = tree(6, |b| {
        let x = b.sum(vec![0, 3]);
        let y = b.sum(vec![x, 1]);
        let z = b.sum(vec![2, 5]);
        let w = b.sum(vec![y, z]);
        b.sum(vec![w, 4])
    });
    assert_eq!(name(&odd), None);
    assert_eq!(text(&odd), "[0, 3, 1, [2, 5], 4]");
}

fn below(random: &mut Random, n: usize) -> usize {
    (random.bits() >> 11) as usize % n
}

/// A random tree over the terms in random places, with nodes of up to `widest` operands.
fn random_tree(random: &mut Random, terms: usize, widest: usize) -> Tree {
    tree(terms, |b| {
        let mut nodes: Vec<usize> = (0..terms).collect();
        while nodes.len() > 1 {
            let width = (2 + below(random, widest - 1)).min(nodes.len());
            let operands = (0..width)
                .map(|_| {
                    let place = below(random, nodes.len());
                    nodes.swap_remove(place)
                })
                .collect();
            nodes.push(b.sum(operands));
        }
        nodes[0]
    })
}

#[test]
fn random_trees_are_recovered_exactly() {
    let mut random = Random(7);
    for round in 0..300 {
        let terms = 1 + below(&mut random, 60);
        let widest = if round % 2 == 0 { 2 } else { 2 + below(&mut random, 6) };
        let known = random_tree(&mut random, terms, widest);
        let found = recover(terms, |i, js| Ok::<_, ()>(known.joint_sizes(i, js)));
        assert_eq!(found.as_ref(), Ok(&known));
        if let Some(called) = name(&known) {
            assert!(!called.is_empty());
        }
    }
}

#[test]
fn sizes_of_no_tree_are_refused() {
    let wide = |_: usize, js: &[usize]| Ok::<_, ()>(vec![2; js.len()]);
    assert!(matches!(recover(5, wide), Err(RecoverError::Inconsistent { .. })));
    let beyond = |_: usize, js: &[usize]| Ok::<_, ()>(vec![9; js.len()]);
    assert!(recover(5, beyond).is_err());
    let fewer = |_: usize, _: &[usize]| Ok::<_, ()>(vec![2]);
    assert!(recover(5, fewer).is_err());
    assert!(recover(0, wide).is_err());
    assert_eq!(recover(3, |_, _| Err("no answer")), Err(RecoverError::Probe("no answer")));
}

#[test]
fn a_tree_holds_every_term_once() {
    let finish = |operands: Vec<Vec<usize>>, root: usize| {
        let builder = TreeBuilder { terms: 3, sums: operands };
        builder.finish(root)
    };
    assert!(finish(vec![vec![0, 1], vec![3, 2]], 4).is_some());
    assert!(finish(vec![vec![0, 1], vec![3, 1]], 4).is_none());
    assert!(finish(vec![vec![0, 1]], 3).is_none());
    assert!(finish(vec![vec![0, 9]], 3).is_none());
    assert!(finish(vec![vec![0, 1], vec![3, 2]], 9).is_none());
}

#[test]
fn arithmetics_round_as_they_say() {
    let tree = probe(left_to_right, 3).expect("a tree");
    // The product of the second pair is 1 + 2^-11 + 2^-24: float32 drops the last bit, an FMA keeps it.
    let (e, one) = (f64::from(1.0f32 + 1.0 / 4096.0), 1.0);
    let (a, b) = ([-1.0, e, 0.0], [one, e, one]);
    let dot = |by: Arithmetic| by.dot(&tree, DType::F32, &a, &b, None).expect("an arithmetic of float32");
    let exact = e * e - 1.0;
    assert_eq!(dot(Arithmetic::Fused), exact);
    assert_eq!(dot(Arithmetic::Float64Sums), exact);
    assert_eq!(dot(Arithmetic::Rounded), f64::from((e * e) as f32) - 1.0);
    assert_ne!(dot(Arithmetic::Rounded), exact);
    assert_eq!(Arithmetic::Fused.dot(&tree, DType::F64, &a, &b, None), Some(exact));

    // 2048 + 1 is a tie in float16; kept in float32, two of them count.
    let (a, b) = ([2048.0, 1.0, 1.0], [1.0; 3]);
    assert_eq!(Arithmetic::Float32Sums.dot(&tree, DType::F16, &a, &b, None), Some(2050.0));
    assert_eq!(Arithmetic::InputSums.dot(&tree, DType::F16, &a, &b, None), Some(2048.0));
    assert_eq!(Arithmetic::InputSums.sum(&tree, DType::F16, &a), Some(2048.0));
    assert_eq!(Arithmetic::Fused.dot(&tree, DType::F16, &a, &b, None), None);

    let at_once = probe(four_at_once, 8).expect("a tree");
    assert_eq!(Arithmetic::Fused.dot(&at_once, DType::F32, &[0.0; 8], &[0.0; 8], None), None);
}

#[test]
fn evaluating_the_recovered_tree_gives_the_bits_of_the_sum() {
    let mut random = Random(3);
    for (sum, terms) in [(lanes as Sum, 75), (blocked, 200), (halves, 77), (right_to_left, 50)] {
        let tree = probe(sum, terms).expect("a tree");
        let x: Vec<f64> = (0..terms).map(|_| f64::from(random.unit())).collect();
        assert_eq!(Arithmetic::Rounded.sum(&tree, DType::F64, &x), Some(sum(&x)));
        let ones = vec![1.0; terms];
        assert_eq!(Arithmetic::Fused.dot(&tree, DType::F64, &x, &ones, None), Some(sum(&x)));
    }
}
