//! Where a pattern lies in the graphs.
//!
//! Of the occurrences in a graph that agree along the right-most path one is kept, sorted by the images along the path. The list
//! of a graph is either *complete*, or, where it would be longer than a cap, a few of them as *hints*.
//!
//! What grows from a complete list is complete: an occurrence of the grown pattern holds one of the pattern, which agrees along
//! the path with a kept one; the grown pattern's nodes off the path are taken from a kept occurrence where they leave the new
//! node's image free, and searched anew otherwise. What grows from hints holds if a hint grows; if none does, the graph is searched.

use super::code::{Pattern, Step};
use super::host::Host;
use super::matching::{UNSET, along_path, complete};
use super::types::{TypeId, Types};

/// How many occurrences stand for an incomplete list.
const HINTS: usize = 8;
/// How many occurrences a search collects before it leaves it at hints.
const MOST_SEARCHED: usize = 64;

/// Where a pattern lies.
#[derive(Debug)]
pub(super) struct Projection {
    /// The graphs that hold it, ascending.
    pub(super) entries: Vec<Entry>,
    /// The occurrences, row after row, each with the images of all the pattern's nodes.
    images: Vec<u32>,
    /// Nodes of the pattern.
    width: usize,
}

/// A graph that holds the pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) graph: u32,
    /// The first of its rows.
    first: usize,
    /// How many rows it has.
    rows: usize,
    pub(super) complete: bool,
}

impl Projection {
    fn empty(width: usize) -> Projection {
        Projection { entries: Vec::new(), images: Vec::new(), width }
    }

    /// The occurrences in a graph that holds the pattern.
    pub(super) fn rows(&self, entry: &Entry) -> std::slice::ChunksExact<'_, u32> {
        self.images[entry.first * self.width..(entry.first + entry.rows) * self.width]
            .chunks_exact(self.width)
    }

    /// Of a pattern whose code has one step.
    pub(super) fn of_first(pattern: &Pattern, hosts: &[Host], types: &Types, cap: usize) -> Projection {
        let mut projection = Projection::empty(pattern.len());
        let step = pattern.steps[0];
        for (graph, host) in (0u32..).zip(hosts) {
            if !types.has(graph, step.t) {
                continue;
            }
            for node in host.with_label(pattern.labels[0]) {
                for &other in host.along(node, step.t).iter().filter(|&&o| (o == node) == step.is_loop()) {
                    projection.images.push(node);
                    if !step.is_loop() {
                        projection.images.push(other);
                    }
                }
            }
            projection.close(graph, true, cap);
        }
        projection
    }

    /// Makes the rows beyond those of earlier entries the rows of `graph`, thinned to hints where they are too many or not all.
    fn close(&mut self, graph: u32, complete: bool, cap: usize) {
        let first = self.entries.last().map_or(0, |e| e.first + e.rows);
        let mut rows = self.images.len() / self.width - first;
        if rows == 0 {
            return;
        }
        let complete = complete && rows <= cap;
        if !complete && rows > HINTS {
            for hint in 0..HINTS {
                let from = first + hint * rows / HINTS;
                self.images
                    .copy_within(from * self.width..(from + 1) * self.width, (first + hint) * self.width);
            }
            rows = HINTS;
            self.images.truncate((first + rows) * self.width);
        }
        self.entries.push(Entry { graph, first, rows, complete });
    }
}

/// What a projection is grown with.
pub(super) struct Growth<'a> {
    pub(super) hosts: &'a [Host],
    pub(super) types: &'a Types,
    /// The longest complete list.
    pub(super) cap: usize,
    /// The least support that is of interest.
    pub(super) support: usize,
}

