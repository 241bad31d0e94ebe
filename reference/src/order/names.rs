//! Names for known orders. A name is given only where the order it stands for, built anew, is the very tree.
//!
//! | name | order |
//! |---|---|
//! | left to right, right to left | one term after the other |
//! | pairwise by halves | the first half and the second half, each the same way |
//! | pairwise of neighbours | terms 2i and 2i + 1, then their sums likewise |
//! | pairwise across | term i and term i + ceil(n / 2), then their sums likewise |
//! | L lanes | terms i, i + L, i + 2L, … from left to right in lane i; then the lanes are joined; the terms of a last row that is not full go into the first lanes, or are added afterwards |
//! | blocks of B | B consecutive terms each, by one of the orders above; then their sums |
//! | B at a time | the sum so far and the next B terms added at once, as tensor cores do |

use std::fmt;

use super::{Tree, TreeBuilder};

/// The name of the tree's order, where it is a known one.
pub fn name(tree: &Tree) -> Option<String> {
    match tree.terms() {
        1 => return Some("a single term".to_owned()),
        2 => return Some("one addition".to_owned()),
        _ => {}
    }
    if let Some(order) = simple(tree) {
        return Some(order.to_string());
    }
    blocks(tree).or_else(|| at_once(tree))
}

/// An order without blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    LeftToRight,
    RightToLeft,
    Halves,
    Neighbours,
    Across,
    Lanes { lanes: usize, join: Join, rest: Rest },
}

/// How lanes are joined: `vectors` rows of `lanes / vectors` lanes first, then the lanes of the one row that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Join {
    vectors: usize,
    rows: Pattern,
    lanes: Pattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    LeftToRight,
    Neighbours,
    Across,
}

/// Where the terms go that do not fill a row of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    None,
    IntoLanes,
    After,
    AfterTogether,
    FirstLane,
}

impl Order {
    /// Adds these nodes.
    fn build(self, b: &mut TreeBuilder, nodes: &[usize]) -> usize {
        match self {
            Order::LeftToRight => left_to_right(b, nodes),
            Order::RightToLeft => {
                let reversed: Vec<usize> = nodes.iter().rev().copied().collect();
                left_to_right(b, &reversed)
            }
            Order::Halves => halves(b, nodes),
            Order::Neighbours => neighbours(b, nodes),
            Order::Across => across(b, nodes),
            Order::Lanes { lanes, join, rest } => {
                let full = if rest == Rest::IntoLanes { nodes.len() } else { nodes.len() / lanes * lanes };
                let (body, tail) = nodes.split_at(full);
                let sums: Vec<usize> = (0..lanes)
                    .map(|lane| {
                        let own: Vec<usize> = body.iter().skip(lane).step_by(lanes).copied().collect();
                        left_to_right(b, &own)
                    })
                    .collect();
                let first = (rest == Rest::FirstLane).then(|| left_to_right(b, tail));
                let joined = join.build(b, &sums, first);
                match rest {
                    Rest::None | Rest::IntoLanes | Rest::FirstLane => joined,
                    Rest::After => left_to_right(b, &[&[joined], tail].concat()),
                    Rest::AfterTogether => {
                        let tail = left_to_right(b, tail);
                        b.sum(vec![joined, tail])
                    }
                }
            }
        }
    }
}

impl Join {
    /// Joins lanes; `first` is added to the first one before the lanes of the last row are joined.
    fn build(self, b: &mut TreeBuilder, sums: &[usize], first: Option<usize>) -> usize {
        let width = sums.len() / self.vectors;
        let mut row: Vec<usize> = (0..width)
            .map(|lane| {
                let column: Vec<usize> = sums.iter().skip(lane).step_by(width).copied().collect();
                self.rows.build(b, &column)
            })
            .collect();
        if let Some(first) = first {
            row[0] = b.sum(vec![row[0], first]);
        }
        self.lanes.build(b, &row)
    }
}

impl Pattern {
    const ALL: [Pattern; 3] = [Pattern::Across, Pattern::Neighbours, Pattern::LeftToRight];

