//! The pattern of a finding, drawn downwards along the data flow (Figure 14): white where the result is correctly rounded, yellow
//! where it carries an error that is allowed, red where its own error is beyond what the precision allows.

use maud::{Markup, html};

use super::chain;
use super::entries::Shown;
use super::figures::{short, times};
use super::ops::{beyond, class};
use crate::campaign::rows::NodeRow;

const BOX: (i32, i32) = (180, 58);
const GAP: (i32, i32) = (14, 26);
/// Room beside the boxes for edges that pass others by.
const SIDE: i32 = 40;

/// Where a node is drawn.
struct Placed<'a> {
    node: &'a NodeRow,
    column: usize,
    row: usize,
}

impl Placed<'_> {
    fn corner(&self) -> (i32, i32) {
        (2 + self.column as i32 * (BOX.0 + GAP.0), 2 + self.row as i32 * (BOX.1 + GAP.1))
    }
}

fn placed(shown: &Shown) -> Vec<Placed<'_>> {
    // Of a node with several results the first stands for it.
    let nodes = || shown.nodes.iter().filter(|n| !n.node.contains('.'));
    let depths = chain::depths(&shown.edges, nodes().map(|n| n.node.as_str()));
    let mut placed: Vec<Placed<'_>> = Vec::new();
    for node in nodes() {
        let row = depths.get(node.node.as_str()).copied().unwrap_or(0);
        let column = placed.iter().filter(|p| p.row == row).count();
        placed.push(Placed { node, column, row });
    }
    placed
}

/// What a node's colour says.
pub(super) fn state(node: &NodeRow) -> &'static str {
    let rounded = |error: Option<f64>| error.is_none_or(|e| e <= 0.5);
    match (beyond(node), rounded(node.local_ulp) && rounded(node.accumulated_ulp)) {
        (true, _) => "red",
        (false, false) => "yellow",
        (false, true) => "white",
    }
}

/// The drawing.
pub(super) fn pattern(shown: &Shown) -> Markup {
    let placed = placed(shown);
    let at = |id: &str| placed.iter().find(|p| p.node.node == id);
    let columns = placed.iter().map(|p| p.column + 1).max().unwrap_or(1) as i32;
    let rows = placed.iter().map(|p| p.row + 1).max().unwrap_or(1) as i32;
    let passing = shown
        .edges
        .iter()
        .any(|e| matches!((at(&e.from), at(&e.to)), (Some(from), Some(to)) if to.row > from.row + 1));
    let width = 4 + columns * BOX.0 + (columns - 1) * GAP.0 + if passing { SIDE } else { 0 };
    let height = 4 + rows * BOX.1 + (rows - 1) * GAP.1;
    html! {
        svg.pattern viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img" {
            title { "the chain " "of case " (shown.finding.case.name) " with the errors of each node" }
            @for edge in &shown.edges {
                @if let (Some(from), Some(to)) = (at(&edge.from), at(&edge.to)) {
                    path d=(path(from, to, width)) {}
                }
            }
            @for p in &placed {
                @let (x, y) = p.corner();
                g class=(state(p.node)) {
                    rect x=(x) y=(y) width=(BOX.0) height=(BOX.1) {}
                    text x=(x + 8) y=(y + 17) { tspan.b { (p.node.node) } " " (p.node.dtype) }
                    text x=(x + 8) y=(y + 34) { "local " (local(p.node)) }
                    text x=(x + 8) y=(y + 50) { "accumulated " (ulp(p.node.accumulated_ulp)) }
                }
            }
        }
    }
}

/// An edge with its head: straight to the next row, past the boxes on their right side to a later one.
fn path(from: &Placed<'_>, to: &Placed<'_>, width: i32) -> String {
    let ((x0, y0), (x1, y1)) = (from.corner(), to.corner());
    if to.row <= from.row + 1 {
        let (x, y) = (x0 + BOX.0 / 2, y0 + BOX.1);
        let end = (x1 + BOX.0 / 2, y1);
        format!("M{x} {y}L{} {}m-4 -8l4 8l4 -8", end.0, end.1)
    } else {
        let (start, end) = ((x0 + BOX.0, y0 + BOX.1 / 2), (x1 + BOX.0, y1 + BOX.1 / 2));
        let side = width - 4;
        format!(
            "M{} {}C{side} {} {side} {} {} {}m8 -4l-8 4l8 4",
            start.0, start.1, start.1, end.1, end.0, end.1
        )
    }
}

fn local(node: &NodeRow) -> String {
    match (class(node), node.class_mismatches, node.bound_ratio) {
        (true, Some(n), _) => format!("{n} NaN or inf"),
        (_, _, Some(ratio)) => format!("{}, {}", ulp(node.local_ulp), times(ratio)),
        (_, _, None) => ulp(node.local_ulp),
    }
}

/// An error in ulp.
pub(super) fn ulp(error: Option<f64>) -> String {
    error.map_or_else(|| "not measured".to_owned(), |e| format!("{} ulp", short(e)))
}