impl Growth<'_> {
    /// Where the pattern lies, whose last step was taken from a pattern with this projection and right-most path; none if fewer
    /// graphs hold it than are of interest.
    pub(super) fn grow(&self, before: &Projection, path: &[u8], pattern: &Pattern) -> Option<Projection> {
        let step = *pattern.steps.last()?;
        let mut grown = Projection::empty(pattern.len());
        for (i, entry) in before.entries.iter().enumerate() {
            if grown.entries.len() + before.entries.len() - i < self.support {
                return None;
            }
            let host = &self.hosts[entry.graph as usize];
            if !self.types.has(entry.graph, step.t) {
                continue;
            }
            let filled = grown.images.len();
            let all = if step.is_forward() {
                self.forward(before, entry, path, pattern, &mut grown.images)
            } else {
                backward(host, before, entry, step, &mut grown.images);
                true
            };
            let mut complete = entry.complete && all;
            if grown.images.len() == filled && !entry.complete {
                complete = along_path(host, pattern, MOST_SEARCHED, &mut grown.images);
                sort_rows(&mut grown.images[filled..], &pattern.path, pattern.len());
            }
            grown.close(entry.graph, complete, self.cap);
        }
        (grown.entries.len() >= self.support).then_some(grown)
    }

    /// Appends the rows that grow by the pattern's last step, a forward one. Whether these are all that grow from there.
    fn forward(
        &self,
        before: &Projection,
        entry: &Entry,
        path: &[u8],
        pattern: &Pattern,
        images: &mut Vec<u32>,
    ) -> bool {
        let host = &self.hosts[entry.graph as usize];
        let Some(&Step { from, t, .. }) = pattern.steps.last() else { return true };
        let kept = &path[..=path.iter().position(|&n| n == from).unwrap_or(path.len() - 1)];
        let agree = |a: &[u32], b: &[u32]| kept.iter().all(|&n| a[usize::from(n)] == b[usize::from(n)]);
        let mut rows = before.rows(entry);
        let end = images.len() + self.cap * pattern.len();
        while let Some(row) = rows.clone().next() {
            let group = rows.clone().take_while(|other| agree(row, other)).count();
            let alike = rows.clone().take(group);
            rows.nth(group - 1);
            self.forward_from(host, (row, alike), kept, (usize::from(from), t), pattern, images);
            if images.len() > end {
                return false;
            }
        }
        true
    }

    /// Appends the rows that grow from a group of rows that agree on the part of the path that is kept.
    fn forward_from<'r>(
        &self,
        host: &Host,
        (row, alike): (&[u32], impl Iterator<Item = &'r [u32]> + Clone),
        kept: &[u8],
        (from, t): (usize, TypeId),
        pattern: &Pattern,
        images: &mut Vec<u32>,
    ) {
        if !host.may_be(row[from], pattern.signatures[from]) {
            return;
        }
        for &new in host.along(row[from], t) {
            if kept.iter().any(|&n| row[usize::from(n)] == new) {
                continue;
            }
            if let Some(free) = alike.clone().find(|r| !r.contains(&new)) {
                images.extend_from_slice(free);
                images.push(new);
                continue;
            }
            let mut image = vec![UNSET; pattern.len()];
            kept.iter().for_each(|&n| image[usize::from(n)] = row[usize::from(n)]);
            image[pattern.len() - 1] = new;
            if complete(host, pattern, &mut image) {
                images.extend(image);
            }
        }
    }
}

/// Appends the rows that have the edge of a backward step.
fn backward(host: &Host, before: &Projection, entry: &Entry, step: Step, images: &mut Vec<u32>) {
    for row in before.rows(entry) {
        if host.has_edge(row[usize::from(step.from)], step.t, row[usize::from(step.to)]) {
            images.extend_from_slice(row);
        }
    }
}

/// Sorts rows by the images along the path.
fn sort_rows(images: &mut [u32], path: &[u8], width: usize) {
    let mut rows: Vec<Vec<u32>> = images.chunks_exact(width).map(<[u32]>::to_vec).collect();
    rows.sort_unstable_by(|a, b| {
        let along = |row: &Vec<u32>| path.iter().map(|&n| row[usize::from(n)]).collect::<Vec<_>>();
        along(a).cmp(&along(b))
    });
    for (to, row) in images.chunks_exact_mut(width).zip(rows) {
        to.copy_from_slice(&row);
    }
}