    fn build(self, b: &mut TreeBuilder, nodes: &[usize]) -> usize {
        match self {
            Pattern::LeftToRight => left_to_right(b, nodes),
            Pattern::Neighbours => neighbours(b, nodes),
            Pattern::Across => across(b, nodes),
        }
    }
}

fn left_to_right(b: &mut TreeBuilder, nodes: &[usize]) -> usize {
    let mut sum = nodes[0];
    for &node in &nodes[1..] {
        sum = b.sum(vec![sum, node]);
    }
    sum
}

fn halves(b: &mut TreeBuilder, nodes: &[usize]) -> usize {
    if let [only] = nodes {
        return *only;
    }
    let (left, right) = nodes.split_at(nodes.len().div_ceil(2));
    let operands = vec![halves(b, left), halves(b, right)];
    b.sum(operands)
}

fn neighbours(b: &mut TreeBuilder, nodes: &[usize]) -> usize {
    let mut row = nodes.to_vec();
    while row.len() > 1 {
        row = row.chunks(2).map(|pair| b.sum(pair.to_vec())).collect();
    }
    row[0]
}

fn across(b: &mut TreeBuilder, nodes: &[usize]) -> usize {
    let mut row = nodes.to_vec();
    while row.len() > 1 {
        let half = row.len().div_ceil(2);
        row = (0..half)
            .map(|i| if i + half < row.len() { b.sum(vec![row[i], row[i + half]]) } else { row[i] })
            .collect();
    }
    row[0]
}

/// Is the tree that of this order?
fn is(tree: &Tree, build: impl FnOnce(&mut TreeBuilder, &[usize]) -> usize) -> bool {
    let terms: Vec<usize> = (0..tree.terms()).collect();
    let mut builder = TreeBuilder::new(tree.terms());
    let root = build(&mut builder, &terms);
    builder.finish(root).is_some_and(|built| built == *tree)
}

fn simple(tree: &Tree) -> Option<Order> {
    let plain = [Order::LeftToRight, Order::RightToLeft, Order::Halves, Order::Neighbours, Order::Across];
    if let Some(order) = plain.into_iter().find(|o| is(tree, |b, t| o.build(b, t))) {
        return Some(order);
    }
    lanes_of(tree).into_iter().find(|order| is(tree, |b, t| order.build(b, t)))
}

/// The lane orders that the first sum of term 0 leaves possible.
fn lanes_of(tree: &Tree) -> Vec<Order> {
    let n = tree.terms();
    let first = tree.sums().iter().find(|sum| sum.contains(&0));
    let Some(&[0, lanes]) = first.map(Vec::as_slice) else { return Vec::new() };
    if lanes < 2 || lanes >= n {
        return Vec::new();
    }
    let mut joins = Vec::new();
    for vectors in (1..=lanes).filter(|v| lanes % v == 0) {
        // One row has no rows to join; as many rows as lanes leave nothing else.
        for rows in Pattern::ALL {
            for row in Pattern::ALL {
                if (vectors > 1 || rows == Pattern::Across) && (vectors < lanes || row == Pattern::Across) {
                    joins.push(Join { vectors, rows, lanes: row });
                }
            }
        }
    }
    let rests: &[Rest] = match n % lanes {
        0 => &[Rest::None],
        _ => &[Rest::IntoLanes, Rest::After, Rest::AfterTogether, Rest::FirstLane],
    };
    let of = |&rest: &Rest| joins.iter().map(move |&join| Order::Lanes { lanes, join, rest });
    rests.iter().flat_map(of).collect()
}

/// The tree of the terms below one node, where they are consecutive from 0.
fn below(tree: &Tree, node: usize, count: usize) -> Option<Tree> {
    let mut keep = vec![false; tree.root() + 1];
    keep[node] = true;
    for (s, sum) in tree.sums().iter().enumerate().rev() {
        if keep[tree.terms() + s] {
            sum.iter().for_each(|&operand| keep[operand] = true);
        }
    }
    if keep[count..tree.terms()].contains(&true) {
        return None;
    }
    let mut builder = TreeBuilder::new(count);
    let mut renamed: Vec<usize> = (0..tree.terms()).collect();
    for (s, sum) in tree.sums().iter().enumerate() {
        let name = match keep[tree.terms() + s] {
            true => builder.sum(sum.iter().map(|&operand| renamed[operand]).collect()),
            false => usize::MAX,
        };
        renamed.push(name);
    }
    builder.finish(renamed[node])
}

