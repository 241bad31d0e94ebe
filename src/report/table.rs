//! Verdicts and truths for people.

use comfy_table::{Cell, CellAlignment, Table, presets};
use owo_colors::OwoColorize;
use ulpian::spec::verdict::TruthLine;

/// A table without rules, two blanks between columns.
fn compact(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let cells = header.iter().map(|text| {
        let numeric = !matches!(*text, "node" | "op" | "executor" | "case" | "dtype" | "shape" | "cause");
        let alignment = if numeric { CellAlignment::Right } else { CellAlignment::Left };
        Cell::new(text).set_alignment(alignment)
    });
    table.set_header(cells);
    table
}

fn number(text: Option<String>) -> Cell {
    Cell::new(text.unwrap_or_else(|| "-".to_owned())).set_alignment(CellAlignment::Right)
}

/// Three significant digits, and no more room than needed.
fn short(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 {
        "0".to_owned()
    } else if !x.is_finite() {
        x.to_string()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{x:.1e}")
    } else {
        let decimals = (2 - size.log10().floor() as i32).clamp(0, 5) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// The truths of a case, a row a node result.
pub(crate) fn truth(lines: &[TruthLine], written: &std::path::Path) -> String {
    let mut table = compact(&["node", "dtype", "shape", "elements", "undecided", "radius ulp"]);
    for line in lines {
        table.add_row(vec![
            Cell::new(&line.node),
            Cell::new(&line.dtype),
            Cell::new(format!("{:?}", line.shape)),
            number(Some(line.elements.to_string())),
            number(Some(line.undecided.to_string())),
            number(Some(short(line.max_radius_ulp))),
        ]);
    }
    let name = lines.first().map_or("", |l| l.case.as_str());
    format!("{}  {}\n{table}\n", name.bold(), written.display().dimmed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_keep_three_digits() {
        for (x, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (0.499999, "0.5"),
            (31.02, "31"),
            (8123.4, "8123"),
            (0.0123, "0.0123"),
            (1.25e7, "1.2e7"),
            (3.9e-9, "3.9e-9"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
            (100.0, "100"),
            (99_999.0, "99999"),
        ] {
            assert_eq!(short(x), text);
        }
    }
}
