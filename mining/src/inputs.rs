//! The graphs that a command names: files of either kind, told apart by their content, and folders of them.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::{self, GRAPH_SUFFIX, Limits, Lines};
use crate::graph::{FromTrace, GraphSet};
use crate::gspan_text;

/// How the name of a gSpan text file ends, with or without `.zst` behind it.
pub const TEXT_SUFFIX: &str = ".gspan";

/// The files that `argument` names: itself, or those below it that are graphs by their names, sorted. A folder without any is an
/// error.
pub fn find(argument: &Path) -> Result<Vec<PathBuf>, Error> {
    if !std::fs::metadata(argument).map_err(|e| Error::io(argument, e))?.is_dir() {
        return Ok(vec![argument.to_owned()]);
    }
    let mut found = files::find(argument, GRAPH_SUFFIX)?;
    found.extend(files::find(argument, TEXT_SUFFIX)?);
    found.sort();
    if found.is_empty() {
        let kinds = format!("*{GRAPH_SUFFIX}, *{TEXT_SUFFIX}, each with .zst behind it or not");
        return Err(Error::file(argument, format!("no graph in this folder ({kinds})")));
    }
    Ok(found)
}

/// Adds the graphs of a file to `set`: of a trace one, of gSpan's text any number. The options are for traces.
pub fn read(path: &Path, limits: Limits, options: FromTrace, set: &mut GraphSet) -> Result<(), Error> {
    let is_json = Lines::open(path, limits)?.next_line()?.is_some_and(|line| line.starts_with('{'));
    if is_json {
        let model = files::read_graph(path, limits)?;
        return set.push_trace(&model, options).map_err(|message| Error::file(path, message));
    }
    let graphs = gspan_text::read(path, limits, set)?;
    if graphs.is_empty() {
        return Err(Error::file(
            path,
            "the file is empty; a graph is a trace or `t # 0` and what follows it",
        ));
    }
    set.push_text(&stem(path), graphs);
    Ok(())
}

/// The file's name without the endings that say what kind it is.
fn stem(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    name.strip_suffix(TEXT_SUFFIX).or_else(|| name.strip_suffix(".txt")).unwrap_or(name).to_owned()
}
