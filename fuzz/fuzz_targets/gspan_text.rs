//! Any bytes as gSpan's text: read or refused with a line, and what is read is mined.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use ulpian::mining::files::Lines;
use ulpian::mining::gspan::{Options, mine};
use ulpian::mining::{Error, GraphSet, Limits, gspan_text};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { line: 1 << 10, text: 1 << 11 };
    let mut set = GraphSet::default();
    let mut lines = Lines::new(Path::new("fuzz"), Box::new(Cursor::new(bytes.to_vec())), limits);
    let graphs = match gspan_text::parse(&mut lines, &mut set) {
        Ok(graphs) => graphs,
        Err(error) => return assert!(matches!(error, Error::Line { line: 1.., .. })),
    };
    set.push_text("fuzz", graphs);
    set.sort_labels();
    for directed in [true, false] {
        let options = Options::new(1.max(set.graphs.len() / 2), 2..=4, directed).expect("the options are valid");
        let found = mine(&set, &options, &|_| {});
        assert!(found.iter().all(|p| (2..=4).contains(&p.nodes.len()) && p.graphs.is_sorted()));
    }
});
