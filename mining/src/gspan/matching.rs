//! Search of a graph for occurrences of a pattern.

use super::code::Pattern;
use super::host::Host;

/// A node that has no image yet.
pub(super) const UNSET: u32 = u32::MAX;

/// Gives images to all nodes that have none; every such node was met from one that has an image or gets one here. `false`, and
/// nothing changed, if that cannot be done.
pub(super) fn complete(host: &Host, pattern: &Pattern, image: &mut [u32]) -> bool {
    let Some(node) = image.iter().position(|&n| n == UNSET) else { return true };
    let after = twin_before(pattern, image, node).map_or(0, |twin| image[twin] + 1);
    let candidates = candidates(host, pattern, image, node);
    for &candidate in &candidates[candidates.partition_point(|&c| c < after)..] {
        if fits(host, pattern, image, node, candidate) {
            image[node] = candidate;
            if complete(host, pattern, image) {
                return true;
            }
            image[node] = UNSET;
        }
    }
    false
}

/// The leaf before this one that it can change places with, both off the right-most path: images of such are taken in ascending
/// order only.
fn twin_before(pattern: &Pattern, image: &[u32], node: usize) -> Option<usize> {
    let beside = &pattern.beside[node];
    let off_path = |n: usize| !pattern.path.iter().any(|&p| usize::from(p) == n);
    let twin = |&n: &usize| pattern.beside[n] == *beside && image[n] != UNSET && off_path(n);
    if beside.len() == 1 { (0..node).rev().find(twin) } else { None }
}

/// Where an edge from a node with an image leads: the fewest of all such.
fn candidates<'h>(host: &'h Host, pattern: &Pattern, image: &[u32], node: usize) -> &'h [u32] {
    let mut fewest: Option<&[u32]> = None;
    for &(other, _) in pattern.beside[node].iter().filter(|(o, _)| image[usize::from(*o)] != UNSET) {
        for &(back, t) in &pattern.beside[usize::from(other)] {
            if usize::from(back) == node {
                let along = host.along(image[usize::from(other)], t);
                if fewest.is_none_or(|f| along.len() < f.len()) {
                    fewest = Some(along);
                }
            }
        }
    }
    fewest.unwrap_or_default()
}

/// Whether `candidate` can be the image of `node`, given the images there are.
fn fits(host: &Host, pattern: &Pattern, image: &[u32], node: usize, candidate: u32) -> bool {
    host.may_be(candidate, pattern.signatures[node])
        && !image.contains(&candidate)
        && pattern.beside[node].iter().all(|&(other, t)| {
            let other = usize::from(other);
            let there = if other == node { candidate } else { image[other] };
            there == UNSET || host.has_edge(candidate, t, there)
        })
}

/// Occurrences of the pattern, one for each choice of images along the right-most path, appended row after row; it stops after
/// `most`. Whether these are all.
///
/// The path is laid from its end, where the newest edge is.
pub(super) fn along_path(host: &Host, pattern: &Pattern, most: usize, rows: &mut Vec<u32>) -> bool {
    let mut image = vec![UNSET; pattern.len()];
    let end = rows.len() + most * pattern.len();
    let newest = usize::from(pattern.newest());
    for candidate in host.with_label(pattern.labels[newest]) {
        if fits(host, pattern, &image, newest, candidate) {
            image[newest] = candidate;
            if !up(host, pattern, &mut image, pattern.path.len() - 1, end, rows) {
                return false;
            }
            image[newest] = UNSET;
        }
    }
    true
}

/// Lays the part of the path before `at`, then the rest. `false` once there is one occurrence too many.
fn up(host: &Host, pattern: &Pattern, image: &mut [u32], at: usize, end: usize, rows: &mut Vec<u32>) -> bool {
    if at == 0 {
        let mut whole = image.to_vec();
        if complete(host, pattern, &mut whole) {
            if rows.len() == end {
                return false;
            }
            rows.extend(whole);
        }
        return true;
    }
    let node = usize::from(pattern.path[at - 1]);
    for &candidate in candidates(host, pattern, image, node) {
        if fits(host, pattern, image, node, candidate) {
            image[node] = candidate;
            if !up(host, pattern, image, at - 1, end, rows) {
                return false;
            }
            image[node] = UNSET;
        }
    }
    true
}

/// Calls `visit` with occurrences, for each image of the first node at most `most_each` times.
pub(super) fn each(host: &Host, pattern: &Pattern, most_each: usize, visit: &mut dyn FnMut(&[u32])) {
    let mut image = vec![UNSET; pattern.len()];
    for candidate in host.with_label(pattern.labels[0]) {
        if fits(host, pattern, &image, 0, candidate) {
            image[0] = candidate;
            on(host, pattern, &mut image, 1, &mut most_each.clone(), visit);
            image[0] = UNSET;
        }
    }
}

/// Lays the nodes from `node` on, in the order they are met.
fn on(
    host: &Host,
    pattern: &Pattern,
    image: &mut [u32],
    node: usize,
    left: &mut usize,
    visit: &mut dyn FnMut(&[u32]),
) {
    if node == image.len() {
        visit(image);
        *left -= 1;
        return;
    }
    for &candidate in candidates(host, pattern, image, node) {
        if *left == 0 {
            break;
        }
        if fits(host, pattern, image, node, candidate) {
            image[node] = candidate;
            on(host, pattern, image, node + 1, left, visit);
            image[node] = UNSET;
        }
    }
}