/// Most sizes of a first block that are tried.
const BLOCK_SIZES: usize = 64;

/// Blocks of consecutive terms, each by a simple order, joined from left to right, by halves or as neighbours.
fn blocks(tree: &Tree) -> Option<String> {
    let (parents, sizes) = (tree.parents(), tree.sizes());
    let least = tree.least();
    let mut candidates = Vec::new();
    let mut node = 0;
    while let Some(parent) = parents[node] {
        let next = tree.operands(parent).iter().find(|&&other| other != node);
        // A block is followed by another one, not by a term of its own.
        if let Some(&next) = next
            && sizes[node] > 1
            && least[next] == sizes[node]
            && (sizes[next] > 1 || sizes[node] + 1 == tree.terms())
        {
            candidates.push((node, sizes[node]));
        }
        node = parent;
    }
    for (node, size) in candidates.into_iter().take(BLOCK_SIZES) {
        let Some(order) = below(tree, node, size).and_then(|block| simple(&block)) else { continue };
        for (outer, words) in [
            (Order::LeftToRight, "added from left to right"),
            (Order::Halves, "added pairwise by halves"),
            (Order::Neighbours, "added pairwise as neighbours"),
        ] {
            let build = |b: &mut TreeBuilder, terms: &[usize]| {
                let sums: Vec<usize> =
                    terms.chunks(size).map(|block| order.fitting(block.len()).build(b, block)).collect();
                outer.build(b, &sums)
            };
            if is(tree, build) {
                return Some(format!("blocks of {size}, each {order}, {words}"));
            }
        }
    }
    None
}

impl Order {
    /// The same order for a shorter block: one without a full row of lanes goes from left to right.
    fn fitting(self, terms: usize) -> Order {
        match self {
            Order::Lanes { lanes, .. } if terms < lanes => Order::LeftToRight,
            Order::Lanes { lanes, join, rest: Rest::None } if !terms.is_multiple_of(lanes) => {
                Order::Lanes { lanes, join, rest: Rest::After }
            }
            other => other,
        }
    }
}

/// The sum so far and the next few terms, all at once.
fn at_once(tree: &Tree) -> Option<String> {
    let width = tree.widest().checked_sub(1)?;
    if width < 2 {
        return None;
    }
    let build = |b: &mut TreeBuilder, terms: &[usize]| {
        let mut chunks = terms.chunks(width);
        let mut sum = b.sum(chunks.next().unwrap_or(&[0]).to_vec());
        for chunk in chunks {
            sum = b.sum([&[sum], chunk].concat());
        }
        sum
    };
    if is(tree, build) {
        return Some(format!("{width} at a time, added at once to the sum so far"));
    }
    let all = is(tree, |b, terms| b.sum(terms.to_vec()));
    all.then(|| "all terms at once".to_owned())
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::LeftToRight => f.write_str("left to right"),
            Order::RightToLeft => f.write_str("right to left"),
            Order::Halves => f.write_str("pairwise by halves"),
            Order::Neighbours => f.write_str("pairwise of neighbours"),
            Order::Across => f.write_str("pairwise across"),
            Order::Lanes { lanes, join, rest } => {
                write!(f, "{lanes} lanes joined {join}")?;
                f.write_str(match rest {
                    Rest::None => "",
                    Rest::IntoLanes => ", the rest in the first lanes",
                    Rest::After => ", then the rest from left to right",
                    Rest::AfterTogether => ", then the sum of the rest",
                    Rest::FirstLane => ", the sum of the rest in the first of them",
                })
            }
        }
    }
}

impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vectors {
            1 => write!(f, "{}", self.lanes),
            v => write!(f, "as {v} vectors {}, then {}", self.rows, self.lanes),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pattern::LeftToRight => "from left to right",
            Pattern::Neighbours => "as neighbours",
            Pattern::Across => "by halves",
        })
    }
}
